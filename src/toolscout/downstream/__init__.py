"""Connections to MCP servers. The MCP client of the SDK is imported only here."""
