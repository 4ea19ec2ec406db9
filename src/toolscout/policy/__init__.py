"""Who may see and do what."""
