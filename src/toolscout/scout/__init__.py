"""The composition root: the `Scout` facade and what keeps its catalogue in step with the servers."""

from toolscout.indexing.normalize import normalize_tool
from toolscout.scout.access import Access
from toolscout.scout.api_keys import ApiKeys
from toolscout.scout.decisions import Decisions
from toolscout.scout.facade import Scout
from toolscout.scout.inventory import Inventory, InventoryFilter, InventoryRow, InventorySort, ToolRisk, ToolState
from toolscout.scout.servers import LiveServers
from toolscout.scout.sync import CatalogueSync

__all__ = [
    "Access",
    "ApiKeys",
    "CatalogueSync",
    "Decisions",
    "Inventory",
    "InventoryFilter",
    "InventoryRow",
    "InventorySort",
    "LiveServers",
    "Scout",
    "ToolRisk",
    "ToolState",
    "normalize_tool",
]
