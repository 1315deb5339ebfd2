"""Lint rule about native tests that go past the fixture ``workspace``, in their own process.

Where the suite runs apart from the program (``verify_in = "separate"``), such a test looks at the verifier environment,
in which nothing of the agent's is. Where both are in one fork, the agent's work can reach the suite through it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping

from pytest_evocode.checks.lint.sources import TaskSources, parse_python
from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import VerifyIn

_IMPORTS = ("importlib.import_module", "__import__", "pytest.importorskip", "runpy.run_module")
_GIVEN_CALLS = ("read", "read_text", "python", "call")
_GIVEN_ATTRIBUTES = ("stdout", "stderr", "stdout_bytes", "stderr_bytes", "output", "errors")

_INSTEAD = {
    "imports": "use workspace.call or workspace.python",
    "starts": "use workspace.run or workspace.popen",
    "opens": "use workspace.read_text, exists or list",
}


def find_bypasses(sources: TaskSources) -> Iterator[TaskError]:
    """Yield a problem for each file of native suites and each way in which it goes past ``workspace``, with all lines.

    In a clean environment it is the author's choice; suites that run elsewhere have reasons of their own, and no
    problems. A line with a comment that names the verifier is meant, and passed over.
    """
    native = [each for each in sources.rounds if not each.round.has_script]
    if not native or (verify_in := native[0].round.verify_in) not in ("separate", "clean"):
        return
    modules = product_modules(sources)
    for file in (*sources.shared_tests, *(file for each in native for file in each.tests)):
        tree = parse_python(file.content) if file.path.suffix == ".py" else None
        if tree is None:
            continue
        meant = {number for number, line in enumerate(file.text.splitlines(), 1) if PATTERNS.find(line, "meant")}
        for kind, found in _Search(tree, modules, sources.workspace_roots, meant).bypasses.items():
            lines = sorted(found)
            also = f" (also in line {', '.join(map(str, lines[1:]))})" if lines[1:] else ""
            yield TaskError(f"{found[lines[0]]}{also}{_advice(kind, verify_in)}", file.path, lines[0])


def _advice(kind: str, verify_in: VerifyIn) -> str:
    if kind == "runs":
        return ", which runs code of the agent's in the suite; compare the bytes, or parse them as data"
    if verify_in == "clean":
        return f'; {_INSTEAD[kind]} and leave out verify_in = "clean", so that no program can reach the suite'
    return f'; {_INSTEAD[kind]}, because nothing of the agent\'s is where this suite runs; or say verify_in = "clean"'


def product_modules(sources: TaskSources) -> set[str]:
    """Return the names by which Python could import what agents are given, or what the solutions make."""
    names: set[str] = set()
    for file in (*sources.given, *(file for each in sources.rounds for file in each.solution)):
        if file.path.suffix == ".py":
            names.update(part.removesuffix(".py") for part in file.place.split("/"))
    tests = {part.removesuffix(".py") for file in sources.tests for part in file.place.split("/")}
    return {name for name in names - tests - sys.stdlib_module_names if name.isidentifier()} - {
        "tests",
        "setup",
        "test",
    }


class _Search:
    """The search of one module; names are those of the whole module, whatever function they are in."""

    def __init__(self, tree: ast.Module, modules: set[str], roots: tuple[str, ...], meant: set[int]) -> None:
        self._modules = modules
        self._roots = roots
        self._meant = meant
        self._nodes = list(ast.walk(tree))
        self._imported = dict(_imported_names(self._nodes))
        self._assigned = _assigned_values(self._nodes)
        self._given: set[str] = set()
        self._follow_given()
        self.bypasses: dict[str, dict[int, str]] = {}
        """What it does past ``workspace``: for each kind of it the lines, with the first instance on each in words."""
        for node in self._nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._see_import(node)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                if (name := self._name(node)) and PATTERNS["starts_a_program"].fullmatch(name):
                    self._add("starts", node, f"starts programs by {name}")
            elif isinstance(node, ast.Call):
                self._see_call(node)

    def _add(self, kind: str, node: ast.expr | ast.stmt, words: str) -> None:
        if node.lineno not in self._meant:
            self.bypasses.setdefault(kind, {}).setdefault(node.lineno, words)

    def _see_import(self, node: ast.Import | ast.ImportFrom) -> None:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names if isinstance(node, ast.Import) or not node.level else ():
            if name.partition(".")[0] in self._modules:
                self._add("imports", node, f"imports the product's {name}")

    def _see_call(self, node: ast.Call) -> None:
        name = self._name(node.func) or ""
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name in _IMPORTS and node.args and (text := self._text(node.args[0])).partition(".")[0] in self._modules:
            self._add("imports", node, f"imports the product's {text}")
        elif PATTERNS["runs_what_it_reads"].fullmatch(name) and any(map(self._is_given, arguments)):
            self._add("runs", node, f"calls {name} on what the workspace gave")
        elif PATTERNS["opens_a_file"].fullmatch(name):
            paths = [text for text in map(self._text, arguments) if self._is_below_roots(text)]
            if paths and name.startswith("sys.path"):
                self._add("imports", node, f"puts {paths[0]} on sys.path, to import the product")
            elif paths:
                self._add("opens", node, f"looks at {paths[0]}")
        elif isinstance(node.func, ast.Attribute) and PATTERNS["method_that_opens"].fullmatch(node.func.attr):
            path = self._text(node.func.value)
            if self._is_below_roots(path):
                self._add("opens", node, f"looks at {path}")

    def _name(self, node: ast.expr) -> str:
        """Return the full name of what an expression names, such as subprocess.run; empty for what is no name."""
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, "" if node.id in self._assigned else node.id)
        owner = self._name(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""

    def _is_below_roots(self, path: str) -> bool:
        return f"{path}/".startswith(self._roots) if self._roots else False

    def _text(self, node: ast.expr, depth: int = 8) -> str:
        """Return the text or path that an expression begins with; empty where that is not known."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if not depth:
            return ""
        if isinstance(node, ast.Name):
            values = self._assigned.get(node.id, [])
            texts = {self._text(value, depth - 1) for value in values}
            return texts.pop() if len(texts) == 1 else ""
        if isinstance(node, ast.JoinedStr):
            return self._joined([self._text(part, depth - 1) for part in node.values], "")
        if isinstance(node, ast.FormattedValue):
            return self._text(node.value, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
            parts = [self._text(node.left, depth - 1), self._text(node.right, depth - 1)]
            return self._joined(parts, "/" if isinstance(node.op, ast.Div) else "")
        if isinstance(node, ast.Call) and self._name(node.func) in ("pathlib.Path", "os.path.join", "str", "os.fspath"):
            return self._joined([self._text(part, depth - 1) for part in node.args], "/")
        return ""

    @staticmethod
    def _joined(parts: list[str], separator: str) -> str:
        """Join the parts up to the first that is not known."""
        known = parts[: parts.index("")] if "" in parts else parts
        return separator.join(known)

    def _follow_given(self) -> None:
        """Find the names that stand for something that came from the workspace."""
        while True:
            more = {name for name, values in self._assigned.items() if any(map(self._is_given, values))}
            if more <= self._given:
                return
            self._given |= more

    def _is_given(self, node: ast.expr) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._given:
                return True
            if isinstance(part, ast.Attribute) and part.attr in _GIVEN_ATTRIBUTES:
                return True
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _GIVEN_CALLS:
                owner = self._name(part.func.value)
                if "workspace" in owner:
                    return True
        return False


def _imported_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, with the full name of what each stands for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _assigned_values(nodes: Iterable[ast.AST]) -> Mapping[str, list[ast.expr]]:
    """Return what is assigned to each name, as one value for each of several targets."""
    values: dict[str, list[ast.expr]] = {}
    for node in nodes:
        for target, value in _assignments(node):
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    values.setdefault(part.id, []).append(value)
    return values


def _assignments(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return the targets of a statement or expression that assigns something, each with the value."""
    if isinstance(node, ast.Assign):
        return [(target, node.value) for target in node.targets]
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, ast.For | ast.comprehension):
        return [(node.target, node.iter)]
    if isinstance(node, ast.withitem) and node.optional_vars is not None:
        return [(node.optional_vars, node.context_expr)]
    return []
