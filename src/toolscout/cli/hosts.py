"""The agent hosts that toolscout knows: where each keeps its list of servers, and how to read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolscout.config import toml_edit, yaml_edit
from toolscout.config.files import SECTIONS, YAML, is_toolscout, load, read_text, workspace_of
from toolscout.config.jsonc import find_value, plain_json, without_comments
from toolscout.config.other_hosts import GOOSE_SECTION, listed_servers
from toolscout.config.read import is_extension
from toolscout.errors import ConfigError

_URLS = ("httpUrl", "url", "serverUrl", "uri")


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
    command: str = "command"
    """What the host calls the command of an entry."""
    command_list: bool = False
    """Whether the command is a list that includes the arguments, as in OpenCode."""
    variables: str = ""
    """The field of an entry with names of variables whose values the host adds."""
    bare_environment: bool = False
    """Whether a server gets no variable of the host but those in its entry."""
    kept: str = ""
    """Why its files are not rewritten."""


_OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    user="{config}/opencode/opencode.json",
    project="opencode.json",
    section="mcp",
    entry={"type": "local", "enabled": True},
    command_list=True,
)
_GOOSE = Host(
    name="goose",
    title="Goose",
    user="{goose}/config.yaml",
    section=GOOSE_SECTION,
    entry={"type": "stdio", "name": "toolscout", "description": "", "enabled": True, "timeout": 300, "envs": {}},
    command="cmd",
    variables="env_keys",
)
_CONTINUE = Host(
    name="continue", title="Continue", user="{home}/.continue/config.yaml", expands=True, bare_environment=True
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
        variables="env_vars",
        bare_environment=True,
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
    _GOOSE,
    _OPENCODE,
    replace(_OPENCODE, user="{config}/opencode/opencode.jsonc", project="opencode.jsonc"),
    _CONTINUE,
    *(
        replace(
            _CONTINUE,
            user=f"{{home}}/.continue/mcpServers/*.{suffix}",
            project=f".continue/mcpServers/*.{suffix}",
        )
        for suffix in ("yaml", "yml", "json")
    ),
    Host(
        name="roo",
        title="Roo Code",
        user="{app}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        project=".roo/mcp.json",
        expands=True,
    ),
    Host(name="amazon-q", title="Amazon Q", user="{home}/.aws/amazonq/mcp.json", project=".amazonq/mcp.json"),
    *(
        Host(
            name="amazon-q",
            title="Amazon Q",
            user=f"{{home}}/.aws/amazonq/{folder}/*.json",
            project=f".amazonq/{folder}/*.json",
            kept="the file of an agent, whose `tools` name its servers, is not rewritten",
        )
        for folder in ("cli-agents", "agents")
    ),
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
        return not self.problem and not self.host.kept

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
        for file in _matching(Path(host.user.format(**folders))):
            yield host, file, False
        if host.project and folder != home:
            for file in _matching(folder / host.project):
                yield host, file, True


def _matching(path: Path) -> list[Path]:
    """Return the files that a path stands for, if its last part is a pattern."""
    return sorted(path.parent.glob(path.name)) if "*" in path.name else [path]


def home_folder(environ: Mapping[str, str]) -> Path:
    """Return the home folder of the user."""
    return Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())


def user_file(name: str, environ: Mapping[str, str]) -> Path:
    """Return the user's own config file of a host."""
    home = home_folder(environ)
    return next(file for host, file, shared in host_files(environ, home) if host.name == name and not shared)


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
        servers = listed_servers(values, path)
        if servers:
            yield ServerList(
                host=host,
                file=file,
                path=path,
                shared=shared,
                servers=servers,
                inputs=tuple(inputs) if isinstance(inputs, list) else (),
                comments=_has_comments(file, path),
            )


def host_of(file: Path, environ: Mapping[str, str]) -> tuple[Host, bool]:
    """Return the host of a file, and whether it is a project's. For an unknown host, make one from its section."""
    for host, known, shared in host_files(environ, home_folder(environ)):
        if file == known:
            return host, shared
    for host in HOSTS:
        if host.project and file.match(host.project):
            return host, True
    values = load(file)
    name, title = file.stem.lstrip("."), file.name
    if file.suffix in YAML and listed_servers(values, [GOOSE_SECTION]):
        return replace(_GOOSE, name=name, title=title), False
    section = next((key for key in SECTIONS if listed_servers(values, [key]) is not None), None)
    if section is None:
        raise ConfigError(f"{file}: lists no servers", hint=f"list servers under one of {', '.join(SECTIONS)}")
    return Host(name=name, title=title, section=section), False


def describe_server(entry: Any) -> dict[str, str]:
    """Return how a server is reached, without parts that may be secret: no arguments, no path, no query."""
    if is_extension(entry):
        return {"transport": "extension", "at": ""}
    command = command_of(entry)
    command = command.get("path") if isinstance(command, Mapping) else command
    command = command[0] if isinstance(command, list) and command else command
    if isinstance(command, str):
        program = command if Path(command).is_file() else command.split(" ")[0]
        return {"transport": "stdio", "at": program.replace("\\", "/").rsplit("/", 1)[-1]}
    sse = isinstance(entry, Mapping) and entry.get("type") == "sse"
    return {"transport": "sse" if sse else "http", "at": host_name(entry)}


def command_of(entry: Any) -> Any:
    """Return the command of an entry, in whatever form the host writes it, or None."""
    return entry.get("command") or entry.get("cmd") if isinstance(entry, Mapping) else None


def host_name(entry: Any) -> str:
    """Return the host in the URL of an entry, or ""."""
    from urllib.parse import urlsplit

    entry = entry if isinstance(entry, Mapping) else {}
    url = next((entry[name] for name in _URLS if isinstance(entry.get(name), str)), "")
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _has_comments(file: Path, path: tuple[str, ...]) -> bool:
    text = read_text(file)
    if file.suffix in YAML:
        return yaml_edit.has_comments(text, path)
    if file.suffix == ".toml":
        return toml_edit.has_comments(text, path)
    span = find_value(plain_json(text), path)
    return span is not None and text[slice(*span)] != without_comments(text)[slice(*span)]
