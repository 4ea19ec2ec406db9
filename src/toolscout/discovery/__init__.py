"""The discovery pipeline: from a query and a caller to ranked tools and an answer. Only `search` waits for I/O."""
