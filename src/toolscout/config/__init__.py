"""The operator's config files: which servers there are, and what toolscout is told about them."""

from toolscout.config.read import read_config
from toolscout.config.server_config import Config, OAuthConfig, ServerConfig, Transport

__all__ = ["Config", "OAuthConfig", "ServerConfig", "Transport", "read_config"]
