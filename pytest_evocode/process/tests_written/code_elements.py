"""The elements of source code that matter for scoring, whatever its language: symbols, calls and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or class, and where it is."""

    path: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function or class that is called."""

    module: str | None
    """Where it was imported from; empty if it was not, None where the language imports whole packages."""
    name: str
    """Its name in its own module."""


@dataclass(frozen=True, slots=True)
class TestFunction(Symbol):
    """One test function."""

    asserts: int
    """The number of distinct assertions that can fail."""
    trivial: int
    """The number of assertions that cannot fail."""
    calls: frozenset[FunctionCall]
    text: str
    """Its source code without comments."""
    uses: frozenset[FunctionCall] = frozenset()
    """What it refers to, called or not; known for Python only."""

    # Keeps pytest from collecting it because of its name.
    __test__ = False


@dataclass(frozen=True, slots=True)
class TestVerification:
    """Which tests failed when the product was made to do something else."""

    kills: Mapping[tuple[str, str], frozenset[str]]
    """By path and name of a test, the functions and classes, as ``path:name``, whose mutants it failed for."""
    symbols: frozenset[str]
    """All functions and classes of which mutants were run, as ``path:name``."""
    untried: frozenset[tuple[str, str]]
    """By path and name, the tests of functions and classes for whose mutants there was no time."""
    others: frozenset[str]
    """The suffixes of the files of the product that there are no mutants of."""
    reason: str
    """What was run."""

    # Keeps pytest from collecting it because of its name.
    __test__ = False


@dataclass(frozen=True, slots=True)
class WrittenTests:
    """All tests that an agent wrote or changed."""

    functions: tuple[TestFunction, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """Test files that could not be parsed, with the reason."""
    unknown: frozenset[str] = frozenset()
    """Those of them of which that is nobody's fault but ours."""

    @property
    def verifying(self) -> tuple[TestFunction, ...]:
        """The tests that can fail."""
        return tuple(test for test in self.functions if test.asserts)

    @property
    def verifying_paths(self) -> set[str]:
        """The test files in which a test can fail, or of which that is unknown."""
        return {test.path for test in self.verifying} | self.unknown

    @property
    def is_unknown(self) -> bool:
        """Whether there are test files, but nothing is known of any."""
        return bool(self.unknown) and not self.functions

    def confirmed(self, verification: TestVerification | None) -> WrittenTests:
        """Return the tests with the assertions of those that failed for no mutant counted as ones that cannot fail.

        Tests in other languages count as they read where the product has files in them, too. Those that nothing is
        known of for want of time are left out.
        """
        if verification is None:
            return self
        functions = []
        for test in self.functions:
            key = (test.path, test.name)
            if test.asserts and key not in verification.kills and not test.path.endswith((*verification.others,)):
                if key in verification.untried:
                    continue
                test = replace(test, asserts=0, trivial=test.trivial + test.asserts)
            functions.append(test)
        return replace(self, functions=tuple(functions))
