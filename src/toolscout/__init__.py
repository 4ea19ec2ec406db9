"""Toolscout finds the right tool among thousands, for agents and the people who build them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolscout.chat import Discovery as Discovery
    from toolscout.config import Config as Config
    from toolscout.config import read_config as read_config
    from toolscout.errors import AuditError as AuditError
    from toolscout.errors import AuthError as AuthError
    from toolscout.errors import BadToolError as BadToolError
    from toolscout.errors import CallError as CallError
    from toolscout.errors import CallTimeoutError as CallTimeoutError
    from toolscout.errors import CheckUnavailableError as CheckUnavailableError
    from toolscout.errors import ConfigError as ConfigError
    from toolscout.errors import ConflictError as ConflictError
    from toolscout.errors import DefinitionChangedError as DefinitionChangedError
    from toolscout.errors import DimensionError as DimensionError
    from toolscout.errors import EmbedderError as EmbedderError
    from toolscout.errors import EmptyQueryError as EmptyQueryError
    from toolscout.errors import ForbiddenError as ForbiddenError
    from toolscout.errors import InputFileError as InputFileError
    from toolscout.errors import InvalidArgumentsError as InvalidArgumentsError
    from toolscout.errors import InvalidValueError as InvalidValueError
    from toolscout.errors import LimitError as LimitError
    from toolscout.errors import NotAllowedError as NotAllowedError
    from toolscout.errors import NotReadOnlyError as NotReadOnlyError
    from toolscout.errors import PolicyError as PolicyError
    from toolscout.errors import SchemaVersionError as SchemaVersionError
    from toolscout.errors import ServerUnavailableError as ServerUnavailableError
    from toolscout.errors import SettingError as SettingError
    from toolscout.errors import SignInError as SignInError
    from toolscout.errors import SignInRequiredError as SignInRequiredError
    from toolscout.errors import StoreError as StoreError
    from toolscout.errors import StoreUnreachableError as StoreUnreachableError
    from toolscout.errors import ToolNotFoundError as ToolNotFoundError
    from toolscout.errors import ToolscoutError as ToolscoutError
    from toolscout.errors import UnknownCategoryError as UnknownCategoryError
    from toolscout.errors import UnknownRankerError as UnknownRankerError
    from toolscout.errors import UnknownServerError as UnknownServerError
    from toolscout.errors import UnknownTagError as UnknownTagError
    from toolscout.errors import UnreadableAccountError as UnreadableAccountError
    from toolscout.errors import UsageError as UsageError
    from toolscout.models import Answer as Answer
    from toolscout.models import ApiKey as ApiKey
    from toolscout.models import Caller as Caller
    from toolscout.models import CallResult as CallResult
    from toolscout.models import Candidates as Candidates
    from toolscout.models import Category as Category
    from toolscout.models import Change as Change
    from toolscout.models import ChatSelection as ChatSelection
    from toolscout.models import Detail as Detail
    from toolscout.models import DiscoveredTool as DiscoveredTool
    from toolscout.models import Document as Document
    from toolscout.models import Dropped as Dropped
    from toolscout.models import Entry as Entry
    from toolscout.models import Facets as Facets
    from toolscout.models import Filter as Filter
    from toolscout.models import Finding as Finding
    from toolscout.models import Fit as Fit
    from toolscout.models import IndexReport as IndexReport
    from toolscout.models import Intent as Intent
    from toolscout.models import Match as Match
    from toolscout.models import Metadata as Metadata
    from toolscout.models import Origin as Origin
    from toolscout.models import Overlay as Overlay
    from toolscout.models import Overview as Overview
    from toolscout.models import Pagination as Pagination
    from toolscout.models import Pin as Pin
    from toolscout.models import Publication as Publication
    from toolscout.models import Record as Record
    from toolscout.models import Retention as Retention
    from toolscout.models import Scope as Scope
    from toolscout.models import SearchOptions as SearchOptions
    from toolscout.models import Server as Server
    from toolscout.models import ServerStatus as ServerStatus
    from toolscout.models import Tag as Tag
    from toolscout.models import Terms as Terms
    from toolscout.models import Tool as Tool
    from toolscout.models import ToolMatch as ToolMatch
    from toolscout.models import ToolMetadata as ToolMetadata
    from toolscout.models import ToolSort as ToolSort
    from toolscout.models import Verdict as Verdict
    from toolscout.models.arrays import ByteArray as ByteArray
    from toolscout.models.arrays import FloatArray as FloatArray
    from toolscout.models.arrays import IntArray as IntArray
    from toolscout.policy import Policy as Policy
    from toolscout.policy import Rules as Rules
    from toolscout.policy import read_policy as read_policy
    from toolscout.ports import CustomServer as CustomServer
    from toolscout.ports import Embedder as Embedder
    from toolscout.ports import LiveServer as LiveServer
    from toolscout.ports import Progress as Progress
    from toolscout.ports import Store as Store
    from toolscout.ports import ToolProvider as ToolProvider
    from toolscout.ports import ToolSource as ToolSource
    from toolscout.ports import Upstream as Upstream
    from toolscout.registry import McpResult as McpResult
    from toolscout.registry import ProviderProblem as ProviderProblem
    from toolscout.registry import RequestProvidersMiddleware as RequestProvidersMiddleware
    from toolscout.registry import ToolRegistry as ToolRegistry
    from toolscout.registry import request_providers as request_providers
    from toolscout.scout import Access as Access
    from toolscout.scout import ApiKeys as ApiKeys
    from toolscout.scout import CatalogueSync as CatalogueSync
    from toolscout.scout import Decisions as Decisions
    from toolscout.scout import Inventory as Inventory
    from toolscout.scout import InventoryFilter as InventoryFilter
    from toolscout.scout import InventoryRow as InventoryRow
    from toolscout.scout import InventorySort as InventorySort
    from toolscout.scout import LiveServers as LiveServers
    from toolscout.scout import Scout as Scout
    from toolscout.scout import ToolRisk as ToolRisk
    from toolscout.scout import ToolState as ToolState
    from toolscout.settings import DiscoveryMode as DiscoveryMode
    from toolscout.settings import LogFormat as LogFormat
    from toolscout.settings import LogLevel as LogLevel
    from toolscout.settings import Settings as Settings
    from toolscout.sources.rows import RowsSource as RowsSource

__version__ = "0.1.0"

_HOME = {
    "chat": "Discovery",
    "config": "Config read_config",
    "errors": (
        "AuditError AuthError BadToolError CallError CallTimeoutError CheckUnavailableError ConfigError "
        "ConflictError ForbiddenError "
        "DefinitionChangedError DimensionError EmbedderError EmptyQueryError InputFileError "
        "InvalidArgumentsError InvalidValueError LimitError NotAllowedError NotReadOnlyError PolicyError "
        "SchemaVersionError ServerUnavailableError SettingError SignInError SignInRequiredError StoreError "
        "StoreUnreachableError ToolNotFoundError ToolscoutError UnknownCategoryError UnknownRankerError "
        "UnknownServerError UnknownTagError UnreadableAccountError UsageError"
    ),
    "models": (
        "Answer ApiKey CallResult Caller Candidates Category Change ChatSelection Detail DiscoveredTool "
        "Document Dropped Entry Facets Filter Finding Fit IndexReport Intent Match Metadata Origin Overlay "
        "Overview Pagination Pin Publication Record Retention Scope SearchOptions Server ServerStatus Tag Terms "
        "Tool ToolMatch ToolMetadata ToolSort Verdict"
    ),
    "models.arrays": "ByteArray FloatArray IntArray",
    "policy": "Policy Rules read_policy",
    "ports": "CustomServer Embedder LiveServer Progress Store ToolProvider ToolSource Upstream",
    "registry": "McpResult ProviderProblem RequestProvidersMiddleware ToolRegistry request_providers",
    "scout": (
        "Access ApiKeys CatalogueSync Decisions Inventory InventoryFilter InventoryRow InventorySort "
        "LiveServers Scout ToolRisk ToolState"
    ),
    "settings": "DiscoveryMode LogFormat LogLevel Settings",
    "sources.rows": "RowsSource",
}
"""The public names, by the module that defines them; the imports above tell type checkers the same."""

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted([*_MODULE_OF, "__version__"])


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
