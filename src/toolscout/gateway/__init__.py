"""The gateway: one MCP server in front of all of them."""
