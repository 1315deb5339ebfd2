"""The requirements that tests of native suites declare, read from their source; the host never imports them."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.layout import RoundFiles, is_test_module
from pytest_evocode.tasks.text_files import check_python, unreadable

CONFTEST = "conftest.py"
KINDS = ("core", "boundary", "error", "integration")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class NativeTest:
    """A test function as it is written, or one ``pytest.param`` of it that has a requirement of its own."""

    round: str
    """The round that the test belongs to; tests that all rounds share belong to the first."""
    path: Path
    line: int
    """The line of the marker, from 1, or of the function where there is no marker."""
    name: str
    requirement: str = ""
    """The id of the requirement; empty without a marker."""
    kind: str = ""
    retired: str = ""
    """The round from which on the test is not required; empty for never."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """All tests of one requirement, over the rounds."""

    id: str
    kind: str
    introduced: str
    """The first round with a test of it."""
    retired: str
    """The round from which on none of its tests is required; empty for never."""


def read_native_tests(files: Sequence[RoundFiles]) -> tuple[NativeTest, ...]:
    """Return all tests of a task's native suites.

    A module that this Python cannot parse has no tests here; the Python in the environment may understand it, or will
    say what is wrong.

    Args:
        files: The files of all rounds, at least one.

    Raises:
        TaskError: Markers are wrong; the message has the file and the line of each.
    """
    native = [each for each in files if not each.has_script]
    if not native:
        return ()
    rounds, shared = [each.name for each in files], files[0].shared_tests
    suites = [(native[0].name, shared)] if shared else []
    suites += [(each.name, each.directory / "tests") for each in native if each.has_tests]
    found: list[NativeTest] = []
    problems = [_in_the_way(path) for name in rounds if shared and (path := shared / name).exists()]
    for round_, directory in suites:
        for path in _modules(directory):
            if path.name == CONFTEST:
                problems += _encoding(path)
                continue
            module = _Module(round_, path)
            found += module.tests
            problems += module.problems
    introduced = {test.requirement: test.round for test in reversed(found) if test.requirement}
    tests = []
    for test in found:
        if test.retired:
            replaced = test.retired if test.retired in rounds else introduced.get(test.retired)
            if replaced is None:
                problems.append(_names_nothing(test, rounds, introduced))
                continue
            if rounds.index(replaced) <= rounds.index(test.round):
                message = f'retired="{test.retired}" means from {replaced} on, but the test comes with {test.round}'
                problems.append(TaskError(f"{message}; name a later round, or remove the test", test.path, test.line))
            test = replace(test, retired=replaced)
        tests.append(test)
    if problems:
        first, *others = problems
        raise TaskError("\n".join([first.message, *map(str, others)]), first.path, first.line)
    return tuple(tests)


def find_requirements(tests: Sequence[NativeTest], rounds: Sequence[str]) -> tuple[Requirement, ...]:
    """Return the requirements of ``tests``, in the order in which they are introduced."""
    by_id: dict[str, list[NativeTest]] = {}
    for test in sorted(tests, key=lambda test: rounds.index(test.round)):
        if test.requirement:
            by_id.setdefault(test.requirement, []).append(test)
    return tuple(
        Requirement(
            id,
            kind=of_it[0].kind,
            introduced=of_it[0].round,
            retired=max((test.retired for test in of_it), key=rounds.index) if all(t.retired for t in of_it) else "",
        )
        for id, of_it in by_id.items()
    )


def _names_nothing(test: NativeTest, rounds: Sequence[str], introduced: dict[str, str]) -> TaskError:
    known = ", ".join([*rounds, *sorted(introduced)])
    return TaskError(
        f'retired="{test.retired}" names no round of the task and no requirement; there are: {known}',
        test.path,
        test.line,
    )


def _in_the_way(path: Path) -> TaskError:
    message = "has the name of a round, whose tests are put there"
    return TaskError(f"{message}; move what is in it to the round's own tests, or rename it", path)


def _modules(directory: Path) -> Iterator[Path]:
    for place, directories, files in os.walk(directory):
        directories.sort()
        yield from (Path(place, name) for name in sorted(files) if is_test_module(name) or name == CONFTEST)


def _encoding(path: Path) -> Iterator[TaskError]:
    """Yield why a module that is not looked into cannot be read, where that is so."""
    try:
        check_python(path.read_bytes(), path)
    except OSError as error:
        yield unreadable(path, error)
    except TaskError as error:
        yield error


class _Module:
    """A test module: its tests, and what is wrong with their markers."""

    def __init__(self, round_: str, path: Path) -> None:
        self.round = round_
        self.path = path
        self.tests: list[NativeTest] = []
        self._seen: set[ast.expr] = set()
        self.problems: list[TaskError] = []
        try:
            check_python(content := path.read_bytes(), path)
            with warnings.catch_warnings():
                # The suite shows them; turned into errors here, they would hide the module.
                warnings.simplefilter("ignore")
                tree = ast.parse(content, str(path))
        except (SyntaxError, ValueError, RecursionError):
            return
        except OSError as error:
            self.problems.append(unreadable(path, error))
            return
        except TaskError as error:
            self.problems.append(error)
            return
        around = NativeTest(round_, path, 0, "")
        self._read(tree.body, self._assigned(tree.body, around))
        # Markers whose test is not known, such as those in parameters or under a name of their own.
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node not in self._seen and requirement_marker(node):
                self.tests.append(self._declared(node, around))

    def _read(self, body: Sequence[ast.stmt], around: NativeTest) -> None:
        """Read the statements of a module or class; ``around`` has the marker that holds for all of them."""
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                if _holds_tests(statement):
                    self._read(statement.body, self._decorated(statement, self._assigned(statement.body, around)))
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                if statement.name.startswith("test"):
                    test = replace(around, name=statement.name, line=around.line or statement.lineno)
                    self.tests.append(self._decorated(statement, test))
                    self.tests += self._parameters(statement, test)
            else:
                for inner in ast.iter_child_nodes(statement):  # The bodies of if, try and with.
                    if isinstance(inner, ast.stmt):
                        self._read([inner], around)
                    elif isinstance(inner, ast.ExceptHandler | ast.match_case):
                        self._read(inner.body, around)

    def _assigned(self, body: Sequence[ast.stmt], around: NativeTest) -> NativeTest:
        """Return ``around`` with the marker that ``pytestmark`` gives a module or class."""
        for statement in body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value and _assigns(statement):
                around = self._marked(statement.value, around)
        return around

    def _decorated(
        self, statement: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, around: NativeTest
    ) -> NativeTest:
        for decorator in reversed(statement.decorator_list):  # The topmost decorator counts.
            if (call := requirement_marker(decorator)) is not None:
                around = self._declared(call, around)
        return around

    def _marked(self, value: ast.expr, around: NativeTest) -> NativeTest:
        """Return ``around`` with the marker in a value of ``pytestmark`` or ``marks``, which is a mark or several."""
        for mark in value.elts if isinstance(value, ast.List | ast.Tuple) else [value]:
            if (call := requirement_marker(mark)) is not None:
                around = self._declared(call, around)
        return around

    def _parameters(self, function: ast.FunctionDef | ast.AsyncFunctionDef, test: NativeTest) -> Iterator[NativeTest]:
        """Yield a test for each ``pytest.param(..., marks=...)`` of a function that has a requirement of its own."""
        for node in (node for decorator in function.decorator_list for node in ast.walk(decorator)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "param":
                marks = next((keyword.value for keyword in node.keywords if keyword.arg == "marks"), None)
                if marks is not None and (own := self._marked(marks, test)) != test:
                    yield own

    def _declared(self, mark: ast.expr, around: NativeTest) -> NativeTest:
        """Return ``around`` with what one ``pytest.mark.requirement`` declares."""
        self._seen.add(mark)
        try:
            requirement, kind, retired = _read_marker(mark)
        except ValueError as error:
            self.problems.append(TaskError(str(error), self.path, mark.lineno))
            return around
        return replace(around, line=mark.lineno, requirement=requirement, kind=kind, retired=retired)


def _read_marker(mark: ast.expr) -> tuple[str, str, str]:
    """Return the id, kind and retirement that a ``pytest.mark.requirement(...)`` gives; raises ValueError."""
    usage = 'write @pytest.mark.requirement("id", kind="core", retired="round-9"), kind and retired only where needed'
    arguments = mark.args if isinstance(mark, ast.Call) else []
    if len(arguments) != 1:
        raise ValueError(f"the requirement marker takes one id, not {len(arguments)} arguments; {usage}")
    requirement = _literal(arguments[0], "id", usage)
    if not _ID.fullmatch(requirement):
        raise ValueError(f"""the id "{requirement}" is not made of letters, digits, '.', '_' and '-'; {usage}""")
    values = {"kind": "", "retired": ""}
    for keyword in mark.keywords if isinstance(mark, ast.Call) else []:
        if keyword.arg not in ("kind", "retired"):
            raise ValueError(f"the requirement marker has no argument {keyword.arg or '**'}; {usage}")
        values[keyword.arg] = _literal(keyword.value, keyword.arg, usage)
    if values["kind"] and values["kind"] not in KINDS:
        raise ValueError(f'kind="{values["kind"]}" is none of {", ".join(KINDS)}')
    return requirement, values["kind"], values["retired"]


def _literal(value: ast.expr, name: str, usage: str) -> str:
    if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value):
        raise ValueError(f"{name} must be a non-empty string literal, because the file is read and not run; {usage}")
    return value.value


def requirement_marker(node: ast.expr) -> ast.expr | None:
    """Return the node where it is a use of ``pytest.mark.requirement``, called or bare, and else None."""
    function = node.func if isinstance(node, ast.Call) else node
    is_mark = (
        isinstance(function, ast.Attribute)
        and function.attr == "requirement"
        and (
            (isinstance(function.value, ast.Attribute) and function.value.attr == "mark")
            or (isinstance(function.value, ast.Name) and function.value.id == "mark")
        )
    )
    return node if is_mark else None


def _assigns(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Return whether a statement gives ``pytestmark`` a value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in targets)


def _holds_tests(statement: ast.ClassDef) -> bool:
    """Return whether pytest looks for tests in a class: because of its name, or because unittest does."""
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in statement.bases}
    return statement.name.startswith("Test") or any(base.endswith("TestCase") for base in bases)
