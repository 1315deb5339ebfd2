"""``evocode shell``: somebody at a terminal looks at what a round left."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import choose_engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import SnapshotFile
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests.acceptance.tasks import task_writer
from tests.cli.conftest import Evocode
from tests.terminals import HANGS, Person

pytestmark = pytest.mark.slow

EVOCODE = [sys.executable, "-c", "from pytest_evocode.cli import main; main()"]
FAIL = "echo 0 > /logs/verifier/reward.txt"
PROMPT = "bash-"
ENTERED = "Ctrl-D ends the shell"


class AtShell(Person):
    """Somebody who opens shells."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.resize(50, 200)
        self._directory = directory
        self.command: subprocess.Popen[bytes] | None = None

    def evocode(self, *arguments: str | Path, env: str = "sandbox") -> None:
        """Start the command."""
        self.command = self.start([*EVOCODE, "shell", *map(str, arguments), f"--env={env}"], self._directory)

    def asks(self, script: str) -> str:
        """Have the shell run a script, and return what it printed."""
        self.sees(PROMPT)
        self.type(f"stty -echo; echo be''gin; {script}; echo e''nd; stty echo\n")
        self.sees("begin\r\n")
        return self.sees("end\r\n").replace("\r\n", "\n")

    def ends(self) -> tuple[int, str]:
        """Wait for the command's end: its exit code, and what it printed since."""
        assert self.command is not None
        return self.command.wait(HANGS), self.seen()


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AtShell]:
    """See :class:`AtShell`."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    with AtShell(tmp_path) as somebody:
        yield somebody
        if somebody.command is not None and somebody.command.poll() is None:
            somebody.command.kill()
            somebody.command.wait()


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.matrix
def test_a_shell_opens_after_a_round_that_fails_and_its_changes_are_thrown_away(
    person: AtShell, tmp_path: Path, env: str
) -> None:
    task_writer(tmp_path)("a", 3, test={2: FAIL})
    person.evocode("tasks/a::round-2", env=env)
    shown = person.sees(ENTERED)
    assert "playing the solution of round-1" in shown
    assert f"a after round-2 of the reference solutions ({env}); what you change here is thrown away" in shown
    assert "the request of round-2: tasks/a/steps/round-2/instruction.md" in shown
    assert person.asks("pwd; cat log.txt; ls -d /tests /solution") == (
        "/app\nline-1\nline-2\nls: cannot access '/tests': No such file or directory\n"
        "ls: cannot access '/solution': No such file or directory\n"
    )
    person.sees(PROMPT)
    person.type("bash -c \"echo be''gun; exec sleep 600\"\n")
    person.sees("begun")
    person.type("\x03")  # It is the program's, not the tool's.
    assert person.asks("echo changed > log.txt; cat log.txt") == "changed\n"
    person.type("exit 7\n")
    assert person.ends()[0] == 7
    person.evocode("tasks/a/task.toml::oracle::round-2", env=env)
    assert "playing" not in person.sees(ENTERED)
    assert person.asks("tail -n1 log.txt") == "line-2\n"
    person.sees(PROMPT)
    person.type("\x04")
    assert person.ends()[0] == 0


@pytest.mark.nightly
def test_the_tests_are_there_where_somebody_asks_for_them(person: AtShell, tmp_path: Path) -> None:
    task_writer(tmp_path)("a", 2, files={"tests/data": "shared"})
    person.evocode("tasks/a", "--suite")
    assert person.asks("bash /tests/test.sh | wc -l; cat /logs/verifier/reward.txt /tests/data") == "2\n1\nshared\n"
    person.type("exit\n")
    person.ends()


def test_the_tests_of_a_suite_with_an_environment_for_itself_are_not_for_the_agents(
    evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    task_writer(tmp_path)("a", 1, toml='[verifier]\nenvironment_mode = "separate"\n')
    ran = evocode("shell", "tasks/a", "--suite", "--env=sandbox")
    assert ran.status != 0
    assert "the suite of round-1 has an environment for itself, and this is the agent's; leave out --suite" in ran.err


@pytest.mark.nightly
def test_what_a_recorded_agent_left(person: AtShell, tmp_path: Path) -> None:
    directory = task_writer(tmp_path)("a", 2, solve={2: "echo recorded > log.txt"})
    attempt = AttemptDirectory.of(tmp_path / "evocode-results", "a", "gpt", "run-1", 1)
    options = TrialOptions(keep_snapshots=True)
    with contextlib.closing(choose_engine("sandbox")[0]) as engine:
        list(Trial(load_task(directory), OracleAgent(), engine, directory=attempt, options=options).run())
    (directory / "steps/round-2/solution/solve.sh").write_text("echo another solution > log.txt\n")
    person.evocode("tasks/a::gpt::round-2", env="auto")
    assert "a after round-2 of evocode-results/a/harbor_jobs/gpt/run-1/a__a1 (sandbox)" in person.sees(ENTERED)
    assert person.asks("cat log.txt") == "recorded\n"
    person.type("exit\n")
    assert person.ends()[0] == 0


@pytest.mark.nightly
def test_a_closed_window_leaves_nothing_running(person: AtShell, tmp_path: Path) -> None:
    task_writer(tmp_path)("a", 1)
    person.evocode("tasks/a")
    person.sees(PROMPT)
    assert person.command is not None
    person.command.terminate()
    assert person.ends()[0] == 128 + 15
    assert [path for path in (tmp_path / "cache/sandboxes").iterdir() if path.is_dir()] == []


def test_a_shell_needs_a_terminal(evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task_writer(tmp_path)("a", 1)
    monkeypatch.setattr("os.isatty", lambda descriptor: False)
    ran = evocode("shell", "tasks/a")
    assert ran.status == 2
    assert "standard input is no terminal, and a shell needs one" in ran.err


@pytest.mark.parametrize(
    ("place", "arguments", "message"),
    [
        ("tasks/b", [], "tasks/b: there is no such directory"),
        ("tasks/a::rund-1", [], "there is no round 'rund-1'; did you mean round-1?"),
        ("tasks/a::gpt::round-1::more", [], "write it as TASK, TASK::ROUND or as a node id, TASK::AGENT::ROUND"),
        ("tasks/a::gpt::round-1", [], "evocode-results: there is no attempt at a by an agent or in a run named gpt;"),
        ("tasks/a", ["--agent=run-1"], "run-1 made several attempts; name one of them with --agent: "),
        ("tasks/a", ["--agent=opus.2", "--env=docker"], "was made in sandbox; leave out --env"),
        ("tasks/a", ["--agent=bare"], "the files that round-1 was left with were not kept, which takes a run with"),
        ("tasks/a::starter", ["--agent=opus"], "the starter is nobody's work; leave out --agent"),
    ],
)
def test_what_cannot_be_entered_is_said(
    evocode: Evocode,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    arguments: list[str],
    message: str,
) -> None:
    task_writer(tmp_path)("a", 1)
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    kept = SnapshotFile(environment="sandbox", reference="", image="", task="a", strict=False, timeout_multiplier=1)
    for number in (1, 2):
        AttemptDirectory.of(tmp_path / "evocode-results", "a", "opus", "run-1", number).write_snapshot("round-1", kept)
    AttemptDirectory.of(tmp_path / "evocode-results", "a", "bare", "run-1", 1).artifacts("round-1").mkdir(parents=True)
    ran = evocode("shell", place, *arguments)
    assert ran.status in (1, 2)
    assert message in ran.err
