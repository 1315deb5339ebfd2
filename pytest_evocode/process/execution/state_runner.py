"""Run commands in the states that a round went through, as many as there is time for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from pytest_evocode.environments import Environment
from pytest_evocode.errors import StateNotRebuilt
from pytest_evocode.process.execution.command_results import CommandResult, ResultCache, key_of
from pytest_evocode.process.execution.timeline import Timeline, WorkspaceState
from pytest_evocode.tasks import Round

logger = logging.getLogger(__name__)

#: Seconds for one build or test run.
COMMAND_LIMIT = 120.0
#: Makes test runners name the tests that pass; each takes its own variables and ignores the others.
VERBOSE = {"PYTEST_ADDOPTS": "-rA -p no:cacheprovider", "GOFLAGS": "-v", "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}

Result = TypeVar("Result", bound=CommandResult)


class StateRunner:
    """Runs commands in forks of one round's states, until a deadline on :func:`time.monotonic`."""

    def __init__(
        self, timeline: Timeline, cache: ResultCache, round_: Round, states: Sequence[WorkspaceState], deadline: float
    ) -> None:
        self.round = round_
        self.states = states
        """In order; the first is the start of the round."""
        self.trouble = ""
        """Why a state could not be rebuilt."""
        self.has_engine = timeline.has_engine
        """Whether anything can be run; otherwise only cached results are known."""
        self._timeline = timeline
        self._cache = cache
        self._deadline = deadline

    def allow(self, seconds: float) -> None:
        """Put the deadline off, by what something took that has a budget of its own."""
        self._deadline += seconds

    def run(self, commands: Mapping[str, str]) -> dict[str, dict[int, CommandResult]]:
        """Run builds and tests in the states; where time is short, in a sample spread evenly over them.

        Args:
            commands: Shell lines by name. One called ``build`` is not run in the first state, which is not the
                agent's work.

        Returns:
            By name, the results by the number of the state.
        """
        results: dict[str, dict[int, CommandResult]] = {name: {} for name in commands}
        missing: dict[int, list[str]] = {}
        for number, state in enumerate(self.states):
            for name, command in commands.items():
                if number == 0 and name == "build":
                    continue
                if (known := self._cache.get(key_of(state.key, name, command), CommandResult)) is not None:
                    results[name][number] = known
                else:
                    missing.setdefault(number, []).append(name)
        took: list[float] = []
        for number in evenly(list(missing), lambda: self._affordable(took)) if self.has_engine else ():
            began = time.monotonic()
            try:
                with self._timeline.fork(self.states[number], self.round) as fork:
                    for name in missing[number]:
                        results[name][number] = self._execute(fork, self.states[number], name, commands[name])
            except StateNotRebuilt as lost:
                self.trouble = str(lost)
                break
            took.append(time.monotonic() - began)
        logger.debug("%s: ran %d of %d states", self.round.name, len(took), len(missing))
        return results

    def in_last_state(
        self, kind: type[Result], key: Sequence[object], run: Callable[[Environment], Result], *, late: bool = False
    ) -> Result | None:
        """Return the cached result for the last state, or run it there; None without an engine or time for that.

        With ``late`` it is run after the deadline, too, as something that has a budget of its own.
        """
        state = self.states[-1]
        name = key_of(state.key, *key)
        known = self._cache.get(name, kind)
        if known is not None or not self.has_engine or (time.monotonic() > self._deadline and not late):
            return known
        with self._timeline.fork(state, self.round) as fork:
            result = run(fork)
        self._cache.put(name, result)
        return result

    def _affordable(self, took: Sequence[float]) -> int:
        """Return how many more states there is time for, given the seconds that the others took."""
        left = self._deadline - time.monotonic()
        return max(0, int(left * len(took) / sum(took)))

    def _execute(self, fork: Environment, state: WorkspaceState, name: str, command: str) -> CommandResult:
        limit = max(5.0, min(COMMAND_LIMIT, self._deadline - time.monotonic() + 5.0))
        result = CommandResult.of(fork.exec(command, user=self.round.agent_user, env=VERBOSE, timeout=limit))
        if not result.timed_out or limit == COMMAND_LIMIT:  # A run that the budget cut short is no result.
            self._cache.put(key_of(state.key, name, command), result)
        return result


def evenly(numbers: Sequence[int], affordable: Callable[[], int]) -> Iterator[int]:
    """Yield the first number, then as many as ``affordable`` allows by then, evenly spread up to the last."""
    yield from numbers[:1]
    left = numbers[1:]
    while left and (count := min(affordable(), len(left))) > 0:
        index = -(-len(left) // count) - 1
        yield left[index]
        left = left[index + 1 :]
