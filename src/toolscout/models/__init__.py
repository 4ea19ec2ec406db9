"""The models: frozen values that the stages of the pipelines pass on. They do no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolscout.models.accounts import ACCOUNT_KIND, Account, UnreadableAccount
from toolscout.models.answers import Answer, Category, Metadata, Pagination, Tag, ToolMatch
from toolscout.models.catalogue import (
    FIELDS,
    Dropped,
    Entry,
    Facets,
    Finding,
    IndexReport,
    Overview,
    Publication,
    Terms,
)
from toolscout.models.chat import ChatSelection, ChatTurn, DiscoveredTool, Origin
from toolscout.models.model_text import answer_text, answers_text
from toolscout.models.queries import (
    Candidates,
    Detail,
    Filter,
    Fit,
    Intent,
    Match,
    Query,
    Ranked,
    Ranking,
    SearchOptions,
    ToolSort,
)
from toolscout.models.records import KEPT_OUT, ApiKey, Change, Pin, Record, Retention, Verdict
from toolscout.models.signature import signature
from toolscout.models.tools import (
    LOCAL,
    OUTPUT_HINT,
    TEMPLATE,
    Caller,
    CallResult,
    Document,
    Overlay,
    Scope,
    Server,
    ServerStatus,
    Tool,
    ToolMetadata,
)

if TYPE_CHECKING:
    from toolscout.models.arrays import BoolArray as BoolArray
    from toolscout.models.arrays import ByteArray as ByteArray
    from toolscout.models.arrays import FloatArray as FloatArray
    from toolscout.models.arrays import IntArray as IntArray
    from toolscout.models.arrays import RowArray as RowArray

__all__ = [
    "ACCOUNT_KIND",
    "FIELDS",
    "KEPT_OUT",
    "LOCAL",
    "OUTPUT_HINT",
    "TEMPLATE",
    "Account",
    "Answer",
    "ApiKey",
    "CallResult",
    "Caller",
    "Candidates",
    "Category",
    "Change",
    "ChatSelection",
    "ChatTurn",
    "Detail",
    "DiscoveredTool",
    "Document",
    "Dropped",
    "Entry",
    "Facets",
    "Filter",
    "Finding",
    "Fit",
    "IndexReport",
    "Intent",
    "Match",
    "Metadata",
    "Origin",
    "Overlay",
    "Overview",
    "Pagination",
    "Pin",
    "Publication",
    "Query",
    "Ranked",
    "Ranking",
    "Record",
    "Retention",
    "Scope",
    "SearchOptions",
    "Server",
    "ServerStatus",
    "Tag",
    "Terms",
    "Tool",
    "ToolMatch",
    "ToolMetadata",
    "ToolSort",
    "UnreadableAccount",
    "Verdict",
    "answer_text",
    "answers_text",
    "signature",
]
