"""Sessions that are stopped in the middle: they end soon and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from pytest_evocode.environments.docker.engine import OWNER, DockerEngine, connect
from pytest_evocode.environments.owners import Owner
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RunRecord
from tests.acceptance.sessions import sandboxes_left
from tests.acceptance.tasks import DOCKERFILE
from tests.inner_sessions import UNUSED
from tests.terminals import HANGS
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

Process = tuple[int, str]
"""A process id and when the process started, which together name it for good."""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def descendants(pid: int) -> set[Process]:
    """All processes below a process."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                fields = _stat(int(name))
                children.setdefault(int(fields[1]), []).append((int(name), fields[19]))
    found: set[Process] = set()
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo += [child for child, _ in below]
    return found


def alive(process: Process) -> bool:
    """Whether a process still runs."""
    try:
        fields = _stat(process[0])
    except OSError:
        return False
    return fields[19] == process[1] and fields[0] not in "ZX"


def command_of(process: Process) -> str:
    """The command line of a process, empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process[0]}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


class Running:
    """A pytest session in a process of its own, in a terminal's manner a process group of its own."""

    def __init__(self, directory: Path, *arguments: str, started_by: Sequence[str] = ()) -> None:
        self.output = directory / "output.txt"
        agent = [] if {"--evocode-check", "--evocode-warm"} & {*arguments} else ["--evocode-agent=oracle"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*started_by, sys.executable, "-m", "pytest", *UNUSED, *agent, *arguments],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.seen: set[Process] = set()

    def wait_for_sleep(self, seconds: int, *, anywhere: bool = False) -> None:
        """Wait until a script of the task sleeps for that many seconds, and remember all processes.

        With ``anywhere`` it may be a process of an engine's.
        """

        def sleeps() -> bool:
            assert self.process.poll() is None, self.output.read_text()
            self.seen = descendants(self.process.pid)
            found = descendants(1) if anywhere else self.seen
            return any(command_of(process) == f"sleep {seconds}" for process in found)

        wait_until(sleeps, f"sleep {seconds}")

    def stop(self, number: int) -> int:
        """Send a signal to the session alone, wait for its end and return its exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(HANGS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # Have it print where its threads are.
            self.process.wait(HANGS)
            raise AssertionError(f"it did not end:\n{self.text()}") from None

    def left(self) -> dict[Process, str]:
        """The processes seen that still run."""
        return {process: command_of(process) for process in self.seen if alive(process)}

    def text(self) -> str:
        """What it printed so far."""
        return self.output.read_text(errors="replace")


@pytest.fixture
def start(pytester: pytest.Pytester) -> Iterator[Callable[..., Running]]:
    """Starts sessions, and kills those that a failing test leaves."""
    started: list[Running] = []

    def start_session(*arguments: str, **options: Any) -> Running:
        started.append(Running(pytester.path, *arguments, **options))
        return started[-1]

    yield start_session
    for session in started:
        if session.process.poll() is None:
            session.process.kill()
            session.process.wait()


#: As shells start background jobs, and some CI runners all jobs: with the signal of control-C ignored.
IN_BACKGROUND = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")


@pytest.mark.parametrize(
    ("number", "place", "started_by", "workers"),
    [
        (signal.SIGINT, "solve", IN_BACKGROUND, ()),
        (signal.SIGINT, "solve", IN_BACKGROUND, ("-n1",)),
        (signal.SIGINT, "solve", (), ()),
        (signal.SIGINT, "test", (), ()),
        (signal.SIGTERM, "solve", (), ()),
    ],
    ids=["control-C ignored", "control-C ignored, a worker", "control-C", "control-C in a suite", "termination"],
)
@pytest.mark.matrix
def test_a_signal_ends_a_session_which_keeps_what_it_recorded_and_leaves_nothing_else(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    cache: Path,
    start: Callable[..., Running],
    number: signal.Signals,
    place: str,
    started_by: Sequence[str],
    workers: Sequence[str],
) -> None:
    scripts: dict[str, Any] = {place: {2: "sleep 4321"}}
    write_task("a", 2, **scripts)
    session = start(*workers, "-v", "--evocode-env=sandbox", "tasks", started_by=started_by)
    session.wait_for_sleep(4321)
    assert any("launcher.py" in command_of(process) for process in session.seen)
    assert any("bwrap" in command_of(process) for process in session.seen)
    results = pytester.path / "evocode-results"
    wait_until(lambda: list(results.glob("a/**/round-1/round.json")), "the first round's record")
    reported = re.compile("round-1 PASSED|PASSED .*round-1")
    wait_until(lambda: reported.search(session.text()), "the first report")
    status = pytest.ExitCode.INTERRUPTED if number == signal.SIGINT else 128 + number
    if started_by:
        os.killpg(session.process.pid, number)
        assert session.process.wait(HANGS) == status
    else:
        assert session.stop(number) == status
    assert session.left() == {}
    assert sandboxes_left(cache) == []
    (path,) = (results / "runs").iterdir()
    run = RunRecord.model_validate_json(path.read_text())
    assert (run.exit_status, len(run.attempts), run.interrupted, run.scores) == (status, 1, True, {})
    assert "not scored, unfinished: a oracle: 1 of 2 rounds judged" in session.text()
    assert [each.state for each in score_table(load_results([results])).apart] == ["unfinished"]
    assert list(results.rglob(".*")) == []
    assert not list(results.glob("a/**/result.json"))
    said = "stopped by SIGTERM" if number == signal.SIGTERM else "continue with --evocode-resume="
    assert said in session.text()


_SECONDS = 43210000 + os.getpid()
#: What a task and a conftest.py have for a session to be in a phase while a process sleeps for that long, or while the
#: session itself does, which then says "now".
PHASES: dict[str, tuple[dict[str, Any], str]] = {
    "collection": ({}, "def pytest_collection_modifyitems(): now()"),
    "image": ({"dockerfile": f"{DOCKERFILE}RUN sleep {_SECONDS}\n"}, ""),
    "turn": ({"solve": {2: f"sleep {_SECONDS}"}}, ""),
    "suite": ({"test": {2: f"sleep {_SECONDS}"}}, ""),
    "writing": ({}, "@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish(): now()"),
    "clean-up": ({}, "def pytest_unconfigure(): now()"),
}
NOW = """
import sys, time, pytest

