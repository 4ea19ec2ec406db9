"""Every figure of the README: one command each, results beside them."""
