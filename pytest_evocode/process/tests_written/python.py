"""Find tests and definitions in Python source, with the standard library's ``ast``."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_evocode.process.rules import FILES
from pytest_evocode.process.tests_written.code_elements import FunctionCall, Symbol, TestFunction
from pytest_evocode.process.trajectory.normal_forms import Function, functions_in, imported_by, parse


def find_tests(path: str, text: str, conftests: Sequence[str] = ()) -> dict[str, tuple[TestFunction, str]]:
    """Return the tests in a module by qualified name, each with a text that changes whenever it does.

    Args:
        path: The path of the module.
        text: Its source.
        conftests: The sources of the conftest.py files above it.

    Raises:
        SyntaxError: The module cannot be parsed.
    """
    tree = parse(text)
    module = _Module(tree)
    for each in conftests:
        try:
            module.take_fixtures(_Module(parse(each)))
        except SyntaxError:
            continue
    tests = {}
    for name, node in functions_in(tree):
        if not node.name.startswith("test"):
            continue
        name = name.replace(".", "::")
        found = _Assertions(module)
        found.read(node)
        test = TestFunction(
            path=path,
            name=name,
            line=node.lineno,
            asserts=len(found.meaningful),
            trivial=found.trivial,
            calls=frozenset(module.calls_from(node)),
            text=said_by(node),
            uses=frozenset(module.uses_of(node)),
        )
        tests[name] = (test, ast.dump(node))
    return tests


def definitions(path: str, text: str) -> dict[str, tuple[Symbol, str]]:
    """Return the public functions and classes of a module, each with a text that changes whenever it does.

    Raises:
        SyntaxError: The module cannot be parsed.
    """
    return {
        node.name: (Symbol(path, node.name, node.lineno), ast.dump(_without_docstrings(node)))
        for node in parse(text).body
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")
    }


def _without_docstrings(node: Function | ast.ClassDef) -> ast.AST:
    for inner in ast.walk(node):
        if isinstance(inner, Function | ast.ClassDef) and ast.get_docstring(inner, clean=False) is not None:
            inner.body = inner.body[1:]
    return node


def said_by(node: Function) -> str:
    """Return what a test does in source: without comments, docstrings, messages and names that nothing uses."""
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    silent = _WithoutMessages()
    return "\n".join(
        ast.unparse(silent.visit(copy.deepcopy(each)))
        for each in node.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        and not (
            isinstance(each, ast.Assign)
            and not any(isinstance(target, ast.Name) and target.id in used for target in each.targets)
            and isinstance(each.value, ast.Constant | ast.Tuple | ast.List | ast.Set | ast.Dict)
        )
    )


class _WithoutMessages(ast.NodeTransformer):
    """Takes away what is only said when a test fails or runs, which is no more than a comment is."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Take the message of an assertion."""
        node.msg = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Take the messages of unittest's assertions, of subtests and of what prints."""
        name = _last(node.func)
        if name in FILES.words["saying"]:
            node.args = [each for each in node.args if not isinstance(each, ast.Constant | ast.JoinedStr)]
        elif _ASSERTION.match(name):
            least = 1 if name in FILES.words["of_one"] else 2
            if len(node.args) > least and isinstance(node.args[-1], ast.Constant | ast.JoinedStr):
                node.args.pop()
        if name in FILES.words["saying"] or _ASSERTION.match(name):
            node.keywords = [each for each in node.keywords if each.arg != "msg"]
        return self.generic_visit(node)


#: unittest's assertions about values. What others are given last, such as what is called, is no message.
_ASSERTION = re.compile(r"assert(?!Raises|Warns|Logs|NoLogs)[A-Z]")