def now():
    sys.__stderr__.write("now\\n")
    sys.__stderr__.flush()
    begun = time.monotonic()
    while time.monotonic() < begun + {seconds}:  # A signal ends no sleep, only the session.
        time.sleep(0.1)
"""
ORDERS = {
    "as GitHub does, and sooner": (signal.SIGINT, signal.SIGTERM),
    "three of one kind": (signal.SIGTERM, signal.SIGTERM, signal.SIGTERM),
    "impatient": (signal.SIGINT, signal.SIGINT, signal.SIGINT),
    "termination, then control-C": (signal.SIGTERM, signal.SIGINT),
}


@pytest.mark.parametrize("engine", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.matrix
def test_more_signals_change_nothing_of_how_a_session_ends(
    pytester: pytest.Pytester,
    write_task: WriteTask,
    cache: Path,
    start: Callable[..., Running],
    phase: str,
    order: str,
    engine: str,
) -> None:
    task, hook = PHASES[phase]
    write_task("a", 3, **task)
    ends_by_itself = phase in ("writing", "clean-up")
    pytester.makeconftest(NOW.format(seconds=3 if ends_by_itself else HANGS) + hook)
    session = start(f"--evocode-env={engine}", "-v", "--junit-xml=junit.xml", "tasks")
    if hook:
        wait_until(lambda: "now\n" in session.text(), phase)
    else:
        session.wait_for_sleep(_SECONDS, anywhere=engine == "docker")
        wait_until(lambda: phase == "image" or "round-1 PASSED" in session.text(), "the first report")
    first, *others = ORDERS[order]
    session.process.send_signal(first)
    for number in others:
        time.sleep(0.3)
        session.process.send_signal(number)
    expected = pytest.ExitCode.INTERRUPTED if first == signal.SIGINT else 128 + first
    assert session.process.wait(HANGS) == (pytest.ExitCode.OK if ends_by_itself else expected)
    assert "Traceback" not in session.text()
    if engine == "sandbox":
        assert session.left() == {}
        assert sandboxes_left(cache) == []
    tests = ElementTree.parse(pytester.path / "junit.xml").findall(".//testcase")
    if phase == "collection":
        return  # No run has begun.
    (path,) = (pytester.path / "evocode-results/runs").iterdir()
    run = RunRecord.model_validate_json(path.read_text())
    if ends_by_itself:
        assert (len(tests), run.exit_status) == (3, 0)
    elif phase in ("turn", "suite"):
        assert (len(tests), run.exit_status) == (1, expected)
        assert "continue with --evocode-resume=" in session.text()


@pytest.mark.parametrize(("number", "place"), [(signal.SIGTERM, "solve"), (signal.SIGINT, "test")])
@pytest.mark.nightly
def test_a_signal_ends_checks_and_leaves_nothing(
    write_task: WriteTask, cache: Path, start: Callable[..., Running], number: int, place: str
) -> None:
    scripts: dict[str, Any] = {place: {1: "sleep 4321"}}
    write_task("a", 3, **scripts)
    session = start("--evocode-check", "--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    assert session.stop(number) != 0
    assert session.left() == {}
    assert sandboxes_left(cache) == []


@pytest.mark.parametrize("option", ["--evocode-check", "--evocode-replay", "--evocode-warm"])
@pytest.mark.matrix
@pytest.mark.nightly
def test_a_signal_ends_builds_and_leaves_nothing(
    write_task: WriteTask, cache: Path, start: Callable[..., Running], option: str
) -> None:
    for name, seconds in (("a", 4321), ("b", 4322)):
        write_task(name, 1, dockerfile=f"{DOCKERFILE}RUN sleep {seconds}\n")
    session = start(option, "--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    session.wait_for_sleep(4322)
    assert session.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    assert session.left() == {}
    assert sandboxes_left(cache) == []
    assert [path for path in (cache / "sandbox-images").iterdir() if path.is_dir()] == []


def test_of_a_killed_session_a_whole_record_of_its_run_stays_and_the_next_session_clears_its_files(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, cache: Path, start: Callable[..., Running]
) -> None:
    write_task("a", 1, solve={1: "sleep 4321"})
    write_task("b", 1)
    session = start("--evocode-env=sandbox", "tasks/a")
    session.wait_for_sleep(4321)
    session.stop(signal.SIGKILL)
    wait_until(lambda: not session.left(), "the end of all processes")
    (path,) = (pytester.path / "evocode-results/runs").iterdir()
    run = RunRecord.model_validate_json(path.read_text())
    assert (run.finished, run.exit_status) == (None, None)
    assert len(sandboxes_left(cache)) == 1
    assert run_tasks("tasks/b").exit_status == 0
    assert sandboxes_left(cache) == []


@pytest.mark.parametrize("option", ["--evocode-replay", "--evocode-check"])
@pytest.mark.nightly
def test_control_c_ends_a_session_with_workers_and_leaves_nothing(
    write_task: WriteTask, cache: Path, start: Callable[..., Running], option: str
) -> None:
    write_task("a", 1, solve={1: "sleep 4321"})
    write_task("b", 1, solve={1: "sleep 4322"})
    session = start("-n2", option, "--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    session.wait_for_sleep(4322)
    os.killpg(session.process.pid, signal.SIGINT)  # A terminal sends it to all processes of the session.
    assert session.process.wait(HANGS) == pytest.ExitCode.INTERRUPTED
    assert session.left() == {}
    assert sandboxes_left(cache) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 2), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_ends_all_attempts_of_one_process_and_leaves_nothing(
    write_task: WriteTask, cache: Path, start: Callable[..., Running], number: signal.Signals, status: int
) -> None:
    write_task("a", 1, solve={1: "sleep 4321"})
    write_task("b", 1, solve={1: "sleep 4322"})
    session = start("--evocode-jobs=2", "--evocode-replay", "--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    session.wait_for_sleep(4322)
    assert session.stop(number) == status
    assert session.left() == {}
    assert sandboxes_left(cache) == []


LOSES_THE_FIRST = """
import contextlib, os, signal, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    with contextlib.suppress(Exception):  # As an import's callback or the garbage collector would.
        os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.nightly
