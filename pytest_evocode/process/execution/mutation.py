"""Find out which of an agent's tests can fail for the product, by running them against mutants of what it changed.

A mutant of a Python function is the same module with one function that does something else. A test that passes whatever
a function does verifies nothing. The module that the mutants are compared with is written anew as they are, and its
functions do the same by other means, so that a test of the source, of a syntax tree or of the compiled code fails
there, and shows nothing either.
"""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pytest_evocode.environments import Environment
from pytest_evocode.errors import OutOfTime
from pytest_evocode.process.execution.states import VERBOSE, CommandResult, StateRunner, write_texts
from pytest_evocode.process.tests_written.code_elements import Symbol, TestFunction, TestVerification, WrittenTests
from pytest_evocode.process.tests_written.written_tests import refers_to
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.normal_forms import (
    Function,
    functions_in,
    imported_by,
    parse,
    tree_of,
)

#: Returns another value of the same type, so that a mutant does something else and does not just crash.
_OTHER = """

def _evocode_other(value, depth=6):
    import copy, datetime, numbers
    if value is None or depth == 0:
        return value
    if isinstance(value, bool):
        return not value
    if isinstance(value, numbers.Number):
        return value + 1
    if isinstance(value, str):
        return value + "?"
    if isinstance(value, (bytes, bytearray)):
        return value + b"?"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value + datetime.timedelta(days=1)
    try:
        if isinstance(value, tuple):
            changed = [_evocode_other(each, depth - 1) for each in value]
            return value._make(changed) if hasattr(value, "_make") else tuple(changed)
        if isinstance(value, list):
            return [_evocode_other(each, depth - 1) for each in value]
        if isinstance(value, (set, frozenset)):
            return type(value)(list(value)[1:])
        if isinstance(value, dict):
            return {key: _evocode_other(each, depth - 1) for key, each in value.items()}
        if hasattr(value, "__dict__") and not callable(value):
            changed = copy.copy(value)
            for name, each in vars(value).items():
                object.__setattr__(changed, name, _evocode_other(each, depth - 1))
            return changed
    except Exception:
        return value
    return value
"""

_SAME = """

def _evocode_same(value):
    return value
"""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module in which one function was changed."""

    path: str
    symbol: str
    """The function or class of the module that the change is in."""
    what: str
    """What was changed."""
    text: str


def rewritten(text: str) -> str:
    """Return a module that does the same, written as its mutants are, with other code in every function.

    Raises:
        SyntaxError: The module cannot be parsed.
    """
    tree = parse(text)
    for _, node in functions_in(tree):
        _do_the_same(node)
    return _written(tree, _OTHER + _SAME)


def _written(tree: ast.Module, helpers: str) -> str:
    """Return the source of a module with helpers at its beginning, where code that runs at import finds them."""
    begin = 0
    while begin < len(tree.body) and _comes_first(tree.body[begin]):
        begin += 1
    tree.body[begin:begin] = parse(helpers).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _comes_first(node: ast.stmt) -> bool:
    """Return whether a statement has to stand at the beginning of a module: a docstring, or an import of the future."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def _do_the_same(node: Function) -> None:
    """Have a function pass what it returns, raises and decides by through one that gives it back."""
    for each in _within(node):
        if isinstance(each, ast.Return | ast.Yield) and each.value is not None:
            each.value = _same(each.value)
        elif isinstance(each, ast.Raise) and each.exc is not None:
            each.exc = _same(each.exc)
        elif isinstance(each, ast.If | ast.IfExp):
            each.test = _same(each.test)
    said = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
    idle = ast.Expr(_same(ast.Constant("the same")))
    node.body = [*said, idle, *node.body[len(said) :]]


def _same(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("_evocode_same", ast.Load()), [value], [])