class _Module:
    """The imports, functions and fixtures of a module."""

    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, list[tuple[_Module, Function]]] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        """By local name, the module and the name imported from it; the name is empty for a whole module."""
        for node in ast.walk(tree):
            if isinstance(node, Function):
                self.functions.setdefault(node.name, []).append((self, node))
            for module, name, local in imported_by(node):  # `import a.b` binds a.
                self.imports[local] = (local if not name and module.startswith(f"{local}.") else module, name)

    def take_fixtures(self, other: _Module) -> None:
        """Add the functions of a conftest.py, which tests get as arguments."""
        self.functions = other.functions | self.functions

    def calls_from(self, node: Function) -> Iterator[FunctionCall]:
        """Yield what a function calls, itself and through helpers and fixtures of its module."""
        for module, function in self._reached(node):
            for inner in ast.walk(function):
                if isinstance(inner, ast.Call):
                    yield from module._called(inner.func)
                elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Attribute | ast.Name):
                    yield from module._called(inner)

    def uses_of(self, node: Function) -> Iterator[FunctionCall]:
        """Yield what a function refers to, itself and through helpers and fixtures of its module."""
        for module, function in self._reached(node):
            for inner in ast.walk(function):
                if isinstance(inner, ast.Attribute | ast.Name):
                    yield from module._called(inner)

    def _reached(self, node: Function, depth: int = 4) -> Iterator[tuple[_Module, Function]]:
        """Yield a function, and the helpers and fixtures that it uses, with their modules."""
        yield self, node
        used = {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
        used |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
        for name in used if depth else ():
            for module, function in self.functions.get(name, ()):
                if function is not node:
                    yield from module._reached(function, depth - 1)

    def _called(self, function: ast.expr) -> Iterator[FunctionCall]:
        names = _dotted(function)
        if not names:
            return
        first, *rest = names
        if first not in self.imports:
            yield FunctionCall("", names[-1])
            return
        module, imported = self.imports[first]
        path = [*([imported] if imported else []), *rest]
        # The import does not tell modules of a package from names in a module, so each split is yielded.
        for split in range(len(path)):
            yield FunctionCall(".".join([module, *path[:split]]), path[split])


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return [*inner, node.attr] if inner else []
    return []


@dataclass
class _Assertions:
    """Counts the assertions of a test: those that can fail, each once, and those that cannot."""

    module: _Module
    meaningful: set[str] = field(default_factory=set)
    trivial: int = 0
    constants: set[str] = field(default_factory=set)
    """Local names that hold nothing but constants."""

    def read(self, node: Function) -> None:
        self.constants = _constant_names(node)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assert):
                self._note(inner.test, _is_trivial(inner.test, self.constants))
            elif isinstance(inner, ast.With | ast.AsyncWith):
                for item in inner.items:
                    if (
                        isinstance(item.context_expr, ast.Call)
                        and _last(item.context_expr.func) in FILES.words["contexts"]
                    ):
                        self._note(inner, all(isinstance(each, ast.Raise | ast.Pass) for each in inner.body))
            elif isinstance(inner, ast.Call):
                self._call(inner)

    def _call(self, call: ast.Call) -> None:
        name = _last(call.func)
        if name in FILES.words["contexts"]:
            if len(call.args) > 1:  # Called as raises(Error, function).
                self._note(call, False)
        elif name.startswith("assert") and name != "assert":
            self._note(call, _is_trivial_method(name, call.args, self.constants))
        elif isinstance(call.func, ast.Name):
            for module, helper in self.module.functions.get(name, ()):
                if not name.startswith("test") and _asserts(module, helper):
                    self._note(call, _are_constant(call.args, self.constants) and not call.keywords and bool(call.args))

    def _note(self, node: ast.AST, trivial: bool) -> None:
        if trivial:
            self.trivial += 1
        else:
            self.meaningful.add(ast.dump(node))


def _asserts(module: _Module, helper: Function) -> bool:
    constants = _constant_names(helper)
    return any(isinstance(each, ast.Assert) and not _is_trivial(each.test, constants) for each in ast.walk(helper))


def _last(function: ast.expr) -> str:
    names = _dotted(function)
    if names:
        return names[-1]
    return function.attr if isinstance(function, ast.Attribute) else ""


