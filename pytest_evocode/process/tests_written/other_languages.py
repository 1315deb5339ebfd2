"""Find tests and definitions in JavaScript, TypeScript, Go and Rust, with tree-sitter's grammars."""

from __future__ import annotations

import functools
import importlib
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evocode.errors import NoGrammar
from pytest_evocode.process import rules
from pytest_evocode.process.rules import FILES
from pytest_evocode.process.tests_written.code_elements import FunctionCall, Symbol, TestFunction

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, QueryCursor

#: By grammar, its package, the function in that which returns it, its queries, and the rule for what assertions call.
_GRAMMARS: Mapping[str, tuple[str, str, str, str]] = {
    "javascript": ("tree_sitter_javascript", "language", "javascript", "script_assertion"),
    "typescript": ("tree_sitter_typescript", "language_typescript", "javascript", "script_assertion"),
    "tsx": ("tree_sitter_typescript", "language_tsx", "javascript", "script_assertion"),
    "go": ("tree_sitter_go", "language", "go", "go_assertion"),
    "rust": ("tree_sitter_rust", "language", "rust", "rust_assertion"),
}


def find_tests(path: str, text: str) -> dict[str, tuple[TestFunction, str]]:
    """Return the tests in a file, each with a text that changes whenever it does.

    Raises:
        NoGrammar: There is no grammar for the language, or it is not installed.
        SyntaxError: The file cannot be parsed.
    """
    grammar, root = _parse(path, text)
    imports = _imports(path, grammar, root)
    tests = {}
    for name, node in _found(grammar, "tests", root):
        meaningful, trivial = _assertions(node, FILES[_GRAMMARS[grammar][3]].match)
        calls = frozenset(
            FunctionCall(None if imports is None else imports.get(called.partition(".")[0], ""), called.split(".")[-1])
            for called in _called(node)
        )
        test = TestFunction(path, name, node.start_point[0] + 1, meaningful, trivial, calls, _without_comments(node))
        tests[name] = (test, _on_one_line(node))
    return tests


def definitions(path: str, text: str) -> dict[str, tuple[Symbol, str]]:
    """Return the functions and classes of a file, each with a text that changes whenever it does.

    Raises:
        NoGrammar: There is no grammar for the language, or it is not installed.
        SyntaxError: The file cannot be parsed.
    """
    grammar, root = _parse(path, text)
    # Only Rust has tests in the files of the product.
    tests = {_text(node) for _, node in _found(grammar, "tests", root)} if grammar == "rust" else ()
    return {
        name: (Symbol(path, name, node.start_point[0] + 1), _on_one_line(node))
        for name, node in _found(grammar, "definitions", root)
        if _text(node) not in tests
    }


def _parse(path: str, text: str) -> tuple[str, Node]:
    suffix = posixpath.splitext(path)[1].lower()
    grammar = next((name for name, suffixes in FILES.tables["grammars"].items() if suffix in suffixes), None)
    if grammar is None:
        raise NoGrammar(f"tests in {suffix or 'files without a suffix'} cannot be read")
    root = _parser(grammar).parse(text.encode("utf-8", "replace")).root_node
    if root.has_error:
        raise SyntaxError("it does not parse")
    return grammar, root


@functools.cache
def _parser(grammar: str) -> Parser:
    package, factory, *_ = _GRAMMARS[grammar]
    try:
        import tree_sitter

        module = importlib.import_module(package)
    except ImportError:
        raise NoGrammar(f"{package.replace('_', '-')} is not installed") from None
    return tree_sitter.Parser(tree_sitter.Language(getattr(module, factory)()))


@functools.cache
def _query(grammar: str, what: str) -> QueryCursor | None:
    """Return the query for tests, definitions or imports; None for a language without it."""
    import tree_sitter

    queries = tomllib.loads(Path(rules.__file__).with_name("languages.toml").read_text(encoding="utf-8"))
    source = queries[_GRAMMARS[grammar][2]].get(what)
    if source is None or (language := _parser(grammar).language) is None:
        return None
    return tree_sitter.QueryCursor(tree_sitter.Query(language, source))


