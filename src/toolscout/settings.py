"""Every limit and default: one field, one docstring, one environment variable `TOOLSCOUT_<FIELD>`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from toolscout.errors import SettingError

PREFIX = "TOOLSCOUT_"
_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_OTHER_VARIABLES = ("INPUT_", "CHILD", "WORKSPACE_FOLDER", "BENCH", "TEST_")
"""Beginnings of `TOOLSCOUT_*` variables that are not settings: config files use them, or toolscout sets them itself."""

DiscoveryMode = Literal["on", "off", "shadow"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "discovery": get_args(DiscoveryMode),
    "log_format": get_args(LogFormat),
    "log_level": get_args(LogLevel),
}


def data_folder() -> Path:
    """Return the user's data folder, which holds the default catalogue and the audit log."""
    from platformdirs import user_data_path

    return _unix_folder("XDG_DATA_HOME", ".local/share") or user_data_path("toolscout", appauthor=False)


def config_folder() -> Path:
    """Return the user's config folder, which holds imported configs."""
    from platformdirs import user_config_path

    return _unix_folder("XDG_CONFIG_HOME", ".config") or user_config_path("toolscout", appauthor=False, roaming=True)


def _unix_folder(variable: str, default: str) -> Path | None:
    """Return the folder of other Unix systems if macOS should use it: the XDG variable is set, or the folder exists.

    Versions before 0.1.0 used it on macOS too, and their catalogue should be found.
    """
    is_macos = sys.platform == "darwin"
    root = os.environ.get(variable)
    folder = Path(root or Path.home() / default) / "toolscout"
    return folder if is_macos and (root or folder.is_dir()) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one Scout. `Settings.from_env()` reads them from the environment."""

    store: str = field(default="", repr=False)
    """The catalogue: `memory:`, `sqlite:///PATH` or `postgresql://...`. If empty, a file in the user's data folder."""

    embedder: str = "builtin"
    """The embedding model: `builtin`, `builtin:FOLDER`, `sentence-transformers:MODEL`, `openai:MODEL`, or `none`."""

    embedder_url: str = "https://api.openai.com/v1"
    """The base address of an OpenAI-compatible embeddings endpoint."""

    embedder_key: str = field(default="", repr=False)
    """The bearer token for that endpoint. It is never logged or stored."""

    embedder_dimension: int = 0
    """The length of a remote model's vectors. If 0, it is taken from the first answer."""

    embed_threads: int = 2
    """How many threads the built-in model may use: one for each text, and all for a long query that comes alone."""

    embed_timeout_s: float = 10.0
    """How long a remote embedder may take for one request."""

    embed_retry_s: float = 5.0
    """How long searches use words alone after the embedder failed, before it is tried again."""

    query_cache_size: int = 1_000
    """How many query vectors are cached."""

    query_cache_ttl_s: float = 300.0
    """How long a query vector is cached."""

    ranker: str = "hybrid"
    """The default ranker: hybrid, semantic, keyword, fuzzy or boosted."""

    candidates: int = 50
    """How many candidates a hybrid search takes from vectors and from words, for each intent."""

    max_query_chars: int = 100_000
    """The longest query that is accepted."""

    max_queries: int = 16
    """The most queries in one search."""

    max_limit: int = 200
    """The most hits that one search may return."""

    discovery: DiscoveryMode = "on"
    """What `discover_tools` does: `on` chooses tools, `off` returns all, `shadow` returns all and logs its choice."""

    turn_tools: int = 10
    """The most tools for one chat turn, core tools included."""

    log_queries: bool = False
    """Whether logged events and spans contain what users wrote. If not, events contain its length."""

    log_format: LogFormat = "text"
    """How `toolscout serve` writes its log: `text`, or `json` with one object a line."""

    log_level: LogLevel = "info"
    """What it logs: `debug`, `info`, `warning` or `error`, and what is more severe."""

    traces: bool = False
    """Whether `toolscout serve` sends spans over OTLP. The `OTEL_*` variables say where to and how many."""

    page_size: int = 50
    """How many tools a page holds by default."""

    max_page_size: int = 100
    """The most tools that a page may hold."""

    max_schema_bytes: int = 262_144
    """The largest input or output schema that is indexed, as canonical JSON."""

    max_schema_depth: int = 32
    """The deepest nesting of a schema that is indexed."""

    max_description_chars: int = 32_768
    """The longest description that is accepted. A tool with a longer one is dropped."""

    max_name_chars: int = 256
    """The longest tool name that is indexed."""

    max_tools: int = 200_000
    """The most tools that one server may have. The rest are dropped and reported."""

    exact_rows: int = 50_000
    """Up to this many vectors are compared in full. Of more, a code of one bit for each number chooses which."""

    loaded_tools: int = 1_000_000
    """How many tools are kept in memory for searching. The least recently searched tenants and users are evicted."""

    policy: str = ""
    """The policy file: who may see and call which tools. If empty, everyone in a tenant may use all its tools."""

    quarantine: bool = True
    """Whether a tool with poisoned text in its definition is withheld from everyone until it is approved."""

    pins_kept_days: float = 90.0
    """How long the first definition of a tool that is gone is kept, to compare a tool that comes back with it."""

    strict_definitions: bool = False
    """Whether a tool whose definition has changed, or that a known server adds, is withheld until it is approved."""

    audit: str = ""
    """The audit log, or `none`. If empty, the command uses `audit.jsonl` in the data folder, the library no file."""

    audit_bytes: int = 67_108_864
    """The size at which the audit log is rotated. The last ten files are kept."""

    audit_required: bool = False
    """Whether calls are refused while the audit log cannot be written. If not, their lines wait in memory."""

    auth_issuer: str = ""
    """The issuer whose OAuth access tokens are accepted over HTTP. If empty, only API keys are accepted."""

    auth_audience: str = ""
    """The audience that a token must have: the address of this gateway, as in `https://tools.example.com/mcp`."""

    auth_jwks_url: str = ""
    """Where the issuer publishes its keys. If empty, the address is taken from the issuer's metadata."""

    auth_algorithms: str = "RS256 PS256 ES256 EdDSA"
    """The accepted signature algorithms of tokens."""

    auth_tenant_claim: str = ""
    """The claim of a token that names the tenant. If empty, everyone is in the local tenant."""

    auth_user_claim: str = "sub"
    """The claim that names the user."""

    auth_groups_claim: str = "groups"
    """The claim that lists the user's groups. A dotted name reads nested objects."""

    auth_scope: str = ""
    """The scope that a token or key must have to use the gateway. If empty, none is required."""

    console_client_id: str = ""
    """The client id at `auth_issuer` of the console and the `/connect` pages. If empty, people enter a key."""

    console_client_secret: str = field(default="", repr=False)
    """The secret of that client, if it has one."""

    console_scope: str = ""
    """The scopes that the console asks the issuer for. If empty, those of `auth_scope` and `operator_scope`."""

    public_url: str = ""
    """The address at which browsers reach this gateway, as in `https://tools.example.com`. Users sign in there."""

    token_key: str = field(default="", repr=False)
    """The key that encrypts the tokens of signed-in accounts. After spaces, older keys, which are only read with."""

    token_key_file: str = ""
    """A file with that key. Without both, it is in the system's keyring or your data folder, unless on PostgreSQL."""

    call_timeout_s: float = 30.0
    """How long a call may take in total, unless the server's config says otherwise."""

    connect_timeout_s: float = 20.0
    """How long a server may take to start and answer its first request."""

    breaker_failures: int = 5
    """After this many failures in a row, the circuit breaker of a server and tenant opens: such calls fail at once."""

    breaker_pause_s: float = 30.0
    """How long the circuit breaker stays open before one call is let through as a test."""

    backoff_first_s: float = 0.5
    """The first pause before a server that stopped is started again. It doubles each time, with jitter."""

    backoff_most_s: float = 15.0
    """The longest pause before such a restart."""

    reindex_interval_s: float = 1.0
    """The shortest time between two indexings of a server that reports changed tools."""

    unavailable_s: float = 86_400.0
    """How long the tools of a server that is down stay in the catalogue."""

    max_line_bytes: int = 16_777_216
    """The longest message that a server may send. A longer one fails only that call."""

    max_result_bytes: int = 200_000
    """The largest result that is returned whole. A larger one is cut, with a link to the rest."""

    results_ttl_s: float = 600.0
    """How long the rest of a cut result can be read."""

    results_bytes: int = 33_554_432
    """How many bytes of cut results are kept in total. The oldest are dropped first."""

    stderr_bytes: int = 65_536
    """How much of a server's standard error is kept."""

    max_body_bytes: int = 4_194_304
    """The largest HTTP request body that is read."""

    operator_scope: str = "toolscout:operator"
    """The scope of keys and tokens whose callers operate the gateway through REST and the console. Empty: nobody."""

    max_caller_sessions: int = 1_000
    """The most HTTP sessions of older protocol versions that each API key or user may have open."""

    drain_s: float = 3.0
    """How long a gateway with a diagnostics port goes on serving after SIGTERM while `/readyz` already says no."""

    list_ttl_ms: int = 300_000
    """How long a client may cache the list of the gateway's tools."""

    provider_timeout_s: float = 5.0
    """How long a registry's provider may take to list its tools, or to return one definition."""

    provider_refresh_s: float = 10.0
    """How long a provider's tools count as fresh. A provider that fails is tried again after growing pauses."""

    resident_tools: int = 50_000
    """Up to this many tools of a tenant or user are searched in memory, more in PostgreSQL if there is no policy."""

    store_connections: int = 10
    """The most PostgreSQL connections that one process works with. It has one more to listen."""

    lease_s: float = 10.0
    """How long a process that died while indexing a server keeps others from indexing it."""

    store_timeout_s: float = 10.0
    """How long a writer waits for another process that is writing to the same file."""

    @property
    def store_url(self) -> str:
        """The address of the store: the `store` setting, or the default file in the user's data folder."""
        return self.store or f"sqlite:///{data_folder() / 'catalogue.db'}"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
        """Read every `TOOLSCOUT_*` variable that is set. `overrides` win over the environment."""
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if name in environ:
                values[item.name] = _parse(name, environ[name], type(item.default))
        return replace(cls(**values), **overrides)

    def __post_init__(self) -> None:
        """Refuse values that could only fail later."""
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, (int, float)) and value < 0:
                raise SettingError(
                    f"{PREFIX}{item.name.upper()} is {value}, but cannot be negative",
                    hint="see docs/settings.md for what it means",
                )
            if value not in _CHOICES.get(item.name, (value,)):
                raise SettingError(
                    f"{PREFIX}{item.name.upper()} is {value!r}, but must be one of {', '.join(_CHOICES[item.name])}",
                    hint="see docs/settings.md for what each means",
                )


