"""What is found in the source of tests and of the product, whatever its language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or class of the product."""

    path: str
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Something that is called: ``name`` as it is called in its own module, ``module`` where it was imported from.

    ``module`` is None where the language imports whole packages, and empty for what was not imported.
    """

    module: str | None
    name: str


@dataclass(frozen=True, slots=True)
class TestFunction:
    """One test."""

    path: str
    name: str
    line: int
    asserts: int
    """Distinct assertions that can fail."""
    trivial: int
    """Assertions that cannot."""
    calls: frozenset[FunctionCall]
    text: str
    """Its source."""

    # Not a test of ours, whatever it is called.
    __test__ = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name}"


@dataclass(frozen=True, slots=True)
class TestFile:
    """The tests of one file."""

    functions: Mapping[str, TestFunction] = field(default_factory=dict)
    """By their qualified names."""
    bodies: Mapping[str, str] = field(default_factory=dict)
    """What tells whether a test is still the same."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class WrittenTests:
    """All tests of an agent."""

    functions: tuple[TestFunction, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """Test files that could not be read, with the reason."""

    @property
    def verifying(self) -> tuple[TestFunction, ...]:
        """Those that can fail."""
        return tuple(test for test in self.functions if test.asserts)
