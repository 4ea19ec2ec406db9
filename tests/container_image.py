"""The Dockerfile without Docker: its steps are carried out in a folder that stands for the root of the image.

Absolute paths of the Dockerfile, and of the systemd unit, are moved below that folder. The base images, the user and a
root that the kernel keeps read-only are what is missing.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dockerfile_parse import DockerfileParser

from servers import run

ROOT = Path(__file__).parent.parent
DOCKERFILE = ROOT / "Dockerfile"
UNIT = ROOT / "deploy" / "toolscout.service"

_ABSOLUTE = re.compile(r"(?<![\w./:])/(opt/toolscout|etc|var/lib)(?![\w])")
_ONLY_FASTER = {"UV_COMPILE_BYTECODE", "UV_LINK_MODE"}

Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage of the Dockerfile, in order."""
    parser = DockerfileParser(fileobj=io.BytesIO(DOCKERFILE.read_bytes()), env_replace=False)
    stages: list[list[Instruction]] = []
    for item in parser.structure:
        if item["instruction"] == "FROM":
            stages.append([])
        if item["instruction"] != "COMMENT":
            stages[-1].append((item["instruction"], item["value"]))
    return stages


def values(stage: list[Instruction], name: str) -> list[str]:
    """Return what a stage says in the instructions of one name."""
    return [value for instruction, value in stage if instruction == name]


def variables(stage: list[Instruction]) -> dict[str, str]:
    """Return the environment that a stage sets."""
    return dict(part.split("=", 1) for value in values(stage, "ENV") for part in shlex.split(value))


def health_command() -> list[str]:
    """Return the command of the health check."""
    (check,) = values(stages()[-1], "HEALTHCHECK")
    return words(check.partition(" CMD ")[2])


def words(value: str) -> list[str]:
    """Read the JSON form of a command."""
    command: list[str] = json.loads(value)
    return command


def unit_lines() -> list[Instruction]:
    """Return the assignments of the systemd unit, in order."""
    lines = [line for line in UNIT.read_text("utf-8").splitlines() if line and line[0] not in "#["]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


@dataclass(frozen=True)
class Installed:
    """What the Dockerfile installs, below a folder."""

    root: Path

    def moved(self, text: str) -> str:
        """Move absolute paths below the folder."""
        return _ABSOLUTE.sub(lambda path: f"{self.root}{path[0]}", text)

    def as_image(self) -> tuple[list[str], dict[str, str]]:
        """Return the command and the environment of a container."""
        final = stages()[-1]
        (entry,), (command,) = values(final, "ENTRYPOINT"), values(final, "CMD")
        environment = {name: self.moved(value) for name, value in variables(final).items()}
        environment["PATH"] = environment["PATH"].replace("$PATH", os.defpath)
        return [self.moved("/opt/toolscout/bin/toolscout"), *words(entry)[1:], *words(command)], environment

    def as_unit(self) -> tuple[list[str], dict[str, str]]:
        """Return the command and the environment of the service."""
        lines = unit_lines()
        (command,) = [value for name, value in lines if name == "ExecStart"]
        given = [value for name, value in lines if name == "Environment"]
        files = [self.moved(value.removeprefix("-")) for name, value in lines if name == "EnvironmentFile"]
        for file in map(Path, files):
            given += file.read_text("utf-8").splitlines() if file.exists() else []
        environment = dict(part.split("=", 1) for value in given for part in shlex.split(value))
        return shlex.split(self.moved(command)), {
            "PATH": os.defpath,
            **{name: self.moved(value) for name, value in environment.items()},
        }

    def files(self) -> set[tuple[str, int]]:
        """Return every file below the folder and the time of its last change, but not those of the data folder."""
        data = self.root / "var" / "lib" / "toolscout"
        paths = (path for path in self.root.rglob("*") if data not in path.parents and not path.is_dir())
        return {(str(path.relative_to(self.root)), path.lstat().st_mtime_ns) for path in paths}


def install(root: Path) -> Installed:
    """Carry out the stage of the Dockerfile that builds, with the uv of the Makefile."""
    installed, source = Installed(root), root / "source"
    source.mkdir(parents=True)
    (root / "var" / "lib" / "toolscout").mkdir(parents=True)
    (root / "etc" / "toolscout").mkdir(parents=True)
    build = stages()[0]
    environment = {
        **{name: installed.moved(value) for name, value in variables(build).items() if name not in _ONLY_FASTER},
        "PATH": f"{ROOT / '.tools' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "UV_PYTHON": sys.executable,
    }
    for instruction, value in build:
        if instruction == "COPY":
            *names, target = value.split()
            for name in names:
                _copy(ROOT / name, source / target / name if target == "./" else source / target)
        elif instruction == "RUN" and not value.startswith("pip install"):  # the Makefile has installed uv
            run("sh", "-c", value, cwd=source, env=environment)
    return installed


def _copy(path: Path, target: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(path, target)


def read_only(folder: Path) -> Iterator[None]:
    """Take the right to write from everything below a folder, until the end."""
    subprocess.run(["chmod", "-R", "a-w", str(folder)], check=True)
    yield
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
