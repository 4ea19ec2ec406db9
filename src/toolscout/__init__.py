"""Toolscout finds the right tool among thousands, for agents and the people who build them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolscout.chat import Discovery
    from toolscout.errors import (
        AuthError,
        BadToolError,
        CallError,
        CallTimeoutError,
        ConfigError,
        DefinitionChangedError,
        DimensionError,
        EmbedderError,
        EmptyQueryError,
        InputFileError,
        InvalidArgumentsError,
        InvalidValueError,
        LimitError,
        NotAllowedError,
        NotReadOnlyError,
        PolicyError,
        SchemaVersionError,
        ServerUnavailableError,
        SettingError,
        StoreError,
        ToolNotFoundError,
        ToolscoutError,
        UnknownCategoryError,
        UnknownRankerError,
        UnknownServerError,
        UnknownTagError,
        UsageError,
    )
    from toolscout.models import (
        Answer,
        Caller,
        Category,
        DiscoveredTool,
        IndexReport,
        Server,
        Tag,
        Tool,
        ToolMatch,
        ToolMetadata,
    )
    from toolscout.ports import CustomServer, Embedder, LiveServer, Store, ToolProvider, ToolSource
    from toolscout.registry import RequestProvidersMiddleware, ToolRegistry, request_providers
    from toolscout.scout import Scout
    from toolscout.settings import Settings

__version__ = "0.1.0"

_HOME = {
    "chat": ("Discovery",),
    "errors": (
        "AuthError",
        "BadToolError",
        "CallError",
        "CallTimeoutError",
        "ConfigError",
        "DefinitionChangedError",
        "DimensionError",
        "EmbedderError",
        "EmptyQueryError",
        "InputFileError",
        "InvalidArgumentsError",
        "InvalidValueError",
        "LimitError",
        "NotAllowedError",
        "NotReadOnlyError",
        "PolicyError",
        "SchemaVersionError",
        "ServerUnavailableError",
        "SettingError",
        "StoreError",
        "ToolNotFoundError",
        "ToolscoutError",
        "UnknownCategoryError",
        "UnknownRankerError",
        "UnknownServerError",
        "UnknownTagError",
        "UsageError",
    ),
    "models": (
        "Answer",
        "Caller",
        "Category",
        "DiscoveredTool",
        "IndexReport",
        "Server",
        "Tag",
        "Tool",
        "ToolMatch",
        "ToolMetadata",
    ),
    "ports": (
        "CustomServer",
        "Embedder",
        "LiveServer",
        "Store",
        "ToolProvider",
        "ToolSource",
    ),
    "registry": (
        "RequestProvidersMiddleware",
        "ToolRegistry",
        "request_providers",
    ),
    "scout": ("Scout",),
    "settings": ("Settings",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Answer",
    "AuthError",
    "BadToolError",
    "CallError",
    "CallTimeoutError",
    "Caller",
    "Category",
    "ConfigError",
    "CustomServer",
    "DefinitionChangedError",
    "DimensionError",
    "DiscoveredTool",
    "Discovery",
    "Embedder",
    "EmbedderError",
    "EmptyQueryError",
    "IndexReport",
    "InputFileError",
    "InvalidArgumentsError",
    "InvalidValueError",
    "LimitError",
    "LiveServer",
    "NotAllowedError",
    "NotReadOnlyError",
    "PolicyError",
    "RequestProvidersMiddleware",
    "SchemaVersionError",
    "Scout",
    "Server",
    "ServerUnavailableError",
    "SettingError",
    "Settings",
    "Store",
    "StoreError",
    "Tag",
    "Tool",
    "ToolMatch",
    "ToolMetadata",
    "ToolNotFoundError",
    "ToolProvider",
    "ToolRegistry",
    "ToolSource",
    "ToolscoutError",
    "UnknownCategoryError",
    "UnknownRankerError",
    "UnknownServerError",
    "UnknownTagError",
    "UsageError",
    "__version__",
    "request_providers",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import toolscout` costs next to nothing."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'toolscout' has no attribute {name!r}")
    value = getattr(import_module(f"toolscout.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
