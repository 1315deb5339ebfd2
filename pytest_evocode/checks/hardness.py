"""Which attacks pass which rounds of a task without any work on them: any task's, whether it has solutions or not."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.checks.attacks import ATTACKS, Attack
from pytest_evocode.checks.cheating import play_attack, visible_in
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound
from pytest_evocode.environments import Engine
from pytest_evocode.tasks import Task
from pytest_evocode.trial.context import TrialContext, TrialOptions


class _SolvesWhatItCan(OracleAgent):
    """Plays the reference solutions, and does nothing in rounds that have none."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        return super().run_round(context) if context.round.has_solution else RoundTranscript()


def passed_rounds(task: Task, engine: Engine, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Play each attack in each round, from the state before it, and return the names of the rounds that each passes.

    Raises:
        EvocodeError: A reference solution fails, or the environment does.
    """
    context = TrialContext.of(task, engine, TrialOptions(environ=environ))
    attempt = PlayedAttempt(context, _SolvesWhatItCan(), with_files=True)
    tried: dict[str, dict[str, Future[bool]]] = {name: {} for name in ATTACKS}
    with attempt.started(), ThreadPoolExecutor(2 * context.slots.count, thread_name_prefix="attacks") as pool:
        try:
            for round_ in task.rounds:
                played = attempt.play(round_)
                for name, attack in ATTACKS.items():
                    tried[name][round_.name] = pool.submit(_passes, attempt, played, attack)
            return {name: [each for each, passes in of.items() if passes.result()] for name, of in tried.items()}
        except BaseException:
            context.cancelled.set()
            attempt.stop()
            raise


def _passes(attempt: PlayedAttempt, played: PlayedRound, attack: Attack) -> bool:
    visible = visible_in(attempt.context.task, played.round, played.files_before, played.files_after)
    play = partial(play_attack, attack, visible, played.round)
    with attempt.branch(played.before, played.round, play) as (environment, snapshot):
        run = attempt.run_suite(snapshot, played.round, taken_of=environment, until_failure=True)
    return run.verdict is not None and run.verdict.passed
