"""Authentication over HTTP: API keys and OAuth access tokens."""
