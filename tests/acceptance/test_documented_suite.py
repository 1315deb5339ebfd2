"""The examples of docs/write-tasks.md, run as the suite that they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.verifier.in_container.workspace import Process, RemoteError, Workspace

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

SUITE = Path(__file__).parents[2] / "docs" / "examples" / "test_postage.py"
#: What the examples are about: the program of the task that the page begins with, had it learned a little more.
POSTAGE = """
import argparse
import csv
import http.server
import pathlib
import sys


def price(grams):
    rows = csv.DictReader(pathlib.Path(__file__).with_name("rates.csv").read_text().splitlines())
    return next(int(row["cents"]) for row in rows if int(grams) <= int(row["up_to_grams"]))


class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        weight = self.path[1:]
        self.send_response(200 if weight.isdecimal() else 400)
        self.end_headers()
        if weight.isdecimal():
            self.wfile.write(f"{price(weight)}\\n".encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("grams", nargs="?")
    parser.add_argument("--list", nargs="+", type=argparse.FileType())
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--serve", type=int)
    options = parser.parse_args()
    if options.serve:
        http.server.ThreadingHTTPServer(("127.0.0.1", options.serve), Server).serve_forever()
    files = options.list or ([sys.stdin] if options.ask else [[options.grams]])
    for file in files:
        for line in file:
            print(price(line), flush=True)
"""


def examples() -> str:
    """The module that the page shows in parts."""
    return SUITE.read_text(encoding="utf-8")


@pytest.mark.parametrize("what", [Workspace, Process, RemoteError])
def test_each_call_has_an_example(what: type) -> None:
    names = {name for name in vars(what) if not name.startswith("_")} - {"close"}  # The fixture does that.
    assert {name for name in names if not re.search(rf"\.{name}\b", examples())} == set()


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.nightly
def test_the_examples_pass_as_they_are(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    source = examples()
    write_task(
        rounds=1,
        native={1: source},
        toml='[metadata.evocode]\nverify_in = "separate"\n',
        solve={1: "cp /solution/postage.py /solution/rates.csv ."},
        files={
            "steps/round-1/solution/postage.py": POSTAGE,
            "steps/round-1/solution/rates.csv": "up_to_grams,cents\n100,120\n500,250\n2000,480\n",
        },
    )
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 1}, session.text
    (record,) = session.record().rounds
    assert record.verdict is not None
    names = re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE)
    assert [case.id for case in record.verdict.cases] == [f"round-1/test_native.py::{name}" for name in names]
