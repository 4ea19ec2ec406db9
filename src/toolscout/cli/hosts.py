"""The agent hosts that toolscout knows: where each keeps its list of servers, and how to read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolscout.config.files import SECTIONS, is_toolscout, load, read_text, workspace_of
from toolscout.config.jsonc import find_value, plain_json, value_at, without_comments
from toolscout.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One agent host: its config files (the user's, and the project's, which others share), and their format."""

    name: str
    title: str
    user: str = ""
    project: str = ""
    section: str = "mcpServers"
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Fields that every entry of this host needs, in addition to command and args."""
    expands: bool = False
    """Whether the host fills in the variables of an entry. Toolscout's entry then passes them to the servers."""
    command_list: bool = False
    """Whether `command` is a list that includes the arguments, as in OpenCode."""
    lists_variables: bool = False
    """Whether a server gets only those variables of the host that its entry lists as `env_vars`, as in Codex."""


_OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    user="{config}/opencode/opencode.json",
    project="opencode.json",
    section="mcp",
    entry={"type": "local", "enabled": True},
    command_list=True,
)
HOSTS = (
    Host(name="claude-desktop", title="Claude Desktop", user="{app}/Claude/claude_desktop_config.json"),
    Host(
        name="claude-code",
        title="Claude Code",
        user="{claude}/.claude.json",
        project=".mcp.json",
        entry={"type": "stdio"},
        expands=True,
    ),
    Host(name="cursor", title="Cursor", user="{home}/.cursor/mcp.json", project=".cursor/mcp.json", expands=True),
    Host(
        name="vscode",
        title="VS Code",
        user="{app}/Code/User/mcp.json",
        project=".vscode/mcp.json",
        section="servers",
        entry={"type": "stdio"},
        expands=True,
    ),
    Host(
        name="vscode-insiders",
        title="VS Code Insiders",
        user="{app}/Code - Insiders/User/mcp.json",
        section="servers",
        entry={"type": "stdio"},
        expands=True,
    ),
    Host(name="windsurf", title="Windsurf", user="{home}/.codeium/windsurf/mcp_config.json", expands=True),
    Host(
        name="gemini",
        title="Gemini CLI",
        user="{home}/.gemini/settings.json",
        project=".gemini/settings.json",
        expands=True,
    ),
    Host(
        name="kiro",
        title="Kiro",
        user="{home}/.kiro/settings/mcp.json",
        project=".kiro/settings/mcp.json",
        expands=True,
    ),
    Host(
        name="zed",
        title="Zed",
        user="{zed}/settings.json",
        project=".zed/settings.json",
        section="context_servers",
        entry={"source": "custom"},
    ),
    Host(
        name="codex",
        title="Codex",
        user="{codex}/config.toml",
        project=".codex/config.toml",
        section="mcp_servers",
        lists_variables=True,
    ),
    Host(
        name="cline",
        title="Cline",
        user="{app}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    Host(
        name="copilot",
        title="Copilot CLI",
        user="{copilot}/mcp-config.json",
        entry={"type": "local", "tools": ["*"]},
        expands=True,
    ),
    Host(name="lmstudio", title="LM Studio", user="{home}/.lmstudio/mcp.json"),
    Host(name="goose", title="Goose", user="{goose}/config.yaml"),
    _OPENCODE,
    replace(_OPENCODE, user="{config}/opencode/opencode.jsonc", project="opencode.jsonc"),
    Host(name="continue", title="Continue", user="{home}/.continue/config.yaml"),
    Host(
        name="roo",
        title="Roo Code",
        user="{app}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        project=".roo/mcp.json",
        expands=True,
    ),
    Host(name="amazon-q", title="Amazon Q", user="{home}/.aws/amazonq/mcp.json", project=".amazonq/mcp.json"),
    Host(name="junie", title="Junie", user="{home}/.junie/mcp/mcp.json", project=".junie/mcp/mcp.json"),
    Host(
        name="qwen",
        title="Qwen Code",
        user="{home}/.qwen/settings.json",
        project=".qwen/settings.json",
        expands=True,
    ),
    Host(name="cline-cli", title="Cline CLI", user="{home}/.cline/data/settings/cline_mcp_settings.json"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerList:
    """One list of servers in one config file of a host."""

    host: Host
    file: Path
    path: tuple[str, ...]
    """The keys that lead to the list."""
    shared: bool = False
    """Whether the file belongs to a project, which others share."""
    servers: Mapping[str, Any] = field(default_factory=dict, repr=False)
    inputs: tuple[Any, ...] = field(default=(), repr=False)
    comments: bool = False
    """Whether there are comments inside the list, which a rewrite would lose."""
    problem: str = ""

    @property
    def writable(self) -> bool:
        """Whether toolscout can rewrite the file."""
        return not self.problem and self.file.suffix not in (".yaml", ".yml")

    @property
    def others(self) -> dict[str, Any]:
        """The servers other than toolscout itself."""
        return {title: entry for title, entry in self.servers.items() if not is_toolscout(entry)}

    @property
    def workspace(self) -> str:
        """The folder that the list applies to."""
        return self.path[1] if len(self.path) > 1 else str(workspace_of(self.file))

    @property
    def whole_user(self) -> bool:
        """Whether the list applies to the user in every folder."""
        return not self.shared and len(self.path) == 1


def find_server_lists(
    environ: Mapping[str, str], folder: Path, platform: str = "", only: Host | None = None
) -> list[ServerList]:
    """Read the lists of all hosts, or of one: the user's files, then those of the project in this folder."""
    return [
        server_list
        for host, file, shared in host_files(environ, folder, platform)
        if (only is None or only.name == host.name) and file.is_file()
        for server_list in read_server_lists(host, file, shared=shared)
    ]


def host_files(environ: Mapping[str, str], folder: Path, platform: str = "") -> Iterator[tuple[Host, Path, bool]]:
    """Yield each host with its config files on this system, and whether the file is a project's."""
    platform = platform or sys.platform
    home = Path(environ.get("USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    app = {
        "win32": Path(environ.get("APPDATA") or home / "AppData" / "Roaming"),
        "darwin": home / "Library" / "Application Support",
    }.get(platform, config)
    folders = {
        "home": home,
        "app": app,
        "config": config,
        "goose": app / "Block" / "goose" / "config" if platform == "win32" else config / "goose",
        "claude": environ.get("CLAUDE_CONFIG_DIR") or home,
        "codex": environ.get("CODEX_HOME") or home / ".codex",
        "copilot": environ.get("COPILOT_HOME") or home / ".copilot",
        "zed": app / "Zed" if platform == "win32" else config / "zed",
    }
    for host in HOSTS:
        yield host, Path(host.user.format(**folders)), False
        if host.project and folder != home:
            yield host, folder / host.project, True


def read_server_lists(host: Host, file: Path, *, shared: bool = False) -> Iterator[ServerList]:
    """Read the lists of servers in a file. A file that cannot be read becomes a list with a `problem`."""
    try:
        values = load(file)
    except ConfigError as error:
        yield ServerList(host=host, file=file, path=(host.section,), shared=shared, problem=error.message)
        return
    inputs = values.get("inputs")
    projects = values.get("projects") if host.name == "claude-code" and not shared else None
    paths: list[tuple[str, ...]] = [(host.section,)]
    paths += [("projects", name, host.section) for name in (projects if isinstance(projects, dict) else {})]
    for path in paths:
        servers = value_at(values, path)
        if isinstance(servers, dict) and servers:
            yield ServerList(
                host=host,
                file=file,
                path=path,
                shared=shared,
                servers=servers,
                inputs=tuple(inputs) if isinstance(inputs, list) else (),
                comments=file.suffix in (".json", ".jsonc") and _has_comments(read_text(file), path),
            )


def host_of(file: Path, environ: Mapping[str, str]) -> tuple[Host, bool]:
    """Return the host of a file, and whether it is a project's. For an unknown host, make one from its section."""
    for host, user_file, _ in host_files(environ, file.parent):
        if file == user_file:
            return host, False
        if host.project and file.as_posix().endswith(f"/{host.project}"):
            return host, True
    values = load(file)
    section = next((key for key in SECTIONS if isinstance(values.get(key), dict)), None)
    if section is None:
        raise ConfigError(f"{file}: lists no servers", hint=f"list servers under one of {', '.join(SECTIONS)}")
    return Host(name=file.stem.lstrip("."), title=file.name, section=section), False


def describe_server(entry: Any) -> dict[str, str]:
    """Return how a server is reached, without parts that may be secret: no arguments, no path, no query."""
    from urllib.parse import urlsplit

    entry = entry if isinstance(entry, Mapping) else {}
    command = entry.get("command")
    command = command.get("path") if isinstance(command, Mapping) else command
    command = command[0] if isinstance(command, list) and command else command
    if isinstance(command, str):
        program = command if Path(command).is_file() else command.split(" ")[0]
        return {"transport": "stdio", "at": program.replace("\\", "/").rsplit("/", 1)[-1]}
    url = next((entry[name] for name in ("httpUrl", "url", "serverUrl") if isinstance(entry.get(name), str)), "")
    try:
        at = urlsplit(url).hostname or ""
    except ValueError:
        at = ""
    return {"transport": "sse" if entry.get("type") == "sse" else "http", "at": at}


def _has_comments(text: str, path: tuple[str, ...]) -> bool:
    span = find_value(plain_json(text), path)
    return span is not None and text[slice(*span)] != without_comments(text)[slice(*span)]
