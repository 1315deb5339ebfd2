"""What keeps the tree readable: small functions, one name for one class, no circles."""

from __future__ import annotations

import ast
import gc
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "pytest_evocode"
TEMPLATES = PACKAGE / "cli" / "new_task" / "templates"
LONGEST_FUNCTION = 60
#: What modules import at once of packages that extras bring.
OF_EXTRAS = {"acp", "anyio", "gymnasium", "mcp", "openenv", "verifiers"}


@dataclass(frozen=True)
class Module:
    """What the tests ask of a module; its tree is not kept, which has a thousand nodes."""

    docstring: str
    classes: Sequence[str]
    """The names of those that it defines itself, not within others."""
    functions: Mapping[str, int]
    """Wherever they are, with how many lines they have; the longest of one name."""
    imports: Sequence[ast.Import | ast.ImportFrom]
    """Wherever they are: in functions and for types, too."""

    @classmethod
    def of(cls, tree: ast.Module) -> Module:
        functions: dict[str, int] = {}
        imports = []
        for node in statements_of(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                functions[node.name] = max(length, functions.get(node.name, 0))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imports.append(node)
        classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        return cls(ast.get_docstring(tree) or "", classes, functions, imports)


@cache
def modules() -> Mapping[str, Module]:
    """All modules, by dotted name."""
    found = {}
    # Looking for garbage among the nodes of a tree takes longer than making it, and there is none.
    gc.disable()
    try:
        for path in PACKAGE.rglob("*.py"):
            if not path.is_relative_to(TEMPLATES):
                name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
                found[name] = Module.of(ast.parse(path.read_text(encoding="utf-8"), filename=str(path)))
    finally:
        gc.enable()
    return found


def statements_of(tree: ast.Module) -> Iterator[ast.AST]:
    """A module and all statements in it, and not their expressions, of which there are ten times as many."""
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, part, ())
            ahead += below if isinstance(below, list) else ()


def imported_by(module: Module) -> Iterator[str]:
    """The modules of the package that a module imports."""
    known = modules()
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif (package := node.module or "") in known:
            for alias in node.names:
                submodule = f"{package}.{alias.name}"
                yield submodule if submodule in known else package


def test_all_statements_are_looked_at() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    text += "try:\n    pass\nexcept OSError:\n    import a\nelse:\n    import b\nfinally:\n    import c\n"
    text += "for _ in ():\n    pass\nelse:\n    import d\nmatch 1:\n    case 1:\n        import e\n"
    text += "async def f():\n    async with x:\n        import g\n"
    tree = ast.parse(text)
    kinds = (ast.stmt, ast.ExceptHandler, ast.match_case)
    assert set(statements_of(tree)) - {tree} == {each for each in ast.walk(tree) if isinstance(each, kinds)}


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for name, module in modules().items():
        for each in module.classes:
            if not each.startswith("_"):
                places[each].append(name)
    assert {name: places_ for name, places_ in places.items() if len(places_) > 1} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    # A package's __init__ hands on names of the modules below it, which is no circle of theirs.
    graph = {name: set(imported_by(module)) - {name} for name, module in modules().items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_one_module_removes_from_the_engine() -> None:
    # All others discard, which neither waits for an engine that does not answer nor raises.
    removes = re.compile(r"\.remove_(container|image|network|volume)\(")
    assert [path.name for path in PACKAGE.rglob("*.py") if removes.search(path.read_text())] == ["calls.py"]


def test_functions_are_short() -> None:
    lengths = {
        f"{name}.{each}": length for name, module in modules().items() for each, length in module.functions.items()
    }
    assert len(lengths) > 1000
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_every_module_says_what_it_is_for() -> None:
    for name, module in modules().items():
        assert module.docstring.split("\n")[0].endswith((".", "?", ":")), name


@pytest.mark.every_python
def test_every_module_can_be_imported() -> None:
    for name in modules():
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            # These packages are of extras, which not every environment has.
            missing = str(error.name).partition(".")[0]
            assert missing in OF_EXTRAS, name
            assert find_spec(missing) is None, name


def test_every_name_of_ours_in_a_string_or_a_docstring_leads_somewhere() -> None:
    """Such as that of a module which another process is to run."""
    known = modules()
    group = "pytest_evocode.providers"  # Of entry points.
    for path in PACKAGE.rglob("*.py"):
        for found in {*re.findall(r"\bpytest_evocode(?:\.[A-Za-z]\w*)+", path.read_text())} - {*known, group}:
            module, name = found, ""
            while module not in known:
                module, _, name = module.rpartition(".")
            place = PACKAGE.parent.joinpath(*module.split("."))
            text = (place / "__init__.py" if place.is_dir() else place.with_suffix(".py")).read_text()
            assert re.search(rf"\b{name}\b", text), f"{path}: {found}"


def test_every_public_name_can_be_imported() -> None:
    import pytest_evocode

    assert sorted(pytest_evocode.__all__) == pytest_evocode.__all__
    for name in pytest_evocode.__all__:
        assert getattr(pytest_evocode, name).__doc__, name


def test_the_page_on_integrity_names_tests_that_there_are() -> None:
    page = (PACKAGE.parent / "docs" / "integrity.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:tests/)?([\w/]*test_\w+\.py|[\w/]+/)`", page)) - {"integrity/"}
    places = [PACKAGE.parent / "tests" / "integrity", PACKAGE.parent / "tests"]
    assert len(named) > 15
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
