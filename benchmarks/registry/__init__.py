"""What a registry costs: on the tools that stay visible, and on the way to those that do not."""
