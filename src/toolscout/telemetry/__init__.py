"""What the program tells of itself: events for whoever listens, and an audit line for every call.

What may not be told is taken out here, and only here: see `redact`.
"""

from toolscout.telemetry.audit import AuditLog, operator, read_audit
from toolscout.telemetry.events import described, emit
from toolscout.telemetry.redact import shape_of, without_password

__all__ = ["AuditLog", "described", "emit", "operator", "read_audit", "shape_of", "without_password"]
