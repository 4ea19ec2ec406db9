"""Home folders of users of agent hosts: where each host keeps its servers, and the contents of a folder."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from toolscout.cli.hosts import HOSTS

ENTRY = {"command": "npx", "args": ["-y", "pkg"]}

USER_FILES = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "vscode-insiders": ".config/Code - Insiders/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "gemini": ".gemini/settings.json",
    "kiro": ".kiro/settings/mcp.json",
    "zed": ".config/zed/settings.json",
    "codex": ".codex/config.toml",
    "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "copilot": ".copilot/mcp-config.json",
    "lmstudio": ".lmstudio/mcp.json",
    "roo": ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    "amazon-q": ".aws/amazonq/mcp.json",
    "junie": ".junie/mcp/mcp.json",
    "qwen": ".qwen/settings.json",
    "cline-cli": ".cline/data/settings/cline_mcp_settings.json",
    "goose": ".config/goose/config.yaml",
    "continue": ".continue/config.yaml",
}
SECTION = {host.name: host.section for host in HOSTS}


def write(path: Path, values: Any, *, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values if isinstance(values, str) else json.dumps(values, indent=2), "utf-8")
    path.chmod(mode)
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
