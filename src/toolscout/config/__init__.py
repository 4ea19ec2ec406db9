"""Config files of agent hosts and of the operator: the MCP servers, and toolscout's options for them."""

from toolscout.config.read import read_config
from toolscout.config.server_config import Config, GrantType, OAuthConfig, ServerConfig, Transport, UserCredentials

__all__ = ["Config", "GrantType", "OAuthConfig", "ServerConfig", "Transport", "UserCredentials", "read_config"]
