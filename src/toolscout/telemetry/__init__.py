"""What operators see: the audit log, events for log handlers, metrics and spans.

Values that must not be logged are removed in `redact`, and nowhere else.
"""

from toolscout.telemetry.audit import NOWHERE, AuditLog, acting_as, audit_file, operator, read_audit
from toolscout.telemetry.events import described, emit
from toolscout.telemetry.metrics import Metrics
from toolscout.telemetry.redact import shape_of, without_password
from toolscout.telemetry.spans import span

__all__ = [
    "NOWHERE",
    "AuditLog",
    "Metrics",
    "acting_as",
    "audit_file",
    "described",
    "emit",
    "operator",
    "read_audit",
    "shape_of",
    "span",
    "without_password",
]
