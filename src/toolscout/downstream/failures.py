"""The errors of calls that failed: each says whether the request may have been carried out."""

from __future__ import annotations

from typing import Any

import pydantic_core
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from toolscout.downstream.http_client import UNREACHABLE
from toolscout.downstream.in_flight import SentByServer
from toolscout.downstream.process import TOO_LONG
from toolscout.downstream.session import Session
from toolscout.errors import OUTCOME_UNKNOWN, CallError, CallTimeoutError, ServerUnavailableError, SignInRequiredError

_MAX_MESSAGE = 8_000
_MAX_DATA_BYTES = 65_536
_CHECK_EFFECT = "find out whether it took effect before you call again"
_DOCTOR = "use another tool, or check the server with `toolscout doctor`"


def unavailable(title: str, state: str, detail: str, hint: str = "") -> ServerUnavailableError:
    """Return the error for a server that is down or switched off."""
    if state == "needs_login":
        return SignInRequiredError(detail, hint=hint)
    state = "switched off" if state == "disabled" else "down"
    return ServerUnavailableError(
        f"{title} is {state}{': ' + detail if detail else ''}; nothing was sent", hint=_DOCTOR
    )


def timed_out(title: str, timeout_s: float, *, sent: bool) -> CallTimeoutError:
    """Return the error for a call whose deadline has passed."""
    outcome = "the call was sent once and may still take effect" if sent else "nothing was sent"
    return CallTimeoutError(
        f"{title} did not answer within {timeout_s:g} s; {outcome}", hint=_CHECK_EFFECT if sent else "try again later"
    )


def is_session_end(error: MCPError) -> bool:
    """Tell the end of a session from an error with the same code that the server sent."""
    return error.code == CONNECTION_CLOSED and not isinstance(error.data, SentByServer)


def data_of(error: MCPError) -> Any:
    """Return the data of an error as the server sent it."""
    return error.data.data if isinstance(error.data, SentByServer) else error.data


def rewrite(error: MCPError, message: str, data: Any) -> MCPError:
    """Return the same error with another message and other data."""
    return MCPError(error.code, message, SentByServer(data) if isinstance(error.data, SentByServer) else data)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]} ... ({len(text):,} characters)"


def _bounded(data: Any) -> Any:
    """Return the data of an error, unless it is so large that it belongs into a result, which is cut."""
    size = len(pydantic_core.to_json(data, inf_nan_mode="null", serialize_unknown=True))
    return data if size <= _MAX_DATA_BYTES else f"{size:,} bytes of data that are not passed on"


def to_call_error(title: str, error: MCPError, session: Session) -> CallError:
    """Tell an error that the server sent from a server that went away or could not be reached."""
    if error.code == UNREACHABLE and error.data == {"sent": False}:
        return ServerUnavailableError(f"{title} cannot be reached ({error.message}); nothing was sent", hint=_DOCTOR)
    if error.code == UNREACHABLE or is_session_end(error):
        reason = session.reason if is_session_end(error) and session.reason else error.message
        return ServerUnavailableError(
            f"{title} went away during the call ({reason}); the call was sent once, its outcome is not known",
            hint=_CHECK_EFFECT,
            details={"outcome": OUTCOME_UNKNOWN},
        )
    if error.code == TOO_LONG:
        return CallError(
            f"{title}: {error.message}; the call may have taken effect", hint="request less: a page, a range, a filter"
        )
    data = data_of(error)
    details = {"code": error.code, **({} if data is None else {"data": _bounded(data)})}
    return CallError(_cut(error.message), hint=f"this is the error that {title} returned", details=details)
