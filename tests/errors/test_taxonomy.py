"""All exceptions of the package are in one module, and its docstring shows how they derive from each other."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest_evocode
from pytest_evocode import errors

PACKAGE = Path(pytest_evocode.__file__).parent
EXCEPTIONS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
}
#: What runs beside the tests of a native suite, and imports nothing of the package.
SESSION = PACKAGE / "verifier/in_container"
BUILTIN = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)}


def test_no_other_module_defines_an_exception() -> None:
    elsewhere = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if path != PACKAGE / "errors.py" and SESSION not in path.parents
        for name, bases in re.findall(r"^ *class (\w+)\(([^)]*)\)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if BUILTIN.union(EXCEPTIONS).intersection(re.findall(r"\w+(?=\s*(?:,|$))", bases))
    ]
    assert elsewhere == []


def test_the_docstring_shows_every_exception_below_its_base() -> None:
    assert errors.__doc__ is not None
    shown: dict[str, str] = {}
    above: list[str] = []
    for line in errors.__doc__.splitlines():
        if match := re.match(r"    ([ │├└─]*)([A-Z]\w+)(?:  |$)", line):
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            shown[match[2]] = above[depth - 1] if depth else ""
    bases = {name: kind.__bases__[0].__name__ for name, kind in EXCEPTIONS.items()}
    assert shown == {name: "" if base == "Exception" else base for name, base in bases.items()}
