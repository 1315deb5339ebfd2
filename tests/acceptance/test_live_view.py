"""What a session shows while attempts run: status lines on a terminal, a line for each round in CI, else nothing."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

AGENT = '''
import os, signal, time
from pathlib import Path
from pytest_evocode.agents import RoundTranscript
from pytest_evocode.results.records import Usage

class Slow:
    """Asks a model once in a turn, and works when a file says that it may."""

    name = "slow"

    def run_round(self, context):
        usage = Usage(prompt_tokens=1000, completion_tokens=23, cost_usd=0.05, requests=1)
        context.recorder.reply("I wait", usage=usage)
        name = f"{context.task.name}-{context.round.index}"
        Path(__file__).with_name(f"begun-{name}").touch()
        while not Path(__file__).with_name(f"go-{name}").exists() and not context.cancelled.is_set():
            time.sleep(0.02)
        if Path(__file__).with_name(f"die-{name}").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        context.environment.exec(f"echo line-{context.round.index} >> log.txt")
        return RoundTranscript()

def pytest_evocode_make_agent(name):
    return Slow() if name == "slow" else None
'''
SLOW = "--evocode-agent=slow"
WITHOUT = ("-p", "no:evocode-live")
FAIL = "echo 0 > /logs/verifier/reward.txt"


@pytest.fixture(autouse=True)
def _agent(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeconftest(AGENT)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def go(pytester: pytest.Pytester) -> Path:
    """Where :func:`let` puts its files."""
    return pytester.path


def let(go: Path, *turns: str, verb: str = "go") -> None:
    """Let the agent do turns, such as ``a-1``."""
    for turn in turns:
        (go / f"{verb}-{turn}").touch()


def status(lines: list[str]) -> list[str]:
    """The status lines among those of a screen, without the times."""
    return [line.rpartition(", ")[0] for line in lines if " slow: " in line]


def alike(lines: list[str]) -> list[str]:
    """Lines without what differs from session to session."""
    return [re.sub(r"\d+", "#", re.sub(r"[= ]+", " ", line)) for line in lines]


# On a terminal.


def test_a_line_is_there_while_an_attempt_runs_but_not_in_a_debugger_and_then_gone(
    pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal, go: Path
) -> None:
    pytester.makeconftest(
        AGENT + "def pytest_runtest_setup(item):\n    if item.nodeid.endswith('round-3'):\n        breakpoint()\n"
    )
    write_task("a", 3, toml="[agent]\ntimeout_sec = 600")
    person.pytest("tasks", what=SLOW)
    lines = person.watches(lambda lines: status(lines) == ["a slow: round 1/3, 1 turn, 1.0k tokens, $0.05"])
    assert re.fullmatch(r"a slow: .*, (10:00|9:\d\d) left", lines[-1])
    assert lines[-2] == "tasks/a/task.toml"
    let(go, "a-1")
    person.watches(lambda lines: status(lines) == ["a slow: round 2/3, 2 turns, 2.0k tokens, $0.10"])
    person.watches(lambda lines: lines[-2:-1] == ["tasks/a/task.toml ."])
    let(go, "a-2")
    lines = person.watches(lambda lines: lines[-1:] == ["(Pdb)"])
    assert status(lines) == []
    person.type("c\n")
    person.watches(lambda lines: status(lines) == ["a slow: round 3/3, 3 turns, 3.1k tokens, $0.15"])
    let(go, "a-3")
    code, _ = person.ends()
    assert code == 0
    shown = person.screen.all
    assert status(shown) == []
    assert [line for line in shown if line.startswith("tasks/a/task.toml ..")]


@pytest.mark.nightly
def test_the_line_of_an_attempt_without_a_model_has_its_round_and_the_time_and_an_interrupted_session_leaves_none(
    write_task: WriteTask, person: AtTerminal
) -> None:
    write_task("a", 1, solve={1: "until [ -e stop ]; do sleep 0.05; done"})
    person.pytest("tasks")
    # Before that it is being prepared.
    person.watches(lambda lines: any(re.fullmatch(r"a oracle: round 1/1, 0:\d\d", line) for line in lines[-1:]))
    assert person.session is not None
    person.session.send_signal(signal.SIGINT)
    assert person.ends()[0] == pytest.ExitCode.INTERRUPTED
    shown = person.screen.all
    assert not [line for line in shown if "a oracle: " in line]
    assert any("KeyboardInterrupt" in line for line in shown)


@pytest.mark.parametrize("options", [(), ("-n1", "-v")], ids=" ".join)
@pytest.mark.nightly
def test_pytests_own_output_is_what_it_is_without(
    write_task: WriteTask, person: AtTerminal, go: Path, options: tuple[str, ...]
) -> None:
    write_task("a", 2, test={2: FAIL})
    go.joinpath("test_ordinary.py").write_text("def test_nothing(): pass\n")
    paths = ("tasks", "test_ordinary.py")
    person.pytest(*options, *paths, what=SLOW)
    for index in (1, 2):
        person.sees(f"a slow: round {index}/2, {index} turn")
        let(go, f"a-{index}")
    assert person.ends()[0] == 1
    with_lines = alike(person.screen.all)
    person.clear()
    person.pytest(*options, *WITHOUT, *paths, what=SLOW)
    assert person.ends()[0] == 1
    assert with_lines == alike(person.screen.all)


@pytest.mark.nightly
def test_each_worker_has_a_line_for_its_attempt(write_task: WriteTask, person: AtTerminal, go: Path) -> None:
    write_task("a", 1)
    write_task("b", 1)
    person.pytest("-n2", "tasks", what=SLOW)
    used = "slow: round 1/1, 1 turn, 1.0k tokens, $0.05"
    person.watches(lambda lines: sorted(status(lines)) == [f"a {used}", f"b {used}"])
    let(go, "a-1")
    person.watches(lambda lines: status(lines) == [f"b {used}"])
    let(go, "b-1")
    assert person.ends()[0] == 0
    assert status(person.screen.all) == []


@pytest.mark.nightly
def test_the_line_of_a_lost_worker_is_gone(write_task: WriteTask, person: AtTerminal, go: Path) -> None:
    write_task("a", 1)
    write_task("b", 1)
    person.pytest("-n2", "tasks", what=SLOW)
    person.watches(lambda lines: len(status(lines)) == 2)
    let(go, "a-1", verb="die")
    let(go, "a-1")
    lines = person.watches(lambda lines: len(status(lines)) == 1 and any("crashed" in line for line in lines))
    assert "b slow: round 1/1" in status(lines)[0]
    let(go, "b-1")
    assert person.ends()[0] == 1


@pytest.mark.nightly
def test_attempts_beyond_half_of_the_window_are_counted(write_task: WriteTask, person: AtTerminal, go: Path) -> None:
    person.resize(2, 200)
    write_task("a", 1)
    write_task("b", 1)
    person.pytest("-n2", "tasks", what=SLOW)
    person.sees("\r2 attempts")
    person.resize(50, 200)
    person.sees("slow: round 1/1, 1 turn")
    let(go, "a-1", "b-1")
    assert person.ends()[0] == 0


@pytest.mark.parametrize("option", ["-s", "-q", "--capture=sys"])
@pytest.mark.matrix
@pytest.mark.nightly
def test_there_is_no_line_where_it_is_not_wanted_or_others_write_to_the_terminal(
    write_task: WriteTask, person: AtTerminal, go: Path, option: str
) -> None:
    write_task("a", 1)
    person.pytest(option, "tasks", what=SLOW)
    wait_until((go / "begun-a-1").exists, "its turn begins")
    time.sleep(1)  # A line would come within a fifth of it.
    let(go, "a-1")
    code, printed = person.ends()
    assert code == 0
    assert " slow: " not in printed


@pytest.mark.nightly
def test_in_ci_a_terminal_gets_lines_of_rounds(
    write_task: WriteTask, person: AtTerminal, go: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    write_task("a", 1)
    let(go, "a-1")
    person.pytest("tasks", what=SLOW)
    person.sees("evocode: a slow round-1 passed, 1/1 cases, 1 turn, 1.0k tokens, $0.05, ")
    code, printed = person.ends()
    assert code == 0
    assert " slow: " not in printed


# Elsewhere.


@pytest.fixture(params=["CI", "GITHUB_ACTIONS"])
def ci(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a CI service."""
    monkeypatch.setenv(request.param, "true")


