"""The gateway: one MCP server in front of many others."""
