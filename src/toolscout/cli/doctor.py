"""`toolscout doctor`: check this installation, and show a fix for each problem."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile

import typer

from toolscout.cli import options
from toolscout.errors import ToolscoutError
from toolscout.ports import Store
from toolscout.settings import Settings, sqlite_file, unknown_variables
from toolscout.telemetry import without_password

_OUTPUT_CHARS = 1_000
_FILL = "index your tools with `toolscout index`, or try `toolscout index --sample`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check."""

    what: str
    ok: bool
    detail: str
    fix: str = ""
    output: str = ""
    """The end of what a server printed to its standard error."""


def doctor(config: options.ConfigFiles = None, store: options.Store = None, json: options.Json = False) -> None:
    """Check Python, settings, model, store, catalogue, config and servers. Exits with 1 if something is wrong.

    Every server of the config is started once, to see whether it answers.

    Example: `toolscout doctor --config mcp.json`
    """
    from rich.text import Text

    from toolscout.cli.output import console, print_json, safe

    checks = options.run(run_checks(store, config or []))
    if json:
        print_json([asdict(check) for check in checks])
    else:
        out = console()
        for check in checks:
            mark = ("ok  ", "green") if check.ok else ("bad ", "bold red")
            out.print(Text.assemble(mark, (f"{safe(check.what)}: ", "bold"), safe(check.detail)), soft_wrap=True)
            if check.fix:
                out.print(Text(f"    {'next' if check.ok else 'fix'}: ") + safe(check.fix), soft_wrap=True)
            if check.output:
                out.print(Text("    | ") + safe(check.output), soft_wrap=True)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


async def run_checks(store: str | None, configs: Sequence[Path] = ()) -> list[Check]:
    """Run all checks. Only unreadable settings stop the rest."""
    version = ".".join(map(str, sys.version_info[:3]))
    checks = [Check(what="python", ok=sys.version_info >= (3, 11), detail=version, fix="")]
    try:
        settings = Settings.from_env()
        unknown = "; ".join(unknown_variables())
        fix = "correct or unset it, as it has no effect: docs/settings.md lists all settings" if unknown else ""
        detail = unknown or "every TOOLSCOUT_* variable is known"
        checks.append(Check(what="settings", ok=not unknown, detail=detail, fix=fix))
    except ToolscoutError as error:
        return [*checks, _bad("settings", error)]
    settings = replace(settings, store=store if store is not None else settings.store)
    checks.extend(_operating(settings))
    checks.append(await _model(settings))
    checks.extend(await _catalogue(settings))
    checks.extend(await _servers(configs, settings))
    return checks


def _operating(settings: Settings) -> list[Check]:
    """Check the policy and the audit log, without which a gateway does not start."""
    from toolscout.policy.policy_file import read_policy
    from toolscout.telemetry import AuditLog

    checks = []
    try:
        if settings.policy:
            policy = read_policy(settings.policy)
            detail = f"{settings.policy}, {len(policy.allow)} allow, {len(policy.deny)} deny"
            checks.append(Check(what="policy", ok=True, detail=detail))
    except ToolscoutError as error:
        checks.append(_bad("policy", error))
    try:
        path = options.audit_file(settings)
        if settings.audit or path.exists():
            AuditLog.at(str(path), 0).check()
            checks.append(Check(what="audit log", ok=True, detail=str(path)))
    except ToolscoutError as error:
        checks.append(_bad("audit log", error))
    return checks


async def _servers(configs: Sequence[Path], settings: Settings) -> list[Check]:
    from toolscout.cli.serve import config_files
    from toolscout.config import read_config
    from toolscout.scout.server_check import check_servers

    files = config_files(list(configs))
    if not files:
        return [
            Check(what="config", ok=True, detail="none", fix="find those of your agent hosts with `toolscout import`")
        ]
    try:
        config = read_config(files, partial=True)
    except ToolscoutError as error:
        return [_bad("config", error)]
    checks = [Check(what="config", ok=True, detail=f"{', '.join(map(str, files))}, {len(config.servers)} servers")]
    checks.extend(Check(what="config", ok=True, detail=note) for note in config.notes)
    async with _accounts_store(settings) as store:
        statuses = await check_servers(config, settings, store)
    for status in statuses:
        ok = status.state in ("ready", "disabled")
        detail = f"{status.state}, {status.tools} tools" if ok else status.detail
        fix = "" if ok else status.hint or "start it by hand and read its output"
        output = "" if ok else status.stderr[-_OUTPUT_CHARS:].strip()
        checks.append(Check(what=f"server {status.title}", ok=ok, detail=detail, fix=fix, output=output))
    return checks


