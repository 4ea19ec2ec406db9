"""What a registry costs: calls of visible tools, and search and calls of hidden ones."""
