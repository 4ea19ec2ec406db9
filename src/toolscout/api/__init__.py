"""The REST API of a gateway, at `/api/v1`, beside `/mcp` and with the same callers, policy, limits and audit."""

from toolscout.api.app import RestApi
from toolscout.api.server_editor import ServerEditor

__all__ = ["RestApi", "ServerEditor"]
