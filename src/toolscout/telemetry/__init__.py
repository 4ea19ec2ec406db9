"""Events for log handlers, and the audit log with one line per call.

Values that must not be logged are removed in `redact`, and nowhere else.
"""

from toolscout.telemetry.audit import AuditLog, operator, read_audit
from toolscout.telemetry.events import described, emit
from toolscout.telemetry.redact import shape_of, without_password

__all__ = ["AuditLog", "described", "emit", "operator", "read_audit", "shape_of", "without_password"]
