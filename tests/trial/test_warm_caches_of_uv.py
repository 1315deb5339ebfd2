"""A suite that installs its tools by uv: without a network the second time, and never with the reference solution."""

from __future__ import annotations

import io
import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.trial.trial import Trial, TrialOptions

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

pytestmark = pytest.mark.slow

WHEEL = "tool-1.0-py3-none-any.whl"
PROJECT = {
    "environment/pyproject.toml": """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "ledger"
version = "1.0"
""",
    "environment/ledger.py": 'ANSWER = "none yet"\n',
    "environment/backend.py": """
import zipfile

def build_wheel(directory, settings=None, metadata=None):
    name = "ledger-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{directory}/{name}", "w") as wheel:
        wheel.write("ledger.py")
        info = "ledger-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: ledger\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
""",
    "steps/round-1/solution/solve.sh": "echo 'ANSWER = \"right\"' > ledger.py",
}
DOCKERFILE = """
FROM python:3.11-slim-bookworm
WORKDIR /app
COPY uv /app/uv
COPY pyproject.toml ledger.py backend.py /app/
"""
SUITE = """
/app/uv venv -q -p python3 /tmp/venv
echo 'ledger @ file:///app' > /tmp/wanted
VIRTUAL_ENV=/tmp/venv /app/uv pip install -q tool -r /tmp/wanted
answer=$(/tmp/venv/bin/python -I -c 'import ledger, tool; print(tool.NAME, ledger.ANSWER)')
echo "the answer: $answer"
[ "$answer" = "tool right" ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
"""


def wheel() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("tool.py", 'NAME = "tool"\n')
        archive.writestr("tool-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
        archive.writestr("tool-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tool-1.0.dist-info/RECORD", "")
    return stream.getvalue()


@dataclass
class Index:
    """A package index with one package, for as long as it is reachable."""

    url: str
    reachable: bool = True
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def index() -> Iterator[Index]:
    contents = {
        "/simple/tool/": ("text/html", f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()),
        f"/{WHEEL}": ("application/octet-stream", wheel()),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            kind, body = contents.get(self.path, ("", b"")) if found.reachable else ("", b"")
            self.send_response(200 if body else 503 if not found.reachable else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "max-age=86400, public")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Index(f"http://127.0.0.1:{server.server_port}/simple")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


@pytest.mark.nightly
def test_the_second_run_asks_no_index_and_builds_what_the_agent_left(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    index: Index,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    toml = f'[verifier]\nnetwork_mode = "public"\nenv = {{ UV_DEFAULT_INDEX = "{index.url}" }}\n'
    task = make_task(SUITE, toml=toml, files=PROJECT, dockerfile=DOCKERFILE)
    uv = shutil.which("uv")
    assert uv is not None
    shutil.copy2(uv, task.environment_directory / "uv")
    options = TrialOptions(warm_caches=True)
    oracle = Trial(task, OracleAgent(), engine, options=options)
    assert [record.outcome for record in finish(oracle)] == ["passed"], oracle.output_of(1)
    assert f"/{WHEEL}" in index.asked
    index.reachable = False
    index.asked.clear()
    # pyproject.toml is the image's, and by that alone uv takes a wheel that it once built for the same project.
    cheat = Trial(task, scripted("true"), engine, options=options)
    assert [record.outcome for record in finish(cheat)] == ["failed"]
    assert "the answer: tool none yet" in cheat.output_of(1)
    assert index.asked == []
