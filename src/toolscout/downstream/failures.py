"""What went wrong, in words: every one says whether the request may have been carried out."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from toolscout.downstream.http_client import UNREACHABLE
from toolscout.downstream.lines import TOO_LONG
from toolscout.downstream.session import Session
from toolscout.errors import CallError, CallTimeoutError, ServerUnavailableError

_LOOK = "look at what it did before you call again"
_DOCTOR = "use another tool, or look at the server with `toolscout doctor`"


def unavailable(title: str, state: str, detail: str) -> ServerUnavailableError:
    """Say that a server is down or switched off."""
    how = "switched off" if state == "disabled" else "down"
    return ServerUnavailableError(f"{title} is {how}{': ' + detail if detail else ''}; nothing was sent", hint=_DOCTOR)


def timed_out(title: str, timeout_s: float, *, sent: bool) -> CallTimeoutError:
    """Say that the deadline has passed."""
    said = "it was sent once and may still have an effect" if sent else "nothing was sent"
    return CallTimeoutError(
        f"{title} did not answer within {timeout_s:g} s; {said}", hint=_LOOK if sent else "try again later"
    )


def is_gone(error: MCPError, session: Session) -> bool:
    """Tell the end of a session from an error that a server answered with the same code."""
    return error.code == CONNECTION_CLOSED and (session.closed.is_set() or error.data is None)


def translate(title: str, error: MCPError, session: Session) -> CallError:
    """Tell a server that answered with an error from one that went away or could not be reached."""
    if error.code == UNREACHABLE and error.data == {"sent": False}:
        return ServerUnavailableError(f"{title} cannot be reached ({error.message}); nothing was sent", hint=_DOCTOR)
    if error.code == UNREACHABLE or is_gone(error, session):
        reason = session.reason if is_gone(error, session) and session.reason else error.message
        return ServerUnavailableError(
            f"{title} went away during the call ({reason}); it was sent once, its outcome is not known", hint=_LOOK
        )
    if error.code == TOO_LONG:
        return CallError(f"{title}: {error.message}", hint="ask for less: a page, a range, a filter")
    details = {"code": error.code, **({} if error.data is None else {"data": error.data})}
    return CallError(error.message, hint=f"{title} answered so", details=details)