@pytest.mark.usefixtures("ci")
@pytest.mark.matrix
def test_in_ci_each_round_that_ends_has_a_line(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, test={2: FAIL})
    run_tasks("tasks").result.stdout.re_match_lines(
        [
            r"tasks/a/task.toml \.$",
            r"evocode: a oracle round-1 passed, 1/1 cases, \d+\.\d s +\[ 33%\]$",
            r"tasks/a/task.toml F$",
            r"evocode: a oracle round-2 failed, \d+\.\d s +\[ 66%\]$",
            r"tasks/a/task.toml \. +\[100%\]$",
            r"evocode: a oracle round-3 passed, 3/3 cases, \d+\.\d s$",
            r"$",
            r"=+ FAILURES =+$",
        ],
        consecutive=True,
    )


def test_in_ci_verbose_lines_stay_whole(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    write_task("a", 2)
    run_tasks("-v", "tasks").result.stdout.re_match_lines(
        [
            r"tasks/a/task.toml::oracle::round-1 PASSED +\[ 50%\]$",
            r"evocode: a oracle round-1 passed, 1/1 cases, \d+\.\d s$",
            r"tasks/a/task.toml::oracle::round-2 PASSED +\[100%\]$",
            r"evocode: a oracle round-2 passed, 2/2 cases, \d+\.\d s$",
            r"$",
            r"=+ evocode benchmark =+$",
        ],
        consecutive=True,
    )


@pytest.mark.nightly
def test_in_ci_workers_rounds_have_lines_too(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    for name in ("a", "b"):
        write_task(name, 1)
    session = run_tasks("-n2", "tasks")
    for name in ("a", "b"):
        session.result.stdout.re_match_lines_random([rf"evocode: {name} oracle round-1 passed, 1/1 cases, \d+\.\d s$"])


def test_in_ci_an_error_has_its_cause_what_was_not_reached_no_line_and_a_second_attempt_its_number(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    write_task("a", 2, solve={1: "exit 3"})
    session = run_tasks("--evocode-attempts=2", "tasks")
    for name in ("a oracle", "a oracle.2"):
        session.has(
            f"evocode: {name} round-1 error: *solve.sh: the reference solution ended with exit code 3; correct it*"
        )
        session.lacks(f"evocode: {name} round-2*")


@pytest.mark.usefixtures("ci")
@pytest.mark.matrix
def test_quiet_is_quiet_in_ci(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    assert "evocode:" not in run_tasks("-q", "tasks").text


@pytest.mark.parametrize("options", [(), ("-n1", "-v")], ids=" ".join)
@pytest.mark.matrix
@pytest.mark.nightly
def test_output_that_goes_elsewhere_is_what_it_is_without(
    write_task: WriteTask, run_tasks: RunTasks, options: tuple[str, ...]
) -> None:
    write_task("a", 1, solve={1: "echo line-1 > log.txt; sleep 0.6"})
    shown, expected = (run_tasks(*options, *more, "tasks") for more in ((), WITHOUT))
    assert "\x1b" not in shown.text
    assert alike(shown.result.outlines) == alike(expected.result.outlines)