def _is_trivial(test: ast.expr, constants: set[str]) -> bool:
    """Return whether no plausible result of a program fails an assertion.

    Such an assertion is about constants only, compares something with itself, or only says that a result is not one
    certain value.
    """
    if _are_constant([test], constants) or isinstance(test, ast.Tuple | ast.JoinedStr):
        return True
    if isinstance(test, ast.BoolOp):
        weak = [_is_trivial(value, constants) for value in test.values]
        return all(weak) if isinstance(test.op, ast.And) else any(weak)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _excludes_one(test.operand, constants)
    if isinstance(test, ast.Call) and _last(test.func) in ("isinstance", "issubclass"):
        return any(isinstance(each, ast.Name) and each.id == "object" for each in test.args[1:])
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _is_trivial_comparison(test.left, test.ops[0], test.comparators[0], constants)
    return isinstance(test, ast.Lambda | ast.List | ast.Dict | ast.Set)


def _excludes_one(operand: ast.expr, constants: set[str]) -> bool:
    """Return whether ``not operand`` only says that something is not one certain value."""
    if not isinstance(operand, ast.Compare) or len(operand.ops) != 1:
        return False
    opposite = {ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn}.get(type(operand.ops[0]))
    return opposite is not None and _is_trivial_comparison(operand.left, opposite(), operand.comparators[0], constants)


def _is_trivial_comparison(left: ast.expr, operator: ast.cmpop, right: ast.expr, constants: set[str]) -> bool:
    if isinstance(operator, ast.Eq | ast.Is | ast.LtE | ast.GtE) and _all_same([left, right]):
        return True
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return _are_constant([left], constants) or _are_constant([right], constants)
    if isinstance(operator, ast.NotIn):
        return _are_constant([right], constants)
    if isinstance(operator, ast.In) and isinstance(right, ast.Tuple | ast.List | ast.Set):
        return any(_all_same([left, each]) for each in right.elts)
    is_length = isinstance(left, ast.Call) and _last(left.func) in ("len", "abs")
    return is_length and isinstance(operator, ast.GtE | ast.Gt) and _is_below_one(right, operator)


def _is_below_one(node: ast.expr, operator: ast.cmpop) -> bool:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return False
    return isinstance(value, int | float) and (value < 0 or (value == 0 and isinstance(operator, ast.GtE)))


def _is_trivial_method(name: str, arguments: Sequence[ast.expr], constants: set[str]) -> bool:
    """Return whether no plausible result fails one of unittest's assertions or of another library's."""
    if _are_constant(arguments, constants) or _all_same(arguments[:2]):
        return True
    if not arguments:
        return False
    first, *rest = arguments
    if name == "assertTrue":
        return _is_trivial(first, constants)
    if name == "assertFalse":
        return _excludes_one(first, constants)
    if name == "assertIsNotNone":
        return True
    operator = _OPERATORS.get(name)
    return bool(operator and rest) and _is_trivial_comparison(first, operator(), rest[0], constants)  # type: ignore[misc]


_OPERATORS: dict[str, type[ast.cmpop]] = {
    "assertNotEqual": ast.NotEq, "assertIsNot": ast.IsNot, "assertNotIn": ast.NotIn, "assertIn": ast.In,
    "assertGreaterEqual": ast.GtE, "assertGreater": ast.Gt,
}  # fmt: skip


def _all_same(nodes: Sequence[ast.AST]) -> bool:
    return len(nodes) > 1 and len({ast.dump(node) for node in nodes}) == 1


def _are_constant(nodes: Sequence[ast.AST], constants: set[str]) -> bool:
    """Return whether nothing in some expressions depends on what a program does."""
    return not any(
        isinstance(inner, ast.Await)
        or (isinstance(inner, ast.Name) and inner.id not in constants | FILES.words["pure"])
        for node in nodes
        for inner in ast.walk(node)
    )


def _constant_names(node: Function) -> set[str]:
    """Return the names to which a function assigns constants and nothing else."""
    constant: dict[str, bool] = {}

    def assign(target: ast.AST, is_constant: bool) -> None:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                constant[name.id] = is_constant and constant.get(name.id, True)

    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                assign(target, isinstance(target, ast.Name) and _are_constant([inner.value], set()))
        elif isinstance(inner, ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr | ast.comprehension):
            assign(inner.target, False)
        elif isinstance(inner, ast.withitem) and inner.optional_vars is not None:
            assign(inner.optional_vars, False)
        elif isinstance(inner, ast.arg):
            constant[inner.arg] = False
    return {name for name, is_constant in constant.items() if is_constant}
