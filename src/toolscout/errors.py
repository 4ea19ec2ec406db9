"""Every error that toolscout raises on purpose, as one tree. Each has a stable code and says what to do next.

::

    ToolscoutError
    ├── UsageError                 the request is wrong; the message says what to change
    │   ├── EmptyQueryError
    │   ├── InvalidValueError      a parameter is out of range or of the wrong type
    │   ├── UnknownRankerError
    │   ├── UnknownCategoryError
    │   ├── UnknownServerError
    │   ├── UnknownTagError
    │   ├── InputFileError         a file cannot be read, or has a bad line and --strict is set
    │   ├── ConfigError            a config file cannot be used; the message names file, server and field
    │   ├── PolicyError            a policy file cannot be used; the message names file, rule and field
    │   └── BadToolError           a definition cannot be indexed; indexing drops the tool and reports why
    ├── CallError                  a call was not made, or its outcome is unknown; the message says which
    │   ├── InvalidArgumentsError  the arguments do not fit the schema; nothing was sent
    │   ├── DefinitionChangedError the definition is not the one that the caller saw; nothing was sent
    │   ├── NotReadOnlyError       the tool may write, and the call allowed only reading; nothing was sent
    │   ├── NotAllowedError        the caller may see the tool but not call it; nothing was sent
    │   ├── LimitError             a limit of the policy is reached; nothing was sent
    │   ├── CheckUnavailableError  no process can be started to check the arguments in; nothing was sent
    │   ├── AuditError             the audit log that every call needs cannot be written; nothing was sent
    │   ├── ServerUnavailableError the server cannot be reached, or stopped during the call
    │   │   └── SignInRequiredError    the server wants somebody to sign in first; nothing was sent
    │   └── CallTimeoutError       the deadline passed; the call was sent and is never sent again
    ├── ToolNotFoundError          no such tool, or not for this caller: the two look the same
    ├── SignInError                signing in to a server failed; the message says at which step
    ├── AuthError                  a key or a token is missing, wrong, expired or revoked
    ├── ForbiddenError             only operators of the gateway may do this
    ├── ConflictError              it contradicts what is there: a name that is taken, a request that is under way
    ├── SettingError               a TOOLSCOUT_* variable or a setting has a value that cannot be used
    ├── EmbedderError              the embedder cannot answer; searches use words alone and are marked degraded
    │   └── DimensionError         vectors have another length than the model's; they are refused, never mixed
    └── StoreError                 the catalogue cannot be read or written
        ├── StoreUnreachableError  the server of the database does not answer now; what is loaded is served meanwhile
        ├── SchemaVersionError     the store was written by a newer toolscout
        └── UnreadableAccountError a stored account cannot be decrypted; the other accounts can be used
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class ToolscoutError(Exception):
    """The base class of every error that toolscout raises on purpose."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 3

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        suggestions: Sequence[str] = (),
        categories: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.suggestions = tuple(suggestions)
        self.categories = tuple(categories)
        self.details = dict(details or {})


class UsageError(ToolscoutError):
    """The request is wrong. The same request will fail again."""

    code = "usage"
    exit_code = 2


class EmptyQueryError(UsageError):
    """There is nothing to search for."""

    code = "empty_query"


class InvalidValueError(UsageError):
    """A parameter is out of range or of the wrong type."""

    code = "invalid_value"


class UnknownRankerError(UsageError):
    """No ranker has that name."""

    code = "unknown_ranker"


class UnknownCategoryError(UsageError):
    """No tool that the caller may see is in that category."""

    code = "unknown_category"


class UnknownServerError(UsageError):
    """No tool that the caller may see belongs to that server."""

    code = "unknown_server"


class UnknownTagError(UsageError):
    """No tool that the caller may see has that tag."""

    code = "unknown_tag"


class InputFileError(UsageError):
    """A file cannot be read, or has a bad line and strict reading was requested."""

    code = "input_file"


class ConfigError(UsageError):
    """A config file cannot be used. The message names file, server and field, never a value."""

    code = "config"


class PolicyError(UsageError):
    """A policy file cannot be used. The previous policy stays in force."""

    code = "policy"


class BadToolError(UsageError):
    """A definition cannot be indexed. The message is the reason that the summary shows."""

    code = "bad_tool"


class CallError(ToolscoutError):
    """A call was not made, or its outcome is unknown."""

    code = "call_failed"


class InvalidArgumentsError(CallError):
    """The arguments do not fit the tool's schema. Nothing was sent."""

    code = "invalid_arguments"
    exit_code = 2


