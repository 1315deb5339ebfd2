"""Find out which of an agent's tests can fail for the product, by running them against mutants of what it changed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_evocode.environments import Environment
from pytest_evocode.errors import OutOfTime
from pytest_evocode.process.execution.command_results import CommandResult
from pytest_evocode.process.execution.mutants import Mutant, mutants, rewritten, with_names
from pytest_evocode.process.execution.state_runner import VERBOSE, StateRunner
from pytest_evocode.process.tests_written import TestFunction, TestVerification, WrittenTests, refers_to
from pytest_evocode.process.tests_written.code_elements import Symbol
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.trajectories.file_changes import File, write_files

#: Seconds for one run of the tests against a mutant.
MUTANT_LIMIT = 30.0


@dataclass(slots=True)
class MutationRun:
    """Runs the tests of an agent in the last state of a round, with changed modules replaced by their mutants."""

    runner: StateRunner
    activity: RoundActivity
    test: str
    """The shell line that runs the tests."""
    sources: tuple[str, ...]
    """The changed Python files of the product."""
    tests: WrittenTests
    budget: float
    """Seconds for the round."""
    tell: Callable[[str], None]
    """Is told what is run; nothing of what is known already."""
    _deadline: float = 0.0
    _kills: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _tried: set[str] = field(default_factory=set)
    """The symbols with a mutant that was run."""

    def verification(self) -> TestVerification | None:
        """Return which tests fail for which changed function; None where too little could be run to say so."""
        candidates = [test for test in self.tests.functions if test.asserts]
        waiting = list(self._mutants())
        if not candidates or not waiting:
            return None
        self._deadline = time.monotonic() + self.budget
        originals = {path: rewritten(self.activity.workspace[path]) for path in self.sources}
        same = self._run(originals, ("rewritten",), "the product as it is, written anew")
        if same is None:
            return None
        passing = [test for test in candidates if _outcome(test, same) is True]
        symbols = {_named(mutant) for mutant in waiting}
        done = 0
        for mutant in waiting:
            if self._is_settled(mutant, passing):
                continue
            if not self._try(mutant, passing, f"mutant {done + 1} of {len(waiting)}: {mutant.what}"):
                break
            done += 1
        if symbols - self._tried:
            return None  # Some function has no mutant that was run, so that nothing can be said of its tests.
        unfinished = f", {len(waiting) - done} left out by need or for time" if done < len(waiting) else ""
        try:
            before = [test for test in passing if self._fails_before(test)]
        except OutOfTime:
            return None
        return TestVerification(
            kills={key: frozenset(found) for key, found in self._kills.items()}
            | {(test.path, test.name): frozenset({"before"}) for test in before},
            symbols=frozenset(symbols),
            reason=f"{done} mutants of {len(symbols)} functions and classes{unfinished}",
        )

    def _mutants(self) -> Iterator[Mutant]:
        for path in self.sources:
            try:
                yield from mutants(path, self.activity.origin.get(path), self.activity.workspace[path])
            except SyntaxError:
                continue

    def _is_settled(self, mutant: Mutant, passing: list[TestFunction]) -> bool:
        """Return whether a mutant would tell nothing new: its function fails tests, and all tests have failed."""
        killed = {symbol for found in self._kills.values() for symbol in found}
        return _named(mutant) in killed and all((test.path, test.name) in self._kills for test in passing)

    def _try(self, mutant: Mutant, passing: list[TestFunction], what: str) -> bool:
        """Run the tests against a mutant, and return whether there was time for it."""
        result = self._run({mutant.path: mutant.text}, ("mutant",), what)
        if result is None:
            return False
        self._tried.add(_named(mutant))
        for test in passing:
            if _fails(test, result):
                self._kills.setdefault((test.path, test.name), set()).add(_named(mutant))
        return True

    def _fails_before(self, test: TestFunction) -> bool:
        """Return whether a test of something that has no mutants fails in the state before the round.

        One that names a function with mutants had the chance to fail for them, and an import that fails shows nothing.
        """
        key = (test.path, test.name)
        if key in self._kills or any(refers_to(test, _symbol(name)) for name in self._tried):
            return False
        originals = {
            path: with_names(self.activity.before.get(path), self.activity.workspace[path]) for path in self.sources
        }
        before = self._run(originals, ("before",), "the product as it was before the round")
        if before is None:
            raise OutOfTime
        return bool(before.tests) and _fails(test, before)

    def _run(self, replaced: Mapping[str, str | None], kind: tuple[str, ...], what: str) -> CommandResult | None:
        """Return how the tests end with some files replaced; None where that is not known and there is no time."""

        def run(fork: Environment) -> CommandResult:
            limit = min(MUTANT_LIMIT, self._deadline - time.monotonic())
            if limit <= 0:
                raise OutOfTime
            self.tell(f"{self.activity.name}: running the tests against {what}")
            write_files(fork, {path: _file(text) for path, text in replaced.items()}, user=None)
            executed = fork.exec(self.test, user=self.runner.round.agent_user, env=VERBOSE, timeout=limit)
            if executed.timed_out and limit < MUTANT_LIMIT:
                raise OutOfTime
            return CommandResult.of(executed)

        key = (*kind, self.test, sorted(replaced.items()))
        late = time.monotonic() < self._deadline
        try:
            return self.runner.in_last_state(CommandResult, key, run, late=late)
        except OutOfTime:
            return None


def _named(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.symbol}"


def _symbol(name: str) -> Symbol:
    path, _, symbol = name.rpartition(":")
    return Symbol(path, symbol, 0)


def _file(text: str | None) -> File | None:
    return None if text is None else File(content=text.encode("utf-8", "surrogateescape"))


def _fails(test: TestFunction, result: CommandResult) -> bool:
    """Return whether an assertion of a test failed: that a mutant crashes shows nothing about its assertions."""
    if not result.tests:
        return not result.ok and not result.timed_out
    found = _named_in(test, result)
    return any(not ok and title not in result.broken_off for title, ok in found.items())


def _outcome(test: TestFunction, result: CommandResult) -> bool | None:
    """Return whether a test passed; where the output names no test, whether all did; None where it was not run."""
    if not result.tests:
        return result.ok
    found = _named_in(test, result)
    if found:
        return all(found.values())
    # A module that cannot even be loaded names none of its tests.
    return None if result.ok else False


def _named_in(test: TestFunction, result: CommandResult) -> dict[str, bool]:
    owner, _, name = test.name.rpartition("::")
    module = test.path.rpartition("/")[2].partition(".")[0]
    wanted = [re.compile(rf"(?<!\w){re.escape(each)}(?!\w)") for each in (name, owner, module) if each]
    if test.path.endswith(".py"):
        # Its module may be called as it is: `test_half (test_half.H.test_half)`, `test_half.py::H::test_half[1]`.
        wanted.append(re.compile(rf"(?:^|::){re.escape(name)}(?:\[|$| \()"))
    return {title: ok for title, ok in result.tests.items() if all(each.search(title) for each in wanted)}
