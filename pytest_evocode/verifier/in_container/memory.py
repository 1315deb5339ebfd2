"""Finds modules in memory, where all that a native suite's session imports is read before the first test runs.

A program under test may rewrite every file that its user can write, also those that the session has yet to import.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import marshal
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, NamedTuple

TESTS = "/tests"
OWN = f"{TESTS}/.evocode"
PACKAGE = "tests"
"""What tests are imported below, so that a round may have any name: ``csv`` would take the place of Python's own."""


_PARENTS = ("pytest_evocode", "pytest_evocode.verifier", "pytest_evocode.verifier.in_container")


class Module(NamedTuple):
    """One module: its file, and what compiles it when it is imported."""

    path: str
    is_package: bool
    code: Callable[[], CodeType]


class Memory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules that it is given."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules
        self.complete = False
        """Whether no other module is to come from directories of the tests."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module in memory, None for one that is not; see :class:`importlib.abc.MetaPathFinder`.

        Raises ModuleNotFoundError for one that directories of the tests have got since the suite began.
        """
        module = self._modules.get(fullname)
        if module is None:
            if self.complete and any(place.startswith(TESTS) for place in path or ()):
                raise ModuleNotFoundError(f"there was no module {fullname!r} when the suite began", name=fullname)
            return None
        inside = [os.path.dirname(module.path) if module.path.endswith(".py") else module.path]
        return importlib.util.spec_from_file_location(
            fullname, module.path, loader=self, submodule_search_locations=inside if module.is_package else None
        )

    def find_source(self, name: str, path: Any = None) -> ModuleSpec | None:
        """Return the spec of a module's file, which pytest reads for asserts that explain themselves.

        None once the suite is complete: then the file may be another one.
        """
        module = None if self.complete else self._modules.get(name)
        return importlib.util.spec_from_file_location(name, module.path) if module else None

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's code; see :class:`importlib.abc.Loader`."""
        exec(self._modules[module.__name__].code(), module.__dict__)


def toolbox_modules(compiled: Mapping[str, bytes]) -> Iterator[tuple[str, Module]]:
    """Yield the modules of the toolbox by name, from their marshalled code by path."""
    yield from ((name, Module(OWN, True, partial(compile, "", OWN, "exec"))) for name in _PARENTS)
    for path, code in compiled.items():
        parts = path.removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, Module(f"{OWN}/{path}", is_package, partial(marshal.loads, code))


def tests_in(directory: str, rounds: Container[str]) -> Iterator[tuple[str, Module]]:
    """Yield all modules of the tests by name, and once more without the package those that all ``rounds`` share."""
    for place, directories, files in os.walk(directory):
        if place == directory:
            directories.remove(os.path.basename(OWN))
        yield from _named(place, Module(place, True, partial(compile, "", place, "exec")), rounds)
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                with open(path, "rb") as stream:
                    code = partial(compile, stream.read(), path, "exec", dont_inherit=True)
                yield from _named(path, Module(path, name == "__init__.py", code), rounds)


def _named(path: str, module: Module, rounds: Container[str]) -> Iterator[tuple[str, Module]]:
    name = module_name(path)
    yield name, module
    first, _, _ = os.path.relpath(path, TESTS).partition("/")
    if first != "." and first not in rounds:
        yield name.partition(".")[2], module


def module_name(path: str) -> str:
    """Return the name that a file or directory of the tests is imported by.

    >>> module_name("/tests/1.x/test_cli.py"), module_name("/tests/lib/__init__.py")
    ('tests.1%2Ex.test_cli', 'tests.lib')
    """
    relative = os.path.relpath(path, TESTS).removesuffix(".py")
    parts = [part.replace(".", "%2E") for part in relative.split("/") if part not in (".", "__init__")]
    return ".".join([PACKAGE, *parts])