class DefinitionChangedError(CallError):
    """The tool's definition is not the one that the caller saw. Nothing was sent."""

    code = "definition_changed"


class NotReadOnlyError(CallError):
    """The tool may write, and the call allowed only reading. Nothing was sent."""

    code = "not_read_only"
    exit_code = 2


class NotAllowedError(CallError):
    """The policy lets the caller see the tool but not call it. Nothing was sent."""

    code = "not_allowed"
    exit_code = 2


class LimitError(CallError):
    """A limit is reached. `details` say when to try again. Nothing was sent."""

    code = "limit_reached"


class CheckUnavailableError(CallError):
    """The arguments need a check that must be stoppable, and no process can be started for it. Nothing was sent."""

    code = "check_unavailable"


class AuditError(CallError):
    """Every call must leave an audit line, and none can be written now. Nothing was sent."""

    code = "audit_unavailable"


OUTCOME_UNKNOWN = "unknown"
"""What `details["outcome"]` is if a server went away during a call, which may have taken effect."""


class ServerUnavailableError(CallError):
    """The server cannot be reached, or stopped during the call."""

    code = "server_unavailable"


class SignInRequiredError(ServerUnavailableError):
    """The server wants somebody to sign in first. `hint` says how. Nothing was sent."""

    code = "needs_login"


class CallTimeoutError(CallError):
    """The deadline passed. The call was sent once and is never sent again."""

    code = "call_timeout"


class ToolNotFoundError(ToolscoutError):
    """No such tool for this caller. A forbidden tool looks exactly like an absent one."""

    code = "tool_not_found"
    exit_code = 1


class SignInError(ToolscoutError):
    """Signing in to a server failed. Nothing was stored."""

    code = "sign_in_failed"
    exit_code = 1


class AuthError(ToolscoutError):
    """A key or a token is missing, wrong, expired or revoked."""

    code = "unauthorized"
    exit_code = 2


class ForbiddenError(ToolscoutError):
    """Only operators of the gateway may do this."""

    code = "forbidden"
    exit_code = 2


class ConflictError(ToolscoutError):
    """The request contradicts what is there. Nothing was changed."""

    code = "conflict"
    exit_code = 2


class SettingError(ToolscoutError):
    """A setting has a value that cannot be used."""

    code = "setting"
    exit_code = 2


class EmbedderError(ToolscoutError):
    """The embedder cannot answer now."""

    code = "embedder_unavailable"


class DimensionError(EmbedderError):
    """Vectors of another length than the model's are refused."""

    code = "wrong_dimension"

    @classmethod
    def two_models(cls, message: str) -> DimensionError:
        """Return the error for vectors of two models that are stored under one model id."""
        return cls(
            message, hint="two models share one name; give the new one another id and run `toolscout index` again"
        )


class StoreError(ToolscoutError):
    """The catalogue cannot be read or written."""

    code = "store_unavailable"

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        """Take the file or address that the message names, if it does: callers of a gateway are not told it."""
        super().__init__(message, hint=hint)
        self.where = where

    @classmethod
    def not_open(cls, where: str) -> StoreError:
        """Return the error for a store that is used before it is opened, or after it is closed."""
        return cls(
            f"{where} is not open: use `async with Scout.open(...) as scout`",
            hint="enter it with `async with`, or use `toolscout.sync` without asyncio",
            where=where,
        )


class StoreUnreachableError(StoreError):
    """The server of the database does not answer now. Unlike a file that is gone or damaged, it may be as it was."""


class SchemaVersionError(StoreError):
    """The store was written by a newer version of toolscout."""

    code = "store_newer"


class UnreadableAccountError(StoreError):
    """A stored account cannot be decrypted: its key is not here, or it is damaged. The others can be used."""

    code = "unreadable_account"


def to_wire(error: BaseException, *, to_operator: bool = False) -> dict[str, Any]:
    """Return the JSON shape of any error. An error that toolscout did not raise itself shows no detail.

    Where the catalogue is, only the operator is told.
    """
    if not isinstance(error, ToolscoutError):
        error = ToolscoutError("an internal error occurred in toolscout", hint="run `toolscout doctor`")
    where = error.where if isinstance(error, StoreError) and not to_operator else ""
    body: dict[str, Any] = {
        "code": error.code,
        "message": _without(where, error.message),
        "hint": _without(where, error.hint),
        "suggestions": list(error.suggestions),
    }
    if error.details:
        body["details"] = error.details
    if error.categories:
        body["categories_available"] = list(error.categories)
    return {"error": body}


def _without(where: str, text: str) -> str:
    return text.replace(where, "the catalogue") if where else text