def test_a_signal_that_is_lost_ends_the_session_all_the_same(
    pytester: pytest.Pytester, write_task: WriteTask, cache: Path, start: Callable[..., Running]
) -> None:
    write_task("a", 1, solve={1: "sleep 4321"})
    pytester.makeconftest(LOSES_THE_FIRST)
    session = start("--evocode-env=sandbox", "tasks")
    assert session.process.wait(HANGS) == 128 + signal.SIGTERM
    assert "stopped by SIGTERM" in session.text()
    assert sandboxes_left(cache) == []


@pytest.mark.nightly
def test_an_ordinary_end_leaves_nothing(write_task: WriteTask, cache: Path, start: Callable[..., Running]) -> None:
    write_task("a", 1, solve={1: "(setsid sleep 4321 &); sleep 1; echo line-1 >> log.txt"})
    session = start("--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    assert session.process.wait(HANGS) == 0
    assert session.left() == {}
    assert sandboxes_left(cache) == []


def test_a_refused_session_leaves_nothing(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, cache: Path
) -> None:
    write_task("a", 1)
    (pytester.path / "file").touch()
    assert run_tasks("--evocode-results=file", "tasks").exit_status == pytest.ExitCode.USAGE_ERROR
    assert sandboxes_left(cache) == []


@pytest.mark.docker
@pytest.mark.nightly
def test_a_signal_leaves_no_container_and_no_state_of_checks(
    write_task: WriteTask, start: Callable[..., Running]
) -> None:
    write_task("a", 2, test={1: "sleep 4321"})
    session = start("--evocode-check", "--evocode-env=docker", "tasks")
    label = f"{OWNER}={Owner.of(session.process.pid)}"
    with contextlib.closing(connect()) as client:

        def left() -> list[Any]:
            filters = {"label": label}
            found: list[Any] = [*client.containers(all=True, filters=filters), *client.images(filters=filters)]
            return found

        # Two environments, the suites of one each, and the states before and after their rounds.
        wait_until(lambda: len(left()) >= 8, "containers and snapshots")
        session.stop(signal.SIGTERM)
        assert left() == []


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.matrix
@pytest.mark.nightly
def test_a_signal_leaves_no_container_and_what_the_attempt_goes_on_from(
    pytester: pytest.Pytester, write_task: WriteTask, start: Callable[..., Running], number: int
) -> None:
    write_task("a", 3, test={1: "sleep 4321"}, solve={2: "sleep 4321"})
    session = start("--evocode-env=docker", "--evocode-replay", "tasks")
    label = f"{OWNER}={Owner.of(session.process.pid)}"
    with contextlib.closing(connect()) as client:

        def count() -> tuple[int, int]:
            containers = client.containers(all=True, filters={"label": label})
            return len(containers), len(client.images(filters={"label": label}))

        wait_until(lambda: count() == (2, 1), "a container, a snapshot and its fork")
        session.stop(number)
        assert count() == (0, 1)
        (image,) = client.images(filters={"label": label})
        (state,) = pytester.path.glob("evocode-results/a/harbor_jobs/oracle/*/a__a1/state.json")
        assert image["RepoTags"][0] in state.read_text()
        state.unlink()
        with contextlib.closing(DockerEngine()):  # A new session clears what nobody needs any more.
            assert count() == (0, 0)


@pytest.mark.parametrize(("option", "is_whole"), [((), False), (("--full-trace",), True)])
def test_of_an_interrupts_traceback_only_what_is_shown_is_formatted(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, option: tuple[str, ...], is_whole: bool
) -> None:
    """pytest parses the modules of all entries, in each process, which takes longer than the rest of an end."""
    pytester.makeconftest(
        """
        def pytest_runtest_setup():
            raise KeyboardInterrupt

        def pytest_keyboard_interrupt(excinfo):
            print(f"\\n{len(excinfo.traceback)} entries")
        """
    )
    write_task("a", 1)
    session = run_tasks(*option, "tasks", subprocess=True)
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    session.has("*conftest.py:*: KeyboardInterrupt*")
    assert ("1 entries" in session.text.splitlines()) != is_whole


def test_workers_stop_at_the_sign_of_their_controller_and_wait_for_no_interrupt(
    pytester: pytest.Pytester, write_task: WriteTask, start: Callable[..., Running]
) -> None:
    """What xdist does by itself is to wait for five seconds, and then to interrupt a worker that still runs a test."""
    pytester.makeconftest(
        """
        from pathlib import Path

        def pytest_keyboard_interrupt():
            Path(f"interrupted-{hasattr(config, 'workerinput')}").touch()

        def pytest_configure(config):
            globals()["config"] = config
        """
    )
    write_task("a", 1, solve={1: "sleep 4321"})
    session = start("-n1", "--evocode-env=sandbox", "tasks")
    session.wait_for_sleep(4321)
    assert session.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    assert [path.name for path in pytester.path.glob("interrupted-*")] == ["interrupted-False"]
    assert session.left() == {}
