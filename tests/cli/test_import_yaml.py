"""`toolscout import --write` rewrites the YAML of Goose and Continue, and keeps everything that is no server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantees import guarantee
from homes import USER_FILES, read, snapshot, write
from toolscout.config import read_config
from toolscout.config.other_hosts import listed_servers
from toolscout.config.yaml_1_2 import read_yaml
from toolscout.config.yaml_edit import replace_servers
from toolscout.errors import ConfigError

Run = Callable[..., Any]

GOOSE = """# my goose
GOOSE_MODEL: gpt-5  # the large one
extensions:
  developer:
    type: builtin
    enabled: true
  github:
    type: stdio
    cmd: npx
    args: [-y, pkg, --color, no]
    env_keys: [TOKEN]
    envs: {REGION: eu}
    available_tools: [read]

  # the wiki of the team
  wiki:
    type: streamable_http
    uri: https://wiki.example.com/mcp
    headers: {X-Region: $REGION, Authorization: "Bearer ${WIKI_TOKEN}"}
    envs: {REGION: eu}
    env_keys: [WIKI_TOKEN]
# the end
GOOSE_MODE: auto
"""

CONTINUE = """name: Mine
mcpServers:
  - name: github
    command: npx
    args:
      - -y
      - pkg
    env: {TOKEN: "${{ secrets.GITHUB_TOKEN }}"}
  # from the hub
  - uses: someone/memory
  -
    name: wiki
    url: https://wiki.example.com/mcp
    requestOptions:
      headers: {X-Region: eu}
    apiKey: ${{ secrets.wiki/token }}
  - {name: corp, url: "https://corp.example.com/mcp", requestOptions: {proxy: "http://proxy:1"}}
