"""The task of :mod:`benchmarks.real_suite`, and the package index that its suites install their tools from."""

from __future__ import annotations

import contextlib
import functools
import http.server
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CASES = (15, 35, 55, 75, 100)
"""How many cases the suites have, each of which starts the program."""
_LATENCY = 0.05  # seconds for an answer of the index, as from a registry some way off
_PADDING = 700  # MB that make an image of 1 GB
_DATA = 300  # MB that the first turn writes
_TRIES = 15  # times that a solution starts the program, as an agent tries out its work

_DOCKERFILE = """
FROM python:3.11-slim-bookworm
RUN head -c {padding}M /dev/urandom > /opt/padding && useradd --create-home tester
COPY uv /usr/local/bin/uv
COPY wheels /opt/wheels
WORKDIR /app
COPY pyproject.toml app.py ./
RUN uv sync --quiet --no-index --find-links /opt/wheels --python python3 && chmod -R a+rX /app
"""
_PROJECT = """
[project]
name = "accounts"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["click", "pydantic", "rich"]

[project.scripts]
accounts = "app:main"

[build-system]
requires = ["uv_build"]
build-backend = "uv_build"

[tool.uv]
package = false
"""
_PROGRAM = """
import click
import pydantic
import rich.console
import rich.table

KNOWN = 0


class Entry(pydantic.BaseModel):
    number: int


@click.command()
@click.argument("number", type=int)
def main(number):
    entry = Entry(number=number)
    table = rich.table.Table("number", "known")
    table.add_row(str(entry.number), str(entry.number < KNOWN))
    rich.console.Console().print(table)


if __name__ == "__main__":
    main()
"""
_SOLVE = """
set -e
sed -i 's/^KNOWN = .*/KNOWN = {known}/' app.py
{data}for number in $(seq {tries}); do uv run --no-sync --offline python app.py "$number" | grep -q True; done
"""
_WRITE_DATA = "mkdir -p data; for part in $(seq {size}); do head -c 1000000 /dev/urandom > data/$part; done\n"
_TEST_SH = """
here=$(dirname "$0")
chmod -R a+rX /app
uv tool run --quiet --default-index {index} --with pytest-json-report --python python3 \\
  pytest -q -p no:cacheprovider "$here/test_accounts.py" --json-report --json-report-file=/logs/verifier/report.json
if [ $? = 0 ]; then done=1; else done=0; fi
echo "{{\\"reward\\": $done, \\"ran\\": 1}}" > /logs/verifier/reward.json
"""
_TESTS = """
import subprocess

import pytest


@pytest.mark.parametrize("number", range({cases}))
def test_a_number_is_known(number):
    command = ["runuser", "-u", "tester", "--", "uv", "run", "--no-sync", "--offline", "python", "app.py", str(number)]
    done = subprocess.run(command, cwd="/app", capture_output=True, text=True, check=True)
    assert "True" in done.stdout
"""


def fetch_wheels(directory: Path) -> Path:
    """Download the wheels of program and suites, and of uv; raises CalledProcessError without a network."""
    wheels = directory / "wheels"
    wanted = ["uv", "pytest", "pytest-json-report", "click", "pydantic", "rich"]
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version=3.11"]
    subprocess.run([*argv, "--dest", str(wheels), *wanted], check=True, capture_output=True)
    return wheels


def write_real_task(directory: Path, wheels: Path, index: str) -> None:
    """Write the task; ``index`` is the URL of the package index."""
    environment = directory / "environment"
    (environment / "wheels").mkdir(parents=True)
    for wheel in wheels.glob("*.whl"):
        if wheel.name.startswith("uv-"):
            _unpack_program(wheel, environment / "uv")
        else:
            (environment / "wheels" / wheel.name).write_bytes(wheel.read_bytes())
    (environment / "Dockerfile").write_text(_DOCKERFILE.format(padding=_PADDING).lstrip())
    (environment / "pyproject.toml").write_text(_PROJECT.lstrip())
    (environment / "app.py").write_text(_PROGRAM.lstrip())
    toml = ['schema_version = "1.4"']
    for number, cases in enumerate(CASES, 1):
        toml += ["[[steps]]", f'name = "round-{number}"', "min_reward = {ran = 0.0}"]
        step = directory / "steps" / f"round-{number}"
        for name in ("solution", "tests"):
            (step / name).mkdir(parents=True)
        (step / "instruction.md").write_text(f"Let the program know all numbers below {cases}.\n")
        data = _WRITE_DATA.format(size=_DATA) if number == 1 else ""
        (step / "solution" / "solve.sh").write_text(_SOLVE.format(known=cases, data=data, tries=_TRIES - 1).lstrip())
        (step / "tests" / "test.sh").write_text(_TEST_SH.format(index=index).lstrip())
        (step / "tests" / "test_accounts.py").write_text(_TESTS.format(cases=cases).lstrip())
    (directory / "task.toml").write_text("\n".join(toml) + "\n")


def _unpack_program(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/scripts/uv"))
        target.write_bytes(archive.read(name))
    target.chmod(0o755)


@contextlib.contextmanager
def package_index(wheels: Path) -> Iterator[str]:
    """Serve wheels as a package index that containers can reach, and yield its URL."""
    for wheel in wheels.glob("*.whl"):
        project = wheels / "simple" / wheel.name.partition("-")[0].replace("_", "-").lower()
        project.mkdir(parents=True, exist_ok=True)
        (project / "index.html").write_text(f'<a href="/{wheel.name}">{wheel.name}</a>\n')
    handler = functools.partial(_Index, directory=str(wheels))
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{_gateway()}:{server.server_port}/simple"
        finally:
            server.shutdown()


def _gateway() -> str:
    """The address of this machine on the engine's default network; containers of all networks reach it."""
    # Asked from inside, because not every engine tells it.
    look = ["docker", "run", "--rm", "python:3.11-slim-bookworm", "cat", "/proc/net/route"]
    routes = subprocess.run(look, check=True, capture_output=True, text=True).stdout.splitlines()
    (default,) = (fields[2] for line in routes if (fields := line.split())[1] == "00000000")
    return socket.inet_ntoa(bytes.fromhex(default)[::-1])


class _Index(http.server.SimpleHTTPRequestHandler):
    def send_head(self) -> Any:
        time.sleep(_LATENCY)
        return super().send_head()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
