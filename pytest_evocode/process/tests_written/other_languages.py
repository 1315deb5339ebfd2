"""Find tests and definitions in JavaScript, TypeScript, Go and Rust, with tree-sitter's grammars."""

from __future__ import annotations

import functools
import importlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_evocode.errors import NoGrammar
from pytest_evocode.process.rules import FILES
from pytest_evocode.process.tests_written.code_elements import FunctionCall, Symbol, TestFunction

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Finder = Callable[["Node"], Iterator[tuple[str, "Node"]]]


@dataclass(frozen=True, slots=True)
class Language:
    """How tests and definitions are written in one language."""

    grammar: str
    """The package with the grammar."""
    factory: str
    """The function in it that returns the grammar."""
    tests: Finder
    """Yields the tests below a node, each with its name."""
    assertion: str
    """The rule for what is called by an assertion."""
    definitions: Finder
    """Yields the functions and classes below a node, each with its name."""
    whole_packages: bool
    """Whether tests see the product's names without importing each."""


def find_tests(path: str, text: str) -> dict[str, tuple[TestFunction, str]]:
    """Return the tests in a file, each with a text that changes whenever it does.

    Raises:
        NoGrammar: There is no grammar for the language, or it is not installed.
        SyntaxError: The file cannot be parsed.
    """
    language, root = _parse(path, text)
    imports = {} if language.whole_packages else _imports(path, root)
    tests = {}
    for name, node in language.tests(root):
        meaningful, trivial = _assertions(node, language)
        calls = frozenset(
            FunctionCall(
                None if language.whole_packages else imports.get(called.partition(".")[0], ""), called.split(".")[-1]
            )
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
    language, root = _parse(path, text)
    return {
        name: (Symbol(path, name, node.start_point[0] + 1), _on_one_line(node))
        for name, node in language.definitions(root)
    }


def _parse(path: str, text: str) -> tuple[Language, Node]:
    suffix = posixpath.splitext(path)[1].lower()
    name = next((name for name, suffixes in FILES.tables["grammars"].items() if suffix in suffixes), None)
    if name is None:
        raise NoGrammar(f"tests in {suffix or 'files without a suffix'} cannot be read")
    tree = _parser(name).parse(text.encode("utf-8", "replace"))
    if tree.root_node.has_error:
        raise SyntaxError("it does not parse")
    return _LANGUAGES[name], tree.root_node


@functools.cache
def _parser(name: str) -> Parser:
    language = _LANGUAGES[name]
    try:
        import tree_sitter

        grammar = importlib.import_module(language.grammar)
    except ImportError:
        raise NoGrammar(f"{language.grammar.replace('_', '-')} is not installed") from None
    return tree_sitter.Parser(tree_sitter.Language(getattr(grammar, language.factory)()))


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


def _assertions(node: Node, language: Language) -> tuple[int, int]:
    """Return the numbers of distinct assertions that can fail, and of those that cannot."""
    is_assertion = FILES[language.assertion].match
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


def _imports(path: str, root: Node) -> dict[str, str]:
    """Return, by local name, the file that it was imported from, without suffix."""
    found: dict[str, str] = {}
    for node in _walk(root):
        source = None
        if node.type == "import_statement":
            source, names = _text(node.child_by_field_name("source")), node
        elif node.type == "variable_declarator":
            value = node.child_by_field_name("value")
            required = re.fullmatch(r"(?:await )?(?:require|import)\((['\"].*['\"])\)(?:\.\w+)?", _text(value))
            name = node.child_by_field_name("name")
            if required and name is not None:
                source, names = required[1], name
        if source:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), source.strip("'\"")))
            for inner in _walk(names):
                if inner.type in ("identifier", "shorthand_property_identifier_pattern"):
                    found[_text(inner)] = posixpath.splitext(place)[0] if "." in posixpath.basename(place) else place
    return found


def _script_tests(root: Node) -> Iterator[tuple[str, Node]]:
    for node in _walk(root):
        if node.type == "call_expression" and re.fullmatch(r"(test|it|specify)(\.\w+)*", _callee(node)):
            arguments = node.child_by_field_name("arguments")
            named = arguments.named_children if arguments is not None else []
            if len(named) > 1 and "function" in named[-1].type:
                yield _text(named[0]).strip("'\"`"), node


def _script_definitions(root: Node) -> Iterator[tuple[str, Node]]:
    for node in root.children:
        inner = node.child_by_field_name("declaration") if node.type == "export_statement" else node
        if inner is None:
            continue
        if inner.type in ("function_declaration", "class_declaration", "generator_function_declaration"):
            yield _text(inner.child_by_field_name("name")), inner
        for child in inner.children if inner.type in ("lexical_declaration", "variable_declaration") else ():
            value = child.child_by_field_name("value") if child.type == "variable_declarator" else None
            if value is not None and value.type in ("arrow_function", "function_expression", "class"):
                yield _text(child.child_by_field_name("name")), child


def _go_tests(root: Node) -> Iterator[tuple[str, Node]]:
    for node in root.children:
        name = _text(node.child_by_field_name("name"))
        if node.type == "function_declaration" and re.match(r"Test(?![a-z])", name):
            yield name, node


def _go_definitions(root: Node) -> Iterator[tuple[str, Node]]:
    for node in root.children:
        if node.type in ("function_declaration", "method_declaration"):
            yield _text(node.child_by_field_name("name")), node


def _rust_tests(root: Node) -> Iterator[tuple[str, Node]]:
    marked = False
    for node in _walk(root):
        if node.type == "attribute_item":
            marked = marked or re.search(r"#\[(\w+::)*test\b", _text(node)) is not None
        elif node.type == "function_item":
            if marked:
                yield _text(node.child_by_field_name("name")), node
            marked = False


def _rust_definitions(root: Node) -> Iterator[tuple[str, Node]]:
    tests = {_text(node) for _, node in _rust_tests(root)}
    for node in _walk(root):
        if node.type in ("function_item", "struct_item", "enum_item", "trait_item") and _text(node) not in tests:
            yield _text(node.child_by_field_name("name")), node


_SCRIPT = (_script_tests, "script_assertion", _script_definitions, False)
_LANGUAGES: Mapping[str, Language] = {
    "javascript": Language("tree_sitter_javascript", "language", *_SCRIPT),
    "typescript": Language("tree_sitter_typescript", "language_typescript", *_SCRIPT),
    "tsx": Language("tree_sitter_typescript", "language_tsx", *_SCRIPT),
    "go": Language("tree_sitter_go", "language", _go_tests, "go_assertion", _go_definitions, True),
    "rust": Language("tree_sitter_rust", "language", _rust_tests, "rust_assertion", _rust_definitions, True),
}
