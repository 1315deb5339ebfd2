"""Running of the selected checks of one task: plays what they need, several suites at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial

from pytest_evocode.agents.oracle import NopAgent, OracleAgent
from pytest_evocode.checks import controls, executed_checks
from pytest_evocode.checks.catalogue import Answer, Cheat, Check, CheckWarning, cheats_of, controls_of
from pytest_evocode.checks.cheating import Cheating, cheat_in_round
from pytest_evocode.checks.check_cache import CheckCache
from pytest_evocode.checks.machine_load import Slowdown, run_beside_busy_processes, timing, under_load
from pytest_evocode.checks.oracle_check import oracle, why_not
from pytest_evocode.checks.played_attempt import PATIENCE, PlayedAttempt, PlayedRound, SharedRun
from pytest_evocode.checks.text_runs import Files
from pytest_evocode.environments import Engine
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import CannotBeChecked, EnvironmentFault, EvocodeError
from pytest_evocode.tasks import Task
from pytest_evocode.trial.context import TrialContext, TrialOptions
from pytest_evocode.verifier import SuiteRun

logger = logging.getLogger(__name__)

_WITH_FILES = ("active", "starter-clean", "cheat", "control")
"""The checks that look at the contents of the workspace."""


class CheckRunner:
    """The checks of one task; :meth:`run` makes them."""

    def __init__(
        self,
        task: Task,
        engine: Engine,
        checks: Sequence[Check],
        options: TrialOptions,
        *,
        anew: bool = False,
    ) -> None:
        """Prepare the checks; nothing is started yet.

        Args:
            task: The task.
            engine: Starts the environments.
            checks: The selected checks.
            options: How suites are run, and how often to see whether the verdict is always the same, from three on.
            anew: Whether to make checks, too, that an earlier session made.
        """
        self._task = task
        self._answers: dict[Check, Future[Answer]] = {check: Future() for check in checks}
        self._begun: set[Check] = set()
        self._anew = anew
        context = TrialContext.of(task, engine, options, is_authors=True)
        # More threads than suites at once: many wait for another suite's verdict, or for a slot.
        self._suites = 2 * context.slots.count
        self._cancelled = context.cancelled
        self._cache = CheckCache(task, engine, options)
        with_files = any(check.kind in _WITH_FILES for check in checks)
        self._oracle = PlayedAttempt(context, OracleAgent(patience=PATIENCE, in_check=True), with_files=with_files)
        self._nop = PlayedAttempt(context, NopAgent(), until_failure=True)
        self._building = Slowdown()
        self._solved: Future[list[PlayedRound]] = Future()
        """The rounds that the reference solutions were played in, for those who begin where nothing was done."""
        self._loaded_round: PlayedRound | None = None
        self._loaded: SharedRun
        """The run of the last round's suite beside busy processes, where that is to be checked."""
        self._ended = threading.Event()

    def answer(self, check: Check) -> Answer:
        """Wait for a check and return what came of it.

        Raises:
            CannotBeChecked: The check came to no result.
            EnvironmentFault: The environment failed.
        """
        return self._answers[check].result()

    def cancel(self) -> None:
        """Have checks that are not made yet come to no result."""
        if not all(answer.done() for answer in self._answers.values()):
            self._cancelled.set()

    def close(self) -> None:
        """End what still runs; may be called from any thread, and more than once."""
        self.cancel()
        while not self._ended.wait(0.05):
            if self._cancelled.is_set():
                # Repeatedly, because something may have been about to start during an earlier call.
                self._oracle.stop()
                self._nop.stop()

    def run(self) -> None:
        """Find the answers; returns when there are all, and may be called once."""
        try:
            if self._cancelled.is_set():
                raise CannotBeChecked(STOPPED)
            with self._building.measured():
                # Here, so that an image that cannot be built is tried only once.
                self._oracle.context.task_environment.build()
            self._cache.prepare(self._answers)
            if not self._anew:
                self._take_cached()
            self._play_attempts()
        except BaseException as error:
            self._leave_open([*self._answers], error)
        finally:
            self._ended.set()

    def _take_cached(self) -> None:
        """Answer those checks that an earlier session made."""
        for check, answer in self._answers.items():
            if (found := self._cache.find(check)) is not None:
                self._begun.add(check)
                answer.set_result(Answer(found, cached=True))

    def _play_attempts(self) -> None:
        """Play the reference solutions and an attempt that does nothing, side by side, as far as they are needed."""
        left = [check for check in self._answers if check not in self._begun]
        cheats = [cheat for cheat in cheats_of(self._task) if cheat.check in left and not cheat.round]
        of_nop = [check for check in left if check.kind == "nop" or check in {cheat.check for cheat in cheats}]
        of_solutions = [check for check in left if check not in of_nop]
        with ThreadPoolExecutor(2, thread_name_prefix="attempt") as players:
            if of_solutions or cheats:
                players.submit(self._play, self._oracle, self._play_solutions, of_solutions)
            if of_nop:
                players.submit(self._play, self._nop, partial(self._play_nothing, cheats=cheats), of_nop)

    def _play(self, attempt: PlayedAttempt, play: Callable[[Executor], None], checks: Sequence[Check]) -> None:
        """Play one of the attempts, and give each of its checks an answer, whatever happens."""
        why: BaseException = CannotBeChecked(STOPPED)
        try:
            with attempt.started(), ThreadPoolExecutor(self._suites, thread_name_prefix="checks") as pool:
                play(pool)
        except (EnvironmentFault, CannotBeChecked) as error:
            why = error
        except EvocodeError as error:
            why = CannotBeChecked(str(error), told_by="oracle" if attempt is self._oracle else "")
        except BaseException as error:
            why = error
        self._leave_open(checks, why)
        if attempt is self._oracle and not self._solved.done():
            self._solved.set_exception(why)

    def _play_nothing(self, pool: Executor, cheats: Sequence[Cheat]) -> None:
        played_rounds: list[PlayedRound] = []
        try:
            for round_ in self._task.rounds:
                played_rounds.append(self._nop.play(round_))
        except EnvironmentFault:
            raise
        except EvocodeError:
            pass  # Where nothing was done, a round that builds on an earlier one may not even be prepared.
        if self._is_open(Check("nop")):
            for played in played_rounds:
                pool.submit(played.suite.result)
        self._answer(pool, Check("nop"), lambda: executed_checks.nop(played_rounds))
        if cheats:
            cheating = Cheating(self._nop, played_rounds, self._solved.result(), cheats, pool)
            for cheat in cheats:
                self._answer(pool, cheat.check, partial(cheating.gains, cheat))

    def _play_solutions(self, pool: Executor) -> None:
        visible: Files = {}
        doubts: Sequence[CheckWarning] = ()
        if self._is_open(Check("starter-clean")):
            visible, doubts = executed_checks.find_visible(self._oracle.environment, self._task)
        played_rounds: list[PlayedRound] = []
        cause: EvocodeError | None = None
        try:
            for round_ in self._task.rounds:
                played_rounds.append(played := self._oracle.play(round_))
                if self._needs_suite(played):
                    pool.submit(played.suite.result)
        except EvocodeError as error:
            cause = error
        if not isinstance(cause, EnvironmentFault):
            self._answer(
                pool,
                Check("oracle"),
                lambda: [*oracle(self._oracle, played_rounds), *([str(cause)] if cause else [])],
            )
        if cause is None and self._is_open(Check("under-load")):
            self._loaded_round = last = played_rounds[-1]
            self._loaded = SharedRun(lambda: run_beside_busy_processes(self._oracle, last))
        # Only now, so that the suites of the check oracle come first: where they fail, so do most checks.
        for played in played_rounds:
            self._follow(pool, played)
        if cause is not None:
            raise cause
        self._solved.set_result(played_rounds)
        context, attempt = self._oracle.context, self._oracle
        self._answer(pool, Check("time"), lambda: timing(attempt, played_rounds, self._building))
        self._answer(pool, Check("under-load"), lambda: under_load(attempt, played_rounds[-1], self._loaded))
        for check in controls_of(self._task):
            self._answer(pool, check, partial(controls.missed_by, attempt, played_rounds, check.subject))
        if self._is_open(Check("clean")):
            cleaned = [played for played in played_rounds if played.round.verify_in == "clean"]
            found = [pool.submit(executed_checks.clean, attempt, played) for played in cleaned]
            self._answer(pool, Check("clean"), lambda: [line for each in found for line in each.result()])
        if self._is_open(Check("active")):  # Of the requirements that only the cases of a test.sh name.
            scripted = [played for played in played_rounds if played.round.has_script]
            named = [pool.submit(executed_checks.active_script, attempt, played) for played in scripted]
            self._answer(
                pool, Check("active"), lambda: executed_checks.active_scripts([each.result() for each in named])
            )
        self._answer(
            pool,
            Check("starter-clean"),
            lambda: executed_checks.starter_clean(context.task, played_rounds, visible, doubts),
        )

    def _is_open(self, check: Check) -> bool:
        return check in self._answers and check not in self._begun

    def _needs_suite(self, played: PlayedRound) -> bool:
        """Return whether a check that is left looks at the run of a round's suite after its solution."""
        name = played.round.name
        of_round = {name, *(each.id for each in self._task.requirements if each.introduced == name)}

        def looks(check: Check) -> bool:
            whole = not check.subject and check.kind not in ("nop", "starter-clean")
            return whole or check.subject in of_round or check.kind in ("cheat", "control")

        return any(self._is_open(check) and looks(check) for check in self._answers)

    def _follow(self, pool: Executor, played: PlayedRound) -> None:
        """Begin the checks that are about one round, once it was played."""
        name, attempt = played.round.name, self._oracle
        answer = partial(self._answer, pool)
        answer(Check("needs-work", name), lambda: executed_checks.needs_work(attempt, played))
        if self._is_open(Check("deterministic", name)) or self._is_open(Check("hermetic", name)):
            second = SharedRun(lambda: self._run_again(played))
            pool.submit(second.result)
            answer(Check("hermetic", name), lambda: executed_checks.hermetic(attempt, played, second.result()))
            answer(
                Check("deterministic", name), lambda: executed_checks.deterministic(attempt, played, second.result())
            )
        introduced = [each.id for each in self._task.requirements if each.introduced == name]
        wanted = [id for id in introduced if self._is_open(Check("active", id))]
        if wanted:
            found = pool.submit(executed_checks.active, attempt, played, wanted)
            for id in wanted:
                answer(Check("active", id), lambda id=id: found.result()[id])  # type: ignore[misc]
        for cheat in cheats_of(self._task):
            if cheat.round == name:
                answer(cheat.check, partial(cheat_in_round, attempt, played, cheat))

    def _run_again(self, played: PlayedRound) -> SuiteRun:
        """Run a round's suite a second time, without a network unless the round asks for one.

        Where the same run beside busy processes passes, which another check needs, no other run is needed.
        """
        if played is self._loaded_round and not why_not(self._loaded.result()):
            return self._loaded.result()
        return self._oracle.run_again(played, played.after, offline=not played.round.suite_has_network)

    def _answer(self, pool: Executor, check: Check, find: Callable[[], list[str]]) -> None:
        """Submit a check to the pool, where it is selected and not answered yet."""

        def answer() -> None:
            try:
                found = find()
                logger.debug("%s: check %s found %d problems", self._task.name, check, len(found))
                self._cache.keep(check, found)
                self._answers[check].set_result(Answer(found))
            except BaseException as error:
                logger.debug("%s: check %s came to no result (%s)", self._task.name, check, type(error).__name__)
                self._answers[check].set_exception(error)

        if self._is_open(check):
            self._begun.add(check)
            pool.submit(answer)

    def _leave_open(self, checks: Sequence[Check], error: BaseException) -> None:
        """Answer those of the checks that were not begun with an error."""
        for check in checks:
            if check not in self._begun:
                self._begun.add(check)
                self._answers[check].set_exception(error)
