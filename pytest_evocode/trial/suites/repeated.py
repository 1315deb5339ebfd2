"""Runs a round's suite several times on the same snapshot, each time in a fresh fork."""

from __future__ import annotations

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.tasks import Round
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun, of_repeated, worst


def run_repeatedly(
    suites: SuiteRunner, environment: Environment, snapshot: Snapshot, round_: Round, times: int
) -> tuple[SuiteRun, LeftFork]:
    """Run a round's suite so many times, and return what the runs come to.

    The fork, and so the artifacts, are those of the run that counts, see
    :func:`~pytest_evocode.verifier.repeated_runs.of_repeated`.
    """
    counting, left = suites.run_and_leave(environment, snapshot, round_)
    runs = [counting]
    while len(runs) < times:
        try:
            run, its_fork = suites.run_and_leave(environment, snapshot, round_, begun=True)
        except BaseException:
            suites.let_go(left)
            raise
        runs.append(run)
        if worst(runs) is run:
            counting, left, its_fork = run, its_fork, left
        suites.let_go(its_fork)
    return of_repeated(runs), left
