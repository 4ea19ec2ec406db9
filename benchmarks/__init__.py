"""Every figure of the README is measured here, by one command each. The results are in `results/`."""
