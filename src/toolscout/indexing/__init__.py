"""Walk 1: server, raw tools, normalized tools, search text, vectors, one generation."""
