"""The composition root: the `Scout` facade and what keeps its catalogue in step with the servers."""

from toolscout.indexing.normalize import normalize_tool
from toolscout.scout.facade import Scout

__all__ = ["Scout", "normalize_tool"]
