"""Reaching MCP servers: dialling, pooling, watching. Only here is the MCP client imported."""