def mutants(path: str, before: str | None, text: str) -> Iterator[Mutant]:
    """Yield the mutants of the functions in a module that were added or changed, one of each kind for each function.

    Raises:
        SyntaxError: The module cannot be parsed.
    """
    # The getter and the setter of a property have the same name.
    known = {(name, ast.dump(node)) for name, node in functions_in(tree_of(before or ""))}
    tree = parse(text)
    changed = [place for place, (name, node) in enumerate(functions_in(tree)) if (name, ast.dump(node)) not in known]
    for what, mutate in _KINDS:
        for place in changed:
            other = copy.deepcopy(tree)
            name, node = list(functions_in(other))[place]
            if list(mutate(node)):
                symbol = name.partition(".")[0]
                yield Mutant(path, symbol, f"{name}: {what}", _written(other, _OTHER))


def with_names(before: str | None, text: str) -> str:
    """Return a module as it was before, with None for each name that it has gained since, so that it can be imported.

    Raises:
        SyntaxError: The module cannot be parsed as it is now.
    """
    then = {name for node in tree_of(before or "").body for name in _bound(node)}
    gained = dict.fromkeys(name for node in parse(text).body for name in _bound(node) if name not in then)
    return "".join([before or "", "\n", *(f"{name} = None\n" for name in gained)])


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds."""
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif imports := imported_by(node):
        yield from (local for _, name, local in imports if name != "*")
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def _within(node: Function) -> Iterator[ast.AST]:
    """Yield what is in a function, and not in one that it defines."""
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        each = waiting.pop()
        yield each
        if not isinstance(each, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(each)


def _return_others(node: Function) -> Iterator[ast.AST]:
    """Have a function return or yield other values; one that has none to return does nothing."""
    found = [each for each in _within(node) if isinstance(each, ast.Return | ast.Yield) and each.value is not None]
    for each in found:
        assert each.value is not None
        each.value = ast.Call(ast.Name("_evocode_other", ast.Load()), [each.value], [])
    yield from found
    if not found and not (node.name.startswith("__") and node.name != "__call__"):
        # An empty constructor would only crash.
        node.body = [ast.Return(ast.Constant(None))]
        yield node


def _turn_conditions(node: Function) -> Iterator[ast.AST]:
    for each in _within(node):
        if isinstance(each, ast.If | ast.IfExp):
            each.test = ast.UnaryOp(ast.Not(), each.test)
            yield each
        elif isinstance(each, ast.comprehension) and each.ifs:
            each.ifs = [ast.UnaryOp(ast.Not(), test) for test in each.ifs]
            yield each


def _shift_numbers(node: Function) -> Iterator[ast.AST]:
    """Add one to the numbers in a function, and turn its comparisons of order."""
    turned = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
    for each in _within(node):
        if isinstance(each, ast.Constant) and type(each.value) in (int, float):
            each.value = each.value + 1  # type: ignore[operator]
            yield each
        elif isinstance(each, ast.Compare) and type(each.ops[0]) in turned:
            each.ops = [turned[type(each.ops[0])](), *each.ops[1:]]
            yield each


def _refuse_nothing(node: Function) -> Iterator[ast.AST]:
    """Replace what is raised by nothing."""
    for owner in ast.walk(node):
        for _, body in ast.iter_fields(owner):
            for place, each in enumerate(body) if isinstance(body, list) else ():
                if isinstance(each, ast.Raise) and each.exc is not None:
                    body[place] = ast.Pass()
                    yield each


#: What is changed, and a function that changes it and yields what it has changed.
_KINDS: tuple[tuple[str, Callable[[Function], Iterator[ast.AST]]], ...] = (
    ("returns other values", _return_others),
    ("refuses nothing", _refuse_nothing),
    ("takes the other branches", _turn_conditions),
    ("has other numbers", _shift_numbers),
)


Form = tuple[str, ...]
"""What a function does, whatever names it and the things in it have."""
#: Nodes of a syntax tree from which on two functions of one form are copies.
LEAST_COPY = 15


def _held_by(text: str) -> Iterator[Form]:
    """Yield the forms of all functions in a Python module but its tests, those in its strings among them."""
    waiting: list[ast.AST] = [tree_of(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            if node.name.startswith("test"):
                continue
            yield _form(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "def " in node.value:
            yield from _held_by(node.value)
        waiting += ast.iter_child_nodes(node)


def _form(node: Function) -> Form:
    parts = (each for statement in node.body for each in ast.walk(statement))
    return tuple(repr(each.value) if isinstance(each, ast.Constant) else type(each).__name__ for each in parts)


#: Seconds for one run of the tests against a mutant.
MUTANT_LIMIT = 30.0


@dataclass(slots=True)
class MutationRun:
    """Runs the tests of an agent in the last state of a round, with changed modules replaced by their mutants."""

    runner: StateRunner
    activity: RoundActivity
    test: str
    """The shell line that runs the tests."""
    sources: tuple[str, ...]
    """The changed Python files of the product."""
    tests: WrittenTests
    others: frozenset[str]
    """The suffixes of the changed files of the product that no mutants can be made of."""
    budget: float
    """Seconds for the round."""
    tell: Callable[[str], None]
    """Is told what is run; nothing of what is known already."""
    _deadline: float = 0.0
    _kills: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _forms: Mapping[str, set[Form]] = field(default_factory=dict)
    """The forms of the functions of each symbol, without small ones."""
    _held: Mapping[tuple[str, str], set[Form]] = field(default_factory=dict)
    """By path and name of a test, the forms of the functions that it has beside it, which may be copies."""
    _tried: set[str] = field(default_factory=set)
    """The symbols with a mutant that was run."""

    def verification(self) -> TestVerification | None:
        """Return which tests fail for which changed function; None where too little could be run to say so."""
        waiting = list(self._mutants())
        self._forms, self._held = self._copies()
        self._deadline = time.monotonic() + self.budget
        originals = {path: rewritten(self.activity.workspace[path]) for path in self.sources}
        same = self._run(originals, ("rewritten",), "the product as it is, written anew")
        if same is None:
            return None
        passing = [test for test in self.tests.verifying if _outcome(test, same) is True]
        done = 0
        for mutant in waiting:
            if self._is_settled(mutant, passing):
                continue
            if not self._try(mutant, passing, f"mutant {done + 1} of {len(waiting)}: {mutant.what}"):
                break
            done += 1
        if passing and waiting and not self._tried:
            return None
        # Of tests of functions that there was no time for, nothing can be said.
        untried = [_symbol(name) for name in {_named(mutant) for mutant in waiting} - self._tried]
        unfinished = f", {len(waiting) - done} left out by need or for time" if done < len(waiting) else ""
        before = [test for test in passing if self._fails_before(test)]
        return TestVerification(
            kills={key: frozenset(found) for key, found in self._kills.items()}
            | {(test.path, test.name): frozenset({"before"}) for test in before},
            symbols=frozenset(self._tried),
            untried=frozenset(
                (test.path, test.name) for test in passing if any(refers_to(test, each) for each in untried)
            ),
            others=self.others,
            reason=f"{done} mutants of {len(self._tried)} functions and classes{unfinished}",
        )

    def _mutants(self) -> Iterator[Mutant]:
        for path in self.sources:
            yield from mutants(path, self.activity.origin.get(path), self.activity.workspace[path])

    def _copies(self) -> tuple[Mapping[str, set[Form]], Mapping[tuple[str, str], set[Form]]]:
        """Return the forms of the functions in the sources, and those that each test has beside it."""
        now = self.activity.workspace
        forms: dict[str, set[Form]] = {}
        for path in self.sources:
            for name, node in functions_in(tree_of(now[path])):
                if len(form := _form(node)) >= LEAST_COPY:
                    forms.setdefault(f"{path}:{name.partition('.')[0]}", set()).add(form)
        held = {path: {*_held_by(now.get(path, ""))} for path in self.activity.origin.keys() - self.sources}
        of_tests = {test.path for test in self.tests.functions}
        shared = {form for path, found in held.items() if path not in of_tests for form in found}
        return forms, {
            (test.path, test.name): shared | held.get(test.path, set()) | {*_held_by(test.text)}
            for test in self.tests.verifying
        }

    def _is_settled(self, mutant: Mutant, passing: list[TestFunction]) -> bool:
        """Return whether a mutant would tell nothing new: its function fails tests, and all tests have failed."""
        killed = {symbol for found in self._kills.values() for symbol in found}
        return _named(mutant) in killed and all((test.path, test.name) in self._kills for test in passing)

    def _try(self, mutant: Mutant, passing: list[TestFunction], what: str) -> bool:
        """Run the tests against a mutant, and return whether there was time for it."""
        result = self._run({mutant.path: mutant.text}, ("mutant",), what)
        if result is None:
            return False
        self._tried.add(_named(mutant))
        for test in passing:
            copied = self._forms.get(_named(mutant), set()) & self._held[test.path, test.name]
            if not copied and _fails(test, result):  # That a mutant is no longer like its copy shows nothing.
                self._kills.setdefault((test.path, test.name), set()).add(_named(mutant))
        return True

    def _fails_before(self, test: TestFunction) -> bool:
        """Return whether a test of something that has no mutants fails in the state before the round.

        One that names a function with mutants had the chance to fail for them, and an import that fails shows nothing.
        """
        key = (test.path, test.name)
        if key in self._kills or any(refers_to(test, _symbol(name)) for name in self._tried):
            return False
        originals = {
            path: with_names(self.activity.before.get(path), self.activity.workspace[path]) for path in self.sources
        }
        before = self._run(originals, ("before",), "the product as it was before the round")
        return before is not None and bool(before.tests) and _fails(test, before)

    def _run(self, replaced: Mapping[str, str | None], kind: tuple[str, ...], what: str) -> CommandResult | None:
        """Return how the tests end with some files replaced; None where that is not known and there is no time."""

        def run(fork: Environment) -> CommandResult:
            limit = min(MUTANT_LIMIT, self._deadline - time.monotonic())
            if limit <= 0:
                raise OutOfTime
            self.tell(f"{self.activity.name}: running the tests against {what}")
            write_texts(fork, replaced)
            executed = fork.exec(self.test, user=self.runner.round.agent_user, env=VERBOSE, timeout=limit)
            if executed.timed_out and limit < MUTANT_LIMIT:
                raise OutOfTime
            return CommandResult.of(executed)

        key = (*kind, self.test, sorted(replaced.items()))
        late = time.monotonic() < self._deadline
        try:
            return self.runner.in_last_state(CommandResult, key, run, late=late)
        except OutOfTime:
            return None


def _named(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.symbol}"


def _symbol(name: str) -> Symbol:
    path, _, symbol = name.rpartition(":")
    return Symbol(path, symbol, 0)


def _fails(test: TestFunction, result: CommandResult) -> bool:
    """Return whether an assertion of a test failed: that a mutant crashes shows nothing about its assertions."""
    if not result.tests:
        return not result.ok and not result.timed_out
    found = _named_in(test, result)
    return any(not ok and title not in result.broken_off for title, ok in found.items())


def _outcome(test: TestFunction, result: CommandResult) -> bool | None:
    """Return whether a test passed; where the output names no test, whether all did; None where it was not run."""
    if not result.tests:
        return result.ok
    found = _named_in(test, result)
    if found:
        return all(found.values())
    # A module that cannot even be loaded names none of its tests.
    return None if result.ok else False


def _named_in(test: TestFunction, result: CommandResult) -> dict[str, bool]:
    owner, _, name = test.name.rpartition("::")
    module = test.path.rpartition("/")[2].partition(".")[0]
    wanted = [re.compile(rf"(?<!\w){re.escape(each)}(?!\w)") for each in (name, owner, module) if each]
    if test.path.endswith(".py"):
        # Its module may be called as it is: `test_half (test_half.H.test_half)`, `test_half.py::H::test_half[1]`.
        wanted.append(re.compile(rf"(?:^|::){re.escape(name)}(?:\[|$| \()"))
    return {title: ok for title, ok in result.tests.items() if all(each.search(title) for each in wanted)}
