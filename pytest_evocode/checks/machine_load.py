"""How busy the machine is, measured and made: so that no check fails because of it, and one that asks for it.

The check ``time`` is that suites and the build have room within their limits, on a machine that may be busy.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.oracle_check import require_a_pass, why_not
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound, SharedRun
from pytest_evocode.environments import Environment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.verifier import SuiteRun

_INTERVAL = 0.5  # seconds between two pieces of work
_PIECE = """read -r begin rest < /proc/uptime
i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done
read -r end rest < /proc/uptime
echo $begin $end; times"""
"""Work of a fixed amount: prints when it began and ended, in seconds, and what it took of a processor."""
_BUSY = "(while :; do :; done) & "


class Slowdown:
    """How many times longer than on an idle machine things take, by small pieces of work while something else runs."""

    def __init__(self, run: Callable[[str], str] | None = None) -> None:
        """Have pieces of work done by ``run``, which takes a script and returns its output; None is on this machine."""
        self._run = run or _run_here
        self._factors: list[float] = []

    @property
    def factor(self) -> float | None:
        """The mean of what was measured, 1 or more; None where nothing was."""
        return fmean(self._factors) if self._factors else None

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measure from half a second after the beginning of this context to its end."""
        over = threading.Event()
        measuring = threading.Thread(target=self._measure, args=[over], name="slowdown", daemon=True)
        measuring.start()
        try:
            yield
        finally:
            over.set()
            measuring.join()

    def _measure(self, over: threading.Event) -> None:
        while not over.wait(_INTERVAL):
            try:
                self._factors.append(slowdown_of(self._run(_PIECE)))
            except (EnvironmentFault, OSError, ValueError, IndexError):
                return


def slowdown_of(output: str) -> float:
    r"""Return how many times longer a piece of work took than it kept a processor busy; raises ValueError.

    >>> slowdown_of("100.00 100.60\n0m0.190s 0m0.010s\n0m0.000s 0m0.000s\n")
    3.0
    """
    lines = output.splitlines()
    begin, end = map(float, lines[0].split())
    busy = sum(float(minutes) * 60 + float(seconds) for minutes, seconds in (
        time.removesuffix("s").split("m") for time in lines[1].split()
    ))  # fmt: skip
    return round(max(1.0, (end - begin) / max(busy, 0.01)), 2)


def _run_here(script: str) -> str:
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout


@contextlib.contextmanager
def environment_beside(attempt: PlayedAttempt) -> Iterator[Environment]:
    """Start an environment of the task's image beside those in which suites run; it is stopped in the end."""
    environment = attempt.context.task_environment.create()
    environment.start()
    try:
        yield environment
    finally:
        with contextlib.suppress(EnvironmentFault):
            environment.stop()


@contextlib.contextmanager
def busy_processors(attempt: PlayedAttempt) -> Iterator[int]:
    """Have one process more than usual want each processor; yield how many these are."""
    count = len(os.sched_getaffinity(0))
    with environment_beside(attempt) as environment:

        def burn() -> None:
            with contextlib.suppress(EnvironmentFault):  # This is how it ends.
                environment.exec(f"{_BUSY * count}wait", user="0", cwd="/")

        burning = threading.Thread(target=burn, name="busy-processors", daemon=True)
        burning.start()
        try:
            yield count
        finally:
            environment.stop()
            burning.join()


def run_beside_busy_processes(attempt: PlayedAttempt, played: PlayedRound) -> SuiteRun:
    """Run a round's suite once more, without a network unless the round asks for one, on a busy machine."""
    with busy_processors(attempt):
        return attempt.run_again(played, played.after, offline=not played.round.suite_has_network)


def under_load(attempt: PlayedAttempt, played: PlayedRound, loaded: SharedRun) -> list[str]:
    """Check that a round passes with the reference solutions while other processes want the processors.

    ``loaded`` is its run on a busy machine.
    """
    require_a_pass(played)
    if not why_not(loaded.result()):
        return []
    name = played.round.name
    if quiet := why_not(attempt.run_again(played, played.after)):
        doubt = f"{name} now fails without other processes beside it as well, so its load could not be tried: "
        return [CheckWarning(f"{doubt}{quiet.splitlines()[0]}")]
    with busy_processors(attempt) as count:
        why = why_not(attempt.run_again(played, played.after))
    if not why:
        return []
    return [
        f"{name} passes, but not beside {count} processes that keep the processors busy: {why}\n"
        "Have its tests wait for what is to happen instead of for a time, and give calls longer timeouts."
    ]


_SHARE = 3
"""A build or a suite may take one third of its limit, because other machines are slower and busier."""


def timing(attempt: PlayedAttempt, played_rounds: Sequence[PlayedRound], building: Slowdown) -> list[str]:
    """Check that suites and the build take no more than a third of their limits.

    What takes longer is divided by how much longer than on an idle machine a piece of work of a fixed amount took
    meanwhile: a suite is run once more for that. What is below a third then is only a warning.

    Args:
        attempt: The attempt with the reference solutions.
        played_rounds: Its rounds.
        building: What was measured while the image was built, if that was in this session.
    """
    problems = []
    for played in played_rounds:
        taken, limit = played.suite.result().seconds, attempt.context.suite_limit(played.round)
        if taken <= limit / _SHARE or attempt.context.task.in_place:
            factor: float | None = 1.0
        else:
            taken, factor = _measured_again(attempt, played, taken)
        problems += judged(f"the suite of {played.round.name}", taken, factor, limit, "timeout_sec of [verifier]")
    task = attempt.context.task
    built, limit = attempt.context.engine.build_seconds(task), task.config.environment.build_timeout_sec
    if built is not None:
        problems += judged("building the image", built, building.factor, limit, "build_timeout_sec of [environment]")
    return problems


def judged(what: str, taken: float, slowdown: float | None, limit: float, key: str) -> list[str]:
    """Return what is to be said of something that took so many seconds while the machine was so much slower.

    A ``slowdown`` of None says that nobody knows how busy the machine was.
    """
    if taken <= limit / _SHARE:
        return []
    took = f"{what} took {taken:.1f} s, more than a third of its limit of {limit:g} s"
    if slowdown is None:
        return [
            CheckWarning(f"{took}, and how busy the machine was then is not known; make it quicker, or raise {key}")
        ]
    meanwhile = f"while a fixed piece of work took {slowdown:.1f} times as long as on an idle machine"
    if taken / slowdown <= limit / _SHARE:
        return [CheckWarning(f"{took}, {meanwhile}; check it again when the machine has less to do")]
    return [f"{took}, {meanwhile}, and slower machines may exceed it; make it quicker, or raise {key}"]


def _measured_again(attempt: PlayedAttempt, played: PlayedRound, taken: float) -> tuple[float, float | None]:
    """Run a suite once more; return the shorter time, and how slow the machine was."""
    with environment_beside(attempt) as environment:
        slowdown = Slowdown(lambda script: environment.exec(["sh", "-c", script], user="0", cwd="/").output)
        with slowdown.measured():
            again = attempt.run_again(played, played.after).seconds
    return min(taken, again), slowdown.factor
