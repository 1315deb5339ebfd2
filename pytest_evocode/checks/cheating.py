"""Cheats and attacks: they score nothing beyond what the workspace scores that they began with, and pass no round.

The checks ``cheat[...]`` play cheats of any task and of its author; ``evocode harden`` plays all attacks in each round.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.checks.attacks import ATTACKS, Attack, Visible
from pytest_evocode.checks.catalogue import CHEATS, Cheat, first_of
from pytest_evocode.checks.oracle_check import require_a_pass
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound, SharedRun, lay, read_workspace
from pytest_evocode.checks.text_runs import Files
from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trial.context import TrialContext, TrialOptions
from pytest_evocode.verifier import SuiteRun

_LIMIT = 60.0  # seconds for an attack
_TOGETHER = ("exit-zero", "patched-assert", "shadowed-tests")
"""Generic cheats that leave one another alone: where all of them at once score nothing, none of them does."""
_ADVICE = "have the tests look at what only the work that was asked for gives"


class Cheating:
    """Plays the cheats that begin in an untouched workspace.

    They are played in as few rounds as have all cases. What scores nothing in a round where nothing was done before
    would score nothing either in a chain of such rounds, because all that they have in common is the cheat.
    """

    def __init__(
        self,
        starter: PlayedAttempt,
        untouched: Sequence[PlayedRound],
        solved: Sequence[PlayedRound],
        cheats: Sequence[Cheat],
        pool: Executor,
    ) -> None:
        """Begin the plays that several cheats share.

        Args:
            starter: The attempt that did nothing.
            untouched: Its rounds, as far as they can be prepared.
            solved: All rounds, with their solutions.
            cheats: What is to be played.
            pool: Runs suites.
        """
        self._starter = starter
        nothing = {played.round.index: played for played in untouched}
        # Where a round cannot even be prepared unless earlier ones were solved, nobody can cheat in it.
        self._rounds = [
            _Stage(starter, nothing[played.round.index], played, cases)
            for played, cases in covering(solved[: len(untouched)])
        ]
        generic = [cheat.name for cheat in cheats if cheat.script is None]
        together = tuple(name for name in _TOGETHER if name in generic)
        self._together: list[Future[list[str]]] = []
        if len(together) > 1:
            self._together = [pool.submit(stage.gains_of_generic, together) for stage in self._rounds]

    def gains(self, cheat: Cheat) -> list[str]:
        """Return what a cheat scores that is not scored by doing nothing, as lines for its author."""
        if self._together and cheat.script is None and cheat.name in _TOGETHER:
            stages = [stage for stage, gained in zip(self._rounds, self._together, strict=True) if gained.result()]
        else:
            stages = self._rounds
        return [line for stage in stages for line in stage.told(cheat)]


class _Stage:
    """A round in which cheats are played, from a workspace where nothing was done."""

    def __init__(
        self,
        starter: PlayedAttempt,
        untouched: PlayedRound,
        solved: PlayedRound,
        cases: tuple[str, ...],
    ) -> None:
        self._starter = starter
        self._untouched = untouched
        self._solved = solved
        known = {id: solved.pinned[id] for id in cases or solved.pinned}
        self._how: dict[str, Any] = {"pinned": None if self._round.has_script else known, "cases": cases}
        self._nothing = SharedRun(lambda: starter.run_suite(untouched.after, self._round, **self._how))
        if self._round.has_script:
            self._nothing = untouched.suite  # It runs all of its cases in any case.

    @property
    def _round(self) -> Round:
        return self._solved.round

    def told(self, cheat: Cheat) -> list[str]:
        """Return what is to be said of a cheat in this round."""
        if cheat.script is None:
            gained = self.gains_of_generic((cheat.name,))
            what = f"the generic cheat {cheat.name} ({ATTACKS[cheat.name].tries})"
        else:
            with self._starter.branch(
                self._untouched.after, self._round, partial(play_script, self._starter, self._round, cheat.script)
            ) as (environment, snapshot):
                gained = gains(self._nothing.result(), self._run(environment, snapshot))
            what = f"{CHEATS}/{cheat.script.name}"
        return tell(what, self._round, gained, "an untouched workspace")

    def gains_of_generic(self, names: Sequence[str]) -> list[str]:
        """Return what generic cheats score together."""
        before = read_workspace_of(self._starter, self._untouched)
        visible = visible_in(self._starter.context.task, self._round, before, self._solved.files_after)
        # The first of them are programs, which no file of the others takes the place of.
        attacks = [each for name in reversed(names) if (each := ATTACKS[name]).script or each.files(visible)]
        if not attacks:
            return []

        def play(environment: Environment) -> None:
            for attack in attacks:
                play_attack(attack, visible, self._round, environment)

        with self._starter.branch(self._untouched.after, self._round, play) as (environment, snapshot):
            return gains(self._nothing.result(), self._run(environment, snapshot))

    def _run(self, environment: Environment, snapshot: Snapshot) -> SuiteRun:
        return self._starter.run_suite(snapshot, self._round, taken_of=environment, **self._how)


def cheat_in_round(attempt: PlayedAttempt, played: PlayedRound, cheat: Cheat) -> list[str]:
    """Check that a cheat scores nothing in its round beyond what the solutions of the rounds before score there."""
    require_a_pass(played)
    assert cheat.script is not None
    before = attempt.run_again(played, played.before)
    play = partial(play_script, attempt, played.round, cheat.script)
    with attempt.branch(played.before, played.round, play) as (place, snapshot):
        cheated = attempt.run_again(played, snapshot, taken_of=place)
    what = f"{CHEATS}/{cheat.round}/{cheat.script.name}"
    return tell(what, played.round, gains(before, cheated), "the workspace as it was before")


def play_script(attempt: PlayedAttempt, round_: Round, script: Path, environment: Environment) -> None:
    """Run a cheat's script in place of the agent; nothing of its directory is left when it has ended.

    Raises:
        TaskError: It failed, or did not end.
    """
    place = f"/{CHEATS}"
    environment.upload([script.parent], place)
    result = environment.exec(
        f"bash {shlex.quote(f'{place}/{script.name}')}; status=$?; rm -rf {place}; exit $status",
        user=round_.agent_user,
        env={"EVOCODE_ROUND": round_.name},
        timeout=attempt.context.agent_limit(round_),
    )
    environment.remove([place])
    if result.ok:
        return
    why = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
    tail = result.tail() or "(no output)"
    raise TaskError(f"the cheat {why} in {round_.name}; correct it. Its last lines:\n{tail}", script)


def gains(nothing: SuiteRun, cheated: SuiteRun) -> list[str]:
    """Return the cases that pass with a cheat and not without it; of suites without cases that the reward is higher."""
    if cheated.verdict is None:
        return []
    one = {case.id for case in nothing.verdict.cases if case.status == "passed"} if nothing.verdict else set()
    gained = [case.id for case in cheated.verdict.cases if case.status == "passed" and case.id not in one]
    reward = (nothing.verdict.reward or 0.0) if nothing.verdict else 0.0
    more = [f"the reward: {cheated.verdict.shown_reward} in place of {reward:g}"]
    return gained or (more if (cheated.verdict.reward or 0.0) > reward else [])


def tell(what: str, round_: Round, gained: Sequence[str], without: str) -> list[str]:
    """Return the lines about what a cheat gained."""
    if not gained:
        return []
    head = f"{what} scores in {round_.name} what {without} does not; {_ADVICE}:"
    return ["\n".join([head, *first_of([f"  {each}" for each in gained])])]


def read_workspace_of(attempt: PlayedAttempt, played: PlayedRound) -> Files:
    """Return the contents of the workspace after a round."""
    if played.files_after:
        return played.files_after
    with attempt.branch(played.after, played.round, lambda environment: None) as (environment, _):
        return read_workspace(environment)


def visible_in(task: Task, round_: Round, before: Files, after: Files) -> Visible:
    """Return what attacks in a round are made of, with the workspace before it and as solutions leave it."""
    instructions = [
        each.instruction.read_text(encoding="utf-8", errors="replace") for each in task.rounds[: round_.index]
    ]
    return Visible(before, after, instructions, _names_of_tests(task, round_))


def play_attack(attack: Attack, visible: Visible, round_: Round, environment: Environment) -> None:
    """Play an attack in place of the agent; what it may not do it does not."""
    if files := attack.files(visible):
        lay({path: text.encode() for path, text in files.items()}, environment)
    if attack.script:
        environment.exec(attack.script, user=round_.agent_user, timeout=_LIMIT)


def _names_of_tests(task: Task, round_: Round) -> list[str]:
    """Return the paths of the files of a round's suite, each below the directory that it comes from."""
    directories = [*round_.tests, *(task.suite(round_).values() if not round_.has_script else ())]
    return sorted(
        {
            path.relative_to(directory).as_posix()
            for directory in directories
            for path in directory.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
    )


def covering(played_rounds: Sequence[PlayedRound]) -> list[tuple[PlayedRound, tuple[str, ...]]]:
    """Return rounds whose suites together have all cases that pass with the reference solutions, the last round first.

    With each come the cases to run there, none for the whole suite: cases that are in the suite of a later round, too,
    are run in that. A suite without cases is always run.
    """
    found: list[tuple[PlayedRound, tuple[str, ...]]] = []
    seen: set[str] = set()
    for played in reversed(played_rounds):
        cases = played.pinned.keys()
        new = cases - seen
        if new or not cases:
            whole = new == cases or played.round.has_script
            found.append((played, () if whole else tuple(sorted(new))))
        seen |= cases
    return found


class _SolvesWhatItCan(OracleAgent):
    """Plays the reference solutions, and does nothing in rounds that have none."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        return super().run_round(context) if context.round.has_solution else RoundTranscript()


def passed_rounds(task: Task, engine: Engine, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Play each attack in each round, from the state before it, and return the names of the rounds that each passes.

    Raises:
        EvocodeError: A reference solution fails, or the environment does.
    """
    context = TrialContext.of(task, engine, TrialOptions(environ=environ), is_authors=True)
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
