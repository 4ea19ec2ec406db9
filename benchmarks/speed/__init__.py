"""Speed, growth and memory."""