def _found(grammar: str, what: str, root: Node) -> list[tuple[str, Node]]:
    """Return what a query finds, each with its name, in the order of the source."""
    query = _query(grammar, what)
    captured = [captures for _, captures in query.matches(root)] if query is not None else []
    nodes = [(_text(each["name"][0]).strip("'\"`"), each["found"][0]) for each in captured]
    return sorted(nodes, key=lambda each: each[1].start_byte)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _without_comments(node: Node) -> str:
    """Return a node's source without the comments in it."""
    source, begin = node.text or b"", node.start_byte
    parts, place = [], 0
    for inner in _walk(node):
        if "comment" in inner.type:
            parts.append(source[place : inner.start_byte - begin])
            place = max(place, inner.end_byte - begin)
    return b"".join([*parts, source[place:]]).decode("utf-8", "replace")


def _on_one_line(node: Node) -> str:
    return " ".join(_text(node).split())


def _callee(node: Node) -> str:
    """Return the dotted name that is called; empty for a node that does not call a name."""
    name = _function(node).replace("::", ".")
    return name if re.fullmatch(r"[\w.$]+!?", name) else ""


def _function(node: Node) -> str:
    """Return the source of what a node calls; empty for a node that calls nothing."""
    if node.type == "macro_invocation":
        return _text(node.child_by_field_name("macro")) + "!"
    return _text(node.child_by_field_name("function")) if node.type == "call_expression" else ""


def _called(node: Node) -> Iterator[str]:
    for inner in _walk(node):
        if inner.type == "new_expression":
            yield _text(inner.child_by_field_name("constructor"))
        elif inner.type == "token_tree":  # The arguments of a macro in Rust are not parsed.
            yield from re.findall(r"\b(\w+(?:\.\w+)*)\(", _text(inner).replace("::", "."))
        elif name := _callee(inner):
            yield name


def _assertions(node: Node, is_assertion: Callable[[str], object]) -> tuple[int, int]:
    """Return the numbers of distinct assertions that can fail, and of those that cannot."""
    found = [(_on_one_line(inner), _is_trivial(inner)) for inner in _walk(node) if is_assertion(_function(inner))]
    return len({text for text, trivial in found if not trivial}), sum(trivial for _, trivial in found)


def _is_trivial(node: Node) -> bool:
    """Return whether an assertion is about literals only, or compares something with itself."""
    if _callee(node).startswith("t."):  # In Go the condition around the call decides.
        return False
    text = _text(node)
    if FILES.find(text, "excludes_one"):
        return True
    arguments = re.sub(r"^[\w.!]+", "", text)
    arguments = re.sub(r"\)\s*\.\s*(not\s*\.\s*)?\w+\s*\(", ", ", arguments)
    arguments = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`", "0", arguments)
    names = set(re.findall(r"[A-Za-z_$][\w$]*", arguments)) - {"true", "false", "null", "undefined", "nil", "t", "None"}
    parts = [part.strip() for part in arguments.strip("();").split(",") if part.strip()]
    return not names or (len(parts) == 2 and parts[0] == parts[1])


def _imports(path: str, grammar: str, root: Node) -> dict[str, str] | None:
    """Return, by local name, the file that it was imported from, without suffix; None where packages are seen whole."""
    if _query(grammar, "imports") is None:
        return None
    found: dict[str, str] = {}
    for source, node in _found(grammar, "imports", root):
        quoted = re.split(r"['\"]", source)
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), quoted[1] if len(quoted) > 1 else source))
        for inner in _walk(node):
            if inner.type in ("identifier", "shorthand_property_identifier_pattern"):
                found[_text(inner)] = posixpath.splitext(place)[0] if "." in posixpath.basename(place) else place
    return found