models: []
"""


def changed_by(toolscout: Run, *arguments: str) -> Any:
    (change,) = toolscout("import", *arguments, "--json").json["changes"]
    return change


def test_goose_starts_toolscout_and_keeps_its_own_parts_and_comments(home: Path, toolscout: Run) -> None:
    file = write(home / USER_FILES["goose"], GOOSE)
    before = snapshot(home)
    (found,) = toolscout("import", "--json").json["found"]
    assert found["servers"] == [
        {"name": "github", "transport": "stdio", "at": "npx"},
        {"name": "wiki", "transport": "http", "at": "wiki.example.com"},
    ]
    change = changed_by(toolscout, "--write")
    assert (change["done"], change["servers"]) == ("moved", ["github", "wiki"])
    text = file.read_text("utf-8")
    assert text.startswith(GOOSE[: GOOSE.index("  github:")])
    assert text.endswith(GOOSE[GOOSE.index("# the end") :])
    assert "\n  # the wiki of the team\n" in text
    extensions = read_yaml(text, "")["extensions"]
    assert list(extensions) == ["developer", "toolscout"]
    entry = extensions["toolscout"]
    assert (entry["type"], entry["name"], entry["enabled"]) == ("stdio", "toolscout", True)
    assert entry["args"][-3:] == ["serve", "--config", *change["moved_to"]]
    assert Path(entry["cmd"]).is_absolute()
    assert entry["env_keys"] == ["TOKEN", "WIKI_TOKEN"]
    github, wiki = read_config(change["moved_to"], {"TOKEN": "t", "WIKI_TOKEN": "w"}).servers
    assert (github.args, github.env) == (("-y", "pkg", "--color", "no"), {"TOKEN": "t", "REGION": "eu"})
    assert github.server.tool_overlay("delete").enabled is False
    assert wiki.headers == {"X-Region": "eu", "Authorization": "Bearer w"}
    assert changed_by(toolscout, "--write")["done"] == "unchanged"
    assert changed_by(toolscout, "--undo")["done"] == "restored"
    assert snapshot(home) == before


def test_servers_are_put_back_into_a_file_that_goose_has_written_since(home: Path, toolscout: Run) -> None:
    file = write(home / USER_FILES["goose"], GOOSE)
    changed_by(toolscout, "--write")
    late = "  late:\n    type: stdio\n    cmd: npx\n    env_keys: [ZONE]\n"
    write(file, file.read_text("utf-8").replace("# the end\n", f"{late}# the end\n"))
    assert changed_by(toolscout, "--write")["servers"] == ["late"]
    assert read_yaml(file.read_text("utf-8"), "")["extensions"]["toolscout"]["env_keys"] == [
        "TOKEN",
        "WIKI_TOKEN",
        "ZONE",
    ]
    assert changed_by(toolscout, "--undo")["done"] == "put back"
    restored = read_yaml(file.read_text("utf-8"), "")
    late_entry = {"type": "stdio", "cmd": "npx", "env_keys": ["ZONE"]}
    assert restored["extensions"] == {**read_yaml(GOOSE, "")["extensions"], "late": late_entry}


def test_continue_starts_toolscout_and_hands_its_secrets_on(home: Path, toolscout: Run) -> None:
    file = write(home / USER_FILES["continue"], CONTINUE)
    before = snapshot(home)
    change = changed_by(toolscout, "--write")
    assert (change["done"], change["servers"]) == ("moved", ["github", "wiki"])
    assert change["notes"][0] == "corp stays: the host reaches it with proxy of its own"
    text = file.read_text("utf-8")
    assert "  # from the hub\n  - uses: someone/memory\n" in text
    items = read_yaml(text, "")["mcpServers"]
    assert [item.get("name") for item in items] == ["toolscout", None, "corp"]
    secrets = {"GITHUB_TOKEN": "${{ secrets.GITHUB_TOKEN }}", "wiki_token": "${{ secrets.wiki/token }}"}
    assert items[0]["env"] == secrets
    github, wiki = read_config(change["moved_to"], {"GITHUB_TOKEN": "g", "wiki_token": "w"}).servers
    assert github.env == {"TOKEN": "g"}
    assert wiki.headers == {"X-Region": "eu", "Authorization": "Bearer w"}
    with pytest.raises(ConfigError, match="the variable GITHUB_TOKEN is not set"):
        read_config(change["moved_to"], secrets)
    assert changed_by(toolscout, "--undo")["done"] == "restored"
    assert snapshot(home) == before


def test_each_file_in_continues_folder_starts_a_toolscout_of_its_own(home: Path, toolscout: Run) -> None:
    folder = home / ".continue" / "mcpServers"
    yaml = write(folder / "a.yaml", "name: A\nmcpServers:\n  - name: github\n    command: npx\n")
    json = write(folder / "b.json", {"mcpServers": {"mail": {"command": "npx"}}})
    before = snapshot(home)
    changes = toolscout("import", "continue", "--write", "--json").json["changes"]
    assert [change["done"] for change in changes] == ["moved", "moved"]
    assert read_yaml(yaml.read_text("utf-8"), "")["mcpServers"][0]["name"] == "toolscout-a"
    assert list(read(json)["mcpServers"]) == ["toolscout-b"]
    assert [server.title for change in changes for server in read_config(change["moved_to"]).servers] == [
        "github",
        "mail",
    ]
    toolscout("import", "--undo")
    assert snapshot(home) == before


def test_continues_files_of_a_project_are_rewritten_only_when_named(home: Path, toolscout: Run) -> None:
    file = write(home / "project" / ".continue" / "mcpServers" / "a.yaml", "mcpServers:\n- {name: g, command: npx}\n")
    assert changed_by(toolscout, "--write")["done"] == "skipped"
    assert changed_by(toolscout, str(file), "--write")["done"] == "moved"
    assert "name: toolscout-project-a" in file.read_text("utf-8")


@guarantee("import:rights")
def test_what_goose_and_continue_never_allow_stays_forbidden(home: Path, toolscout: Run) -> None:
    write(home / USER_FILES["goose"], GOOSE)
    permissions = {
        "user": {"always_allow": ["github__read"], "never_allow": ["github__merge"]},
        "smart_approve": {"ask_before": ["github__x"]},
    }
    write(home / ".config" / "goose" / "permission.yaml", permissions)
    write(home / USER_FILES["continue"], CONTINUE)
    write(home / ".continue" / "permissions.yaml", "allow: [Read, list_issues]\nexclude: [delete_repo, Bash]\n")
    goose, continue_ = toolscout("import", "--write", "--json").json["changes"]
    assert "never_allow: github__merge forbids merge of github: it is switched off in toolscout too" in goose["notes"]
    (lost,) = [note for note in goose["notes"] if "no longer match" in note]
    assert "always_allow: github__read" in lost
    assert "github__x" not in lost
    (server, _) = read_config(continue_["moved_to"], {"GITHUB_TOKEN": "g", "wiki_token": "w"}).servers
    assert server.server.tool_overlay("delete_repo").enabled is False
    assert server.server.tool_overlay("Bash").enabled is None
    (lost,) = [note for note in continue_["notes"] if "no longer match" in note]
    assert "allow: list_issues" in lost
    assert "Read" not in lost


NEW = {"cmd": "/x", "args": ["serve"], "type": "stdio"}


@pytest.mark.parametrize(
    "text",
    [
        "extensions: {a: {type: stdio, cmd: x}, b: {type: builtin}}  # all\nz: 1\n",
        "extensions:\n  a:\n    type: stdio\n    cmd: x",
        "z: 1\r\nextensions:\r\n  b: {type: builtin}\r\n  a: {type: stdio, cmd: x}\r\n# end\r\n",
        "extensions:\n    a: &a\n        type: stdio\n        cmd: x\n    b:\n        type: builtin\n\n\nz: 1\n",
        '{"extensions": {"a": {"type": "stdio", "cmd": "x"}}, "z": 1}',
        "extensions:\n  a:\n    type: stdio\n    cmd: x\n    args:\n      - |\n        # not a comment\n        text\n",
    ],
)
def test_whatever_the_layout_nothing_but_the_servers_changes(text: str) -> None:
    path = ("extensions",)
    changed = replace_servers(text, path, {"toolscout": NEW})
    before, after = read_yaml(text, ""), read_yaml(changed, "")
    assert listed_servers(after, path) == {"toolscout": NEW}
    assert before.get("z") == after.get("z")
    assert before["extensions"].get("b") == after["extensions"].get("b")
    assert ("\r\n" in text) == ("\r\n" in changed)
    back = replace_servers(changed, path, listed_servers(before, path) or {})
    assert read_yaml(back, "") == before


def test_a_file_that_cannot_be_rewritten_without_a_change_elsewhere_is_refused() -> None:
    text = "extensions:\n  a: {type: stdio, cmd: x, envs: &shared {A: b}}\nz: *shared\n"
    with pytest.raises(ConfigError, match="cannot be rewritten without changing the rest"):
        replace_servers(text, ("extensions",), {"toolscout": NEW})


def test_comments_inside_a_server_are_reported(home: Path, toolscout: Run) -> None:
    note = "comments among its servers are only in the backup"
    write(home / USER_FILES["goose"], GOOSE.replace("    cmd: npx\n", "    cmd: npx  # from npm\n"))
    assert note in changed_by(toolscout, "--write")["notes"]
    toolscout("import", "--undo")
    write(home / USER_FILES["goose"], GOOSE)
    assert note not in changed_by(toolscout, "--write")["notes"]
