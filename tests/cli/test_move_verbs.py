"""`toolscout export` and `import-catalogue`: a catalogue as a file, or through a pipe."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from downstreams import bounded_memory
from guarantees import guarantee
from toolscout.cli import archive

HEADER = b'{"format":"toolscout-catalogue","version":1,"model":""}\n'


@pytest.fixture
def copy(tmp_path):
    return f"sqlite:///{tmp_path / 'copy.db'}"


@pytest.mark.parametrize("name", ["catalogue.jsonl", "catalogue.jsonl.gz"])
def test_a_catalogue_is_exported_to_a_file_and_imported_into_another_store(
    toolscout, sample_store, copy, tmp_path, embedder, name
):
    path = tmp_path / name
    out = toolscout("export", str(path), "--store", sample_store)
    assert (out.code, out.out) == (0, "")
    assert "exported " in out.err
    assert path.read_bytes()[:2] == (b"\x1f\x8b" if name.endswith(".gz") else b'{"')
    before = embedder.documents
    came = toolscout("import-catalogue", str(path), "--store", copy)
    assert (came.code, came.err.replace("imported", "exported")) == (0, out.err)
    assert embedder.documents == before
    for query in ("email the team", "create an issue", "what is the weather"):
        there, here = (toolscout("search", query, "--store", url, "--json").json for url in (sample_store, copy))
        assert [(tool["key"], tool["score"]) for tool in there["tools"]] == [
            (tool["key"], tool["score"]) for tool in here["tools"]
        ]
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


@guarantee("catalog:archive")
@pytest.mark.parametrize("lines", [False, True], ids=["one line", "many lines"])
def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(toolscout, copy, tmp_path, monkeypatch, lines):
    monkeypatch.setattr(archive, "_UNPACKED_BYTES", 1_000_000)
    path = tmp_path / "bomb.jsonl.gz"
    row = b'{"kind":"scope","tenant":"t%07d"}\n'
    data = b"".join(row % number for number in range(400_000)) if lines else b" " * (64 << 20)
    with gzip.open(path, "wb", compresslevel=1 if not lines else 9) as out:
        out.write(HEADER + data)
    if lines:
        monkeypatch.setattr(archive, "_UNPACKED_RATIO", 2)
    with bounded_memory(150):
        refused = toolscout("import-catalogue", str(path), "--store", copy)
    assert refused.code != 0
    assert ("unpacks to more than" if lines else "more than 8,388,608 bytes") in refused.err.replace("\n", " ")


def test_the_summary_is_json_for_programs(toolscout, sample_store, copy, tmp_path):
    path = str(tmp_path / "catalogue.jsonl")
    report = toolscout("export", path, "--store", sample_store, "--json").json
    assert report["tools"] > 100
    assert 0 < report["vectors"] <= report["tools"]
    assert toolscout("import-catalogue", path, "--store", copy, "--json").json == report


def test_decisions_move_and_keys_stay(toolscout, copy, tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLSCOUT_EMBEDDER", "none")
    monkeypatch.setenv("TOOLSCOUT_AUDIT", str(tmp_path / "audit.jsonl"))
    tools, path, store = tmp_path / "tools.jsonl", str(tmp_path / "catalogue.jsonl"), f"sqlite:///{tmp_path / 'a.db'}"
    tools.write_text('{"name": "kept", "server": "a"}\n{"name": "used", "server": "a"}\n')
    toolscout("index", "--tools", str(tools), "--store", store)
    toolscout("approve", "--keep-out", "a__kept", "--store", store)
    toolscout("keys", "create", "--tenant", "acme", "--store", store)
    out = toolscout("export", path, "--store", store)
    assert "1 decision," in out.err
    assert "1 API key not exported: create new ones with `toolscout keys create`" in out.err
    assert (
        "1 tool held back: `toolscout changes --all` shows why"
        in toolscout("import-catalogue", path, "--store", copy).err
    )
    toolscout("index", "--tools", str(tools), "--store", copy)
    assert [tool["key"] for tool in toolscout("list", "--store", copy, "--json").json["tools"]] == ["a__used"]
    assert "a__kept  kept out" in toolscout("changes", "--all", "--store", copy).out
    assert "There are no keys" in toolscout("keys", "list", "--store", copy).out
    assert path in toolscout("audit", "--act", "catalogue.import").out


@pytest.mark.process
def test_a_catalogue_can_be_piped(toolscout, sample_store, copy):
    command = [sys.executable, "-m", "toolscout"]
    out = subprocess.run(
        [*command, "export", "-", "--store", sample_store], capture_output=True, timeout=60, check=True
    )
    assert out.stdout.startswith(b'{"format":"toolscout-catalogue"')
    subprocess.run([*command, "import-catalogue", "-", "--store", copy], input=out.stdout, timeout=60, check=True)
    there, here = (toolscout("list", "--store", url, "--json").json for url in (sample_store, copy))
    assert here["metadata"]["total"] == there["metadata"]["total"] > 100


def test_json_and_a_pipe_exclude_one_another(toolscout, sample_store):
    ran = toolscout("export", "-", "--store", sample_store, "--json")
    assert ran.code == 2
    assert ran.json["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing.jsonl", None, "cannot be read"),
        (
            "broken.jsonl",
            HEADER + b'{"kind":\n',
            "line 2: it is not JSON",
        ),
        ("broken.jsonl.gz", b"this is not compressed", "cannot be read"),
        ("cut.jsonl.gz", gzip.compress(b"x" * 10_000, mtime=0)[:20], "cannot be read"),
        (
            "tools.jsonl",
            b'{"name": "send", "description": "no archive"}\n',
            "line 1: it does not begin",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_changes_nothing(toolscout, copy, tmp_path, name, content, said):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    ran = toolscout("import-catalogue", str(path), "--store", copy)
    assert ran.code == 2
    assert said in ran.err
    assert str(path) in ran.err
    assert toolscout("list", "--store", copy, "--json").json["metadata"]["total"] == 0


def test_a_file_that_cannot_be_written_is_an_error(toolscout, sample_store, tmp_path):
    ran = toolscout("export", str(tmp_path / "no" / "such" / "folder.jsonl"), "--store", sample_store)
    assert ran.code == 2
    assert "cannot be written" in ran.err


@guarantee("secret:nowhere")
def test_catalogues_and_archives_are_for_their_owner_alone_and_never_written_through_a_link(
    toolscout, sample_store, tmp_path
):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "new" / "folder"
    store = folder / "catalogue.db"
    for name in ("out.jsonl", ".out.jsonl.part"):
        (tmp_path / name).symlink_to(victim)
    assert toolscout("export", str(tmp_path / "out.jsonl"), "--store", sample_store).code == 0
    assert toolscout("import-catalogue", str(tmp_path / "out.jsonl"), "--store", f"sqlite:///{store}").code == 0
    assert victim.read_text() == "precious"
    assert not (tmp_path / "out.jsonl").is_symlink()
    assert [path.stat().st_mode & 0o777 for path in (folder, store, tmp_path / "out.jsonl")] == [0o700, 0o600, 0o600]
