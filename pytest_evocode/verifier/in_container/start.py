"""What is run in an environment: loads pytest and the suite's session from memory, and starts the session.

The toolbox makes one file of it, ``suite.pyc``; the file ``modules`` beside that has everything else. It is written for
the Python 3.10 that an image may have.
"""

from __future__ import annotations

import importlib.abc
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

READY = "--ready"
"""The argument with which nothing is run, to see whether this Python can import what a session takes."""

RELAY = "--relay"
"""The argument with which, and a path, only the door of a session on a terminal is passed on."""

_MEMORY = "pytest_evocode.verifier.in_container.memory"


class _Nothing(ModuleType):
    """A module that has every name, each a class of its own."""

    def __getattr__(self, name: str) -> type:
        return type(name, (Exception,), {})


class _Colours(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for Pygments, which pytest imports at its start for colours that nobody sees here.

    That would take a sixth of the time until the first test, and our Pygments would hide the image's from the tests.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "pygments" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def read_toolbox(directory: str) -> dict[str, bytes]:
    """Read the marshalled code of all modules by path, and load the module that finds the others among them."""
    with open(os.path.join(directory, "modules"), "rb") as stream:
        compiled: dict[str, bytes] = marshal.load(stream)
    sys.modules[_MEMORY] = memory = ModuleType(_MEMORY)
    exec(marshal.loads(compiled[f"{_MEMORY.replace('.', '/')}.py"]), memory.__dict__)
    return compiled


def main() -> None:
    """Run the suite or, with :data:`READY`, only import what that takes."""
    compiled = read_toolbox(os.path.dirname(os.path.abspath(sys.argv[0])))
    from pytest_evocode.verifier.in_container.memory import Memory, toolbox_modules

    sys.meta_path[:0] = [Memory(dict(toolbox_modules(compiled))), colours := _Colours()]
    from pytest_evocode.verifier.in_container import session
    from pytest_evocode.verifier.in_container.door_client import relay

    sys.meta_path.remove(colours)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygments"]:
        del sys.modules[name]
    if sys.argv[1:2] == [RELAY]:
        relay(sys.argv[2])
    elif sys.argv[1:] != [READY]:
        session.main()


if __name__ == "__main__":
    main()