@asynccontextmanager
async def _accounts_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the store for the accounts in it, or an empty one if it cannot be opened. Its own check says why."""
    from toolscout.scout.parts import opened_store

    file = sqlite_file(settings.store_url)
    async with AsyncExitStack() as stack:
        store: Store | None = None
        if file is None or file.exists():
            with suppress(ToolscoutError):
                store = await stack.enter_async_context(opened_store(settings))
        if store is None:
            store = await stack.enter_async_context(opened_store(replace(settings, store="memory:")))
        yield store


async def _model(settings: Settings) -> Check:
    from toolscout.scout.parts import open_embedder

    try:
        embedder = open_embedder(settings)
        if embedder is None:
            return Check(what="model", ok=True, detail="none: searching by words alone")
        try:
            vectors = await embedder.embed_queries(["find a tool"])
        finally:
            await embedder.close()
    except ToolscoutError as error:
        return _bad("model", error)
    return Check(what="model", ok=True, detail=f"{embedder.model_id}, {vectors.shape[1]} dimensions")


async def _catalogue(settings: Settings) -> list[Check]:
    from toolscout.models import Caller
    from toolscout.scout.parts import find_damage, opened_store

    where, file = without_password(settings.store_url), sqlite_file(settings.store_url)
    if file and not file.exists() and _can_create(file):
        return [
            Check(what="store", ok=True, detail=f"{where}, not created yet"),
            Check(what="catalogue", ok=True, detail="0 tools", fix=_FILL),
        ]
    try:
        async with opened_store(settings) as store:
            overview = await store.overview(Caller())
            unembedded = len(await store.unembedded(overview.model_id)) if overview.model_id else 0
    except ToolscoutError as error:
        damage = find_damage(file) if file and file.is_file() else ""
        return [_damaged(where, damage) if damage else _bad("store", error)]
    damage = find_damage(file) if file else ""
    fine = Check(what="store", ok=True, detail=f"{where}, generation {overview.generation}")
    checks = [_damaged(where, damage) if damage else fine, *_readable_by_others(file)]
    fix = "" if overview.total else _FILL
    checks.append(Check(what="catalogue", ok=True, detail=f"{overview.total:,} tools", fix=fix))
    if unembedded:
        fix = "`toolscout index` embeds them"
        checks.append(
            Check(
                what="vectors", ok=False, detail=f"{unembedded:,} tools have no vector of {overview.model_id}", fix=fix
            )
        )
    return checks


def _readable_by_others(file: Path | None) -> list[Check]:
    """Report a file that other accounts of the machine can read, as those of early versions."""
    if file is None or os.name == "nt" or not (file.stat().st_mode & 0o044 and file.parent.stat().st_mode & 0o011):
        return []
    detail = f"other accounts of this machine can read {file}, with the API keys' hashes and the sign-ins in it"
    return [Check(what="store", ok=False, detail=detail, fix=f"chmod 600 {file}")]


def _damaged(where: str, damage: str) -> Check:
    from toolscout.scout.parts import REPAIR

    return Check(what="store", ok=False, detail=f"{where} is damaged: {damage}", fix=REPAIR)


def _can_create(file: Path) -> bool:
    """Tell whether a file can be created, without creating it. If not, opening the store gives the reason."""
    nearest = next(folder for folder in file.absolute().parents if folder.exists())
    try:
        with TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False


def _bad(what: str, error: ToolscoutError) -> Check:
    return Check(what=what, ok=False, detail=error.message, fix=error.hint)
