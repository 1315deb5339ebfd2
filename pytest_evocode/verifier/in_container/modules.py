"""Where the modules of a native suite's session come from: from memory, read before the first test runs.

A program under test may rewrite every file that its user can write, also those that the session has yet to import. This
is what is run in the environment, and what it imports first, under Python 3.10 too.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import marshal
import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, NamedTuple

TESTS = "/tests"
OWN = f"{TESTS}/.evocode"
READY = "--ready"
#: What tests are imported as, so that a round may have any name: ``csv`` would take the place of Python's own.
PACKAGE = "tests"


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
        """See :class:`importlib.abc.MetaPathFinder`."""
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
        """As :meth:`find_spec`, for who reads the file: pytest, to have asserts explain themselves."""
        module = None if self.complete else self._modules.get(name)
        return importlib.util.spec_from_file_location(name, module.path) if module else None

    def exec_module(self, module: ModuleType) -> None:
        """See :class:`importlib.abc.Loader`."""
        exec(self._modules[module.__name__].code(), module.__dict__)


def pytest_from(file: str) -> Iterator[tuple[str, Module]]:
    """The modules of the toolbox, by name."""
    with open(file, "rb") as stream:
        compiled: dict[str, bytes] = marshal.load(stream)
    yield from ((name, Module(OWN, True, partial(compile, "", OWN, "exec"))) for name in _PARENTS)
    for path, code in compiled.items():
        parts = path.removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, Module(f"{OWN}/{path}", is_package, partial(marshal.loads, code))


def tests_in(directory: str, rounds: Container[str]) -> Iterator[tuple[str, Module]]:
    """The modules of all tests, and once more by their own names those that are shared by the ``rounds``."""
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
    """What a file or directory of the tests is imported as.

    >>> module_name("/tests/1.x/test_cli.py"), module_name("/tests/lib/__init__.py")
    ('tests.1%2Ex.test_cli', 'tests.lib')
    """
    relative = os.path.relpath(path, TESTS).removesuffix(".py")
    parts = [part.replace(".", "%2E") for part in relative.split("/") if part not in (".", "__init__")]
    return ".".join([PACKAGE, *parts])


class _Later(ModuleType):
    """Stands for a module of Python's own until somebody wants something of it."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class _Nothing(ModuleType):
    """A module that has every name, each a class of its own."""

    def __getattr__(self, name: str) -> type:
        return type(name, (Exception,), {})


class _Colours(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for Pygments, which pytest imports at its start for colours that nobody sees here.

    That would take a sixth of the time until the first test, and ours would hide the image's own from the tests.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "pygments" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def main() -> None:
    """Run the suite, or, told to see whether this Python is :data:`READY` for it, import what it takes."""
    # Another sixth, and pytest asks it for plugins only.
    sys.modules["importlib.metadata"] = importlib.metadata = _Later("importlib.metadata")
    sys.meta_path[:0] = [Memory(dict(pytest_from(f"{OWN}/modules"))), colours := _Colours()]
    from pytest_evocode.verifier.in_container import main as session

    sys.meta_path.remove(colours)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygments"]:
        del sys.modules[name]
    if sys.argv[1:] != [READY]:
        session.main()


if __name__ == "__main__":
    main()
