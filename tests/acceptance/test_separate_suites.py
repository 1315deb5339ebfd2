"""Native suites apart from the program under test: what a session says of them, from verdicts to ``--pdb``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks, Session
    from tests.acceptance.tasks import WriteNative

pytestmark = pytest.mark.turns(2)

# Nothing in this image can run a suite.
NO_PYTHON = """\
FROM python:3.11-slim-bookworm
RUN rm -rf /usr/local/bin/py* /usr/local/bin/idle* /usr/local/lib/*py* /usr/bin/py* /usr/lib/*py*
WORKDIR /app
"""


def line_test(index: int) -> str:
    """The test module of a round: the program prints the round's line."""
    return f"""
import pytest

@pytest.mark.requirement("line-{index}")
def test_line_{index}(workspace):
    assert "line-{index}" in workspace.run("cat log.txt").stdout.split()
"""


class WriteApart:
    """Writes tasks whose suites run apart."""

    def __init__(self, write_native: WriteNative) -> None:
        self._write = write_native

    def __call__(
        self,
        rounds: int,
        name: str = "a",
        *,
        test: Mapping[int, str] = {},
        toml: str = "",
        dockerfile: str = "",
        **how: object,
    ) -> Path:
        tests = {index: test.get(index, line_test(index)) for index in range(1, rounds + 1)}
        steps = [f'[[steps]]\nname = "round-{index}"' for index in range(1, rounds + 1)]
        files = {"task.toml": "\n\n".join([toml, *steps])}
        if dockerfile:
            files["environment/Dockerfile"] = dockerfile
        return self._write(name, rounds, test=tests, files=files, **how)  # type: ignore[arg-type]


@pytest.fixture
def write_apart(write_native: WriteNative) -> WriteApart:
    """See :class:`WriteApart`."""
    return WriteApart(write_native)


def tells_what_a_round_broke(session: Session) -> None:
    """Assert that a session tells of a second round that lost the first one's line."""
    session.has(
        "round-2 failed: 1 of 2 cases failed (0 new misses, 1 regression)",
        "  round-1/test_line_1.py::test_line_1 [[]round-1 line-1*]",
        "      cat log.txt",
        "      expected: line-1",
        "      actual: line-2",
    )


def test_verdicts_of_several_rounds(write_apart: WriteApart, run_tasks: RunTasks) -> None:
    write_apart(3, solve={2: "echo line-2 > log.txt"})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "failed": 2}
    tells_what_a_round_broke(session)


@pytest.mark.docker
@pytest.mark.nightly
def test_in_docker_the_image_needs_python_for_suites_in_the_fork_alone(
    write_apart: WriteApart, run_tasks: RunTasks
) -> None:
    where = """
import os

def test_where(workspace):
    assert os.path.exists("/.dockerenv")  # And so no sandbox with the system of this machine.
    assert workspace.run("command -v python3").exit_code != 0
"""
    another_image = '[verifier.environment]\ndocker_image = "python:3.11-slim-bookworm"'
    write_apart(2, dockerfile=NO_PYTHON, solve={2: "echo line-2 > log.txt"})
    write_apart(1, "b", dockerfile=NO_PYTHON, toml=another_image, test={1: where})
    write_apart(1, "fork", dockerfile=NO_PYTHON, toml='[metadata.evocode]\nverify_in = "clean"')
    session = run_tasks("tasks", env="docker")
    assert session.outcomes == {"passed": 2, "failed": 1, "errors": 1}
    tells_what_a_round_broke(session)
    assert session.record("b").rounds[0].passed
    assert session.record("fork").rounds[0].outcome == "error"
    session.has("*the image has no Python, which a native suite needs*")


def test_a_suite_that_gives_no_verdict_is_an_error_that_says_why(write_apart: WriteApart, run_tasks: RunTasks) -> None:
    hangs = """
import pytest

def test_a(workspace):
    assert workspace.run("true").exit_code == 0

@pytest.mark.timeout(0)
def test_b(workspace):
    import time
    time.sleep(600)
"""
    task = write_apart(1, "idle", test={1: "def test_nothing():\n    assert True\n"})
    (task / "tests").mkdir(exist_ok=True)
    (task / "tests" / "conftest.py").touch()
    write_apart(1, "mistyped", test={1: "def test_a(workspce):\n    workspce.run('true')\n"})
    dies = "import os\n\ndef test_a(workspace):\n    workspace.run('true')\n    os._exit(3)\n"
    write_apart(1, "dies", test={1: dies})
    write_apart(1, "hangs", test={1: hangs}, toml="[verifier]\ntimeout_sec = 6")
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 4}
    causes = {name: session.record(name).rounds[0].cause for name in ("idle", "mistyped", "dies", "hangs")}
    assert "no test of the suite used the fixture `workspace`" in causes["idle"]
    assert 'verify_in = "clean"' in causes["idle"]
    assert "test_line_1.py:1: fixture 'workspce' not found, used by test_a; known: workspace, " in causes["mistyped"]
    died = "the suite ended with exit code 3 and no report of its own in round-1/test_line_1.py::test_a"
    assert died in causes["dies"]
    # One limit is for the suite as a whole.
    assert "the suite was stopped at its limit of 6 s in round-1/test_line_1.py::test_b" in causes["hangs"]
    for cause in causes.values():
        assert cause.splitlines()[0] in session.text


def test_a_fixture_that_is_not_there_is_told_beside_the_workspace(write_apart: WriteApart, run_tasks: RunTasks) -> None:
    test = "import pytest\n\n@pytest.fixture\ndef clock():\n    pass\n\ndef test_a(klock, workspace):\n    pass\n"
    write_apart(1, test={1: test})
    assert "known: clock, workspace" in run_tasks("tasks").record().rounds[0].cause


def test_a_program_that_hangs_is_named_where_it_used_up_the_time_of_its_suite(
    write_apart: WriteApart, run_tasks: RunTasks
) -> None:
    hangs = """
import pytest

@pytest.mark.timeout(0)
def test_a(workspace):
    while workspace.run("sleep 600", timeout=1).timed_out:
        pass
"""
    write_apart(1, test={1: hangs}, toml="[verifier]\ntimeout_sec = 8")
    session = run_tasks("tasks")
    assert re.search(
        r"stopped at its limit of 8 s in round-1/test_line_1.py::test_a, after \d calls of the program reached their "
        r"timeouts: the program may hang, in a check the solution;",
        session.record().rounds[0].cause,
    )


@pytest.mark.nightly
def test_a_program_that_runs_when_the_suite_is_stopped_is_not_waited_for(
    write_apart: WriteApart, run_tasks: RunTasks
) -> None:
    hangs = """
import pytest

@pytest.mark.timeout(0)
def test_a(workspace):
    workspace.run("sleep 600", timeout=600)
"""
    write_apart(1, test={1: hangs}, toml="[verifier]\ntimeout_sec = 6")
    session = run_tasks("tasks")
    session.has("*the suite was stopped at its limit of 6 s in round-1/test_line_1.py::test_a*")


@pytest.mark.nightly
def test_what_programs_do_to_a_case_is_nothing_to_the_others(write_apart: WriteApart, run_tasks: RunTasks) -> None:
    """One hangs, a server does not start in a fixture, and one is left running."""
    tests = """
import pytest

@pytest.mark.timeout(2)
def test_hangs(workspace):
    assert workspace.run("sleep 1000").exit_code == 0

@pytest.fixture
def server(workspace):
    workspace.popen(["false"])
    workspace.wait_for_port(8123, timeout=0.1)

def test_server(server):
    pass

def test_starts(workspace):
    workspace.popen("echo ready; exec sleep 1234").read_until("ready")
    assert "1234" in workspace.run("cat /proc/[0-9]*/cmdline | tr '\\\\0' ' '").stdout

def test_looks(workspace):
    assert "1234" not in workspace.run("cat /proc/[0-9]*/cmdline | tr '\\\\0' ' '").stdout
"""
    write_apart(1, test={1: tests})
    session = run_tasks("tasks")
    assert session.outcomes == {"failed": 1}
    session.has(
        "round-1 failed: 2 of 4 cases failed*",
        "  round-1/test_line_1.py::test_hangs *",
        "      sleep 1000",
        "*actual: killed at its timeout*",
        "  round-1/test_line_1.py::test_server *",
        "*nobody listens at port 8123 of the workspace*",
    )


@pytest.mark.nightly
def test_failing_cases_run_again_with_pdb(write_apart: WriteApart, person: AtTerminal) -> None:
    write_apart(1, solve={1: "echo wrong > log.txt"})
    person.pytest("--pdb", "tasks")
    person.sees("(Pdb)")
    person.type("p workspace.run('cat log.txt').stdout\n")
    person.sees("wrong\\n")
    person.type("continue\n")
    person.sees("the session goes on")
