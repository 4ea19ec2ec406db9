"""`toolscout doctor`: what is wrong with this installation, and the fix for each finding."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

import typer

from toolscout.cli import options
from toolscout.errors import ToolscoutError
from toolscout.settings import Settings, sqlite_file, unknown_variables
from toolscout.telemetry import without_password

_FILL = "`toolscout index --tools F.jsonl`, or `--sample` to try it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    what: str
    ok: bool
    detail: str
    fix: str = ""


def doctor(config: options.ConfigFiles = None, store: options.Store = None, json: options.Json = False) -> None:
    """Check Python, settings, model, store, catalogue, config and servers; exit 1 when something is wrong.

    Every server of the config is started once, to see whether it answers.

    Example: `toolscout doctor --config mcp.json`
    """
    from rich.text import Text

    from toolscout.cli.output import console, print_json

    findings = options.run(examine(store, config or []))
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        out = console()
        for finding in findings:
            mark = ("ok  ", "green") if finding.ok else ("bad ", "bold red")
            out.print(Text.assemble(mark, (f"{finding.what}: ", "bold"), finding.detail))
            if finding.fix:
                out.print(Text(f"    fix: {finding.fix}"))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


async def examine(store: str | None, configs: Sequence[Path] = ()) -> list[Check]:
    """Look at everything, going on after a finding where that is possible."""
    version = ".".join(map(str, sys.version_info[:3]))
    findings = [Check(what="python", ok=sys.version_info >= (3, 11), detail=version, fix="")]
    try:
        settings = Settings.from_env()
        unknown = "; ".join(unknown_variables())
        fix = "correct or unset it: it does nothing; docs/settings.md lists them all" if unknown else ""
        detail = unknown or "every TOOLSCOUT_* variable is understood"
        findings.append(Check(what="settings", ok=not unknown, detail=detail, fix=fix))
    except ToolscoutError as error:
        return [*findings, _bad("settings", error)]
    settings = replace(settings, store=store if store is not None else settings.store)
    findings.extend(_operating(settings))
    findings.append(await _model(settings))
    findings.extend(await _catalogue(settings))
    findings.extend(await _servers(configs, settings))
    return findings


def _operating(settings: Settings) -> list[Check]:
    """Look at the policy and the audit log, which a gateway needs before anything else."""
    from toolscout.policy.policy_file import read_policy
    from toolscout.telemetry import AuditLog

    findings = []
    try:
        if settings.policy:
            policy = read_policy(settings.policy)
            said = f"{settings.policy}, {len(policy.allow)} allow, {len(policy.deny)} deny"
            findings.append(Check(what="policy", ok=True, detail=said))
    except ToolscoutError as error:
        findings.append(_bad("policy", error))
    try:
        path = options.audit_file(settings)
        if settings.audit or path.exists():
            AuditLog.at(str(path), 0).check()
            findings.append(Check(what="audit log", ok=True, detail=str(path)))
    except ToolscoutError as error:
        findings.append(_bad("audit log", error))
    return findings


async def _servers(configs: Sequence[Path], settings: Settings) -> list[Check]:
    from toolscout.cli.serve import config_files
    from toolscout.config import read_config
    from toolscout.scout.servers import check_servers

    files = config_files(list(configs))
    if not files:
        return [Check(what="config", ok=True, detail="none", fix="`toolscout import` finds those of your agent hosts")]
    try:
        config = read_config(files)
    except ToolscoutError as error:
        return [_bad("config", error)]
    found = [Check(what="config", ok=True, detail=f"{', '.join(map(str, files))}, {len(config.servers)} servers")]
    found.extend(Check(what="config", ok=True, detail=note) for note in config.notes)
    for status in await check_servers(config, settings):
        ok = status.state in ("ready", "disabled")
        detail = f"{status.state}, {status.tools} tools" if ok else status.detail
        stderr = status.stderr[-300:].strip()
        fix = (status.hint or "start it by hand and read what it says") + (f"; it says: {stderr}" if stderr else "")
        found.append(Check(what=f"server {status.title}", ok=ok, detail=detail, fix="" if ok else fix))
    return found


async def _model(settings: Settings) -> Check:
    from toolscout.scout.parts import open_embedder

    try:
        embedder = open_embedder(settings)
        if embedder is None:
            return Check(what="model", ok=True, detail="none: searching by words alone")
        try:
            vectors = await embedder.embed_queries(["is anybody there?"])
        finally:
            await embedder.close()
    except ToolscoutError as error:
        return _bad("model", error)
    return Check(what="model", ok=True, detail=f"{embedder.model_id}, {vectors.shape[1]} dimensions")


async def _catalogue(settings: Settings) -> list[Check]:
    from toolscout.models import Caller
    from toolscout.scout.parts import opened_store

    where, file = without_password(settings.store_url), sqlite_file(settings.store_url)
    if file and not file.exists() and _may_be_made(file):
        return [
            Check(what="store", ok=True, detail=f"{where}, not made yet"),
            Check(what="catalogue", ok=True, detail="0 tools", fix=_FILL),
        ]
    try:
        async with opened_store(settings) as store:
            overview = await store.overview(Caller())
            behind = len(await store.unembedded(overview.model_id)) if overview.model_id else 0
    except ToolscoutError as error:
        return [_bad("store", error)]
    findings = [Check(what="store", ok=True, detail=f"{where}, generation {overview.generation}")]
    fix = "" if overview.total else _FILL
    findings.append(Check(what="catalogue", ok=True, detail=f"{overview.total:,} tools", fix=fix))
    if behind:
        fix = "`toolscout index` embeds them"
        findings.append(
            Check(what="vectors", ok=False, detail=f"{behind:,} tools have none of {overview.model_id}", fix=fix)
        )
    in_memory = not where.startswith("postgres") or overview.total <= settings.resident_tools
    if in_memory and overview.total > settings.exact_rows and find_spec("faiss") is None:
        detail = f"{overview.total:,} tools are searched exactly, which is slow past {settings.exact_rows:,}"
        findings.append(Check(what="large catalogue", ok=False, detail=detail, fix="pip install 'toolscout[large]'"))
    return findings


def _may_be_made(file: Path) -> bool:
    """Tell whether a file may be made there, without making it; where not, opening it says why."""
    nearest = next(folder for folder in file.absolute().parents if folder.exists())
    try:
        with TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False


def _bad(what: str, error: ToolscoutError) -> Check:
    return Check(what=what, ok=False, detail=error.message, fix=error.hint)
