"""What the gateway costs: echo through it, many clients at once, time to the first answer, tokens."""