def sqlite_file(url: str) -> Path | None:
    """Return the file of a `sqlite:///` address, and None for any other address."""
    name = url.removeprefix("sqlite:///")
    return Path(name).expanduser() if name and name != url else None


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return a warning for each `TOOLSCOUT_*` variable that is not a setting, without its value."""
    from difflib import get_close_matches

    setting_names = [PREFIX + item.name.upper() for item in fields(Settings)]
    warnings = []
    for name in sorted(os.environ if environ is None else environ):
        suffix = name.removeprefix(PREFIX)
        if suffix == name or name in setting_names or suffix.startswith(_OTHER_VARIABLES):
            continue
        similar = get_close_matches(name, setting_names, n=1, cutoff=0.8)
        warnings.append(f"{name[:80]} is not a setting" + (f", did you mean {similar[0]}?" if similar else ""))
    return warnings


def _parse(name: str, text: str, kind: type) -> Any:
    if kind is str:
        return text
    if kind is bool:
        if text.casefold() not in _BOOLEANS:
            raise SettingError(f"{name}={text!r} is neither true nor false", hint="use 1 or 0")
        return _BOOLEANS[text.casefold()]
    try:
        return kind(text)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise SettingError(f"{name}={text!r} is not {expected}", hint="see docs/settings.md") from None
