"""Parse shell command lines, with tree-sitter's grammar for bash, into the simple commands that they run.

Nothing is run or looked up on this machine. A word that is only known at run time is None. Commands are given without
wrappers such as ``timeout 20``.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_evocode.errors import UsageError
from pytest_evocode.process.rules import COMMANDS

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


#: A loop over more values than this is read as if it ended here.
_LOOP_LIMIT = 50
_OPERATORS = {"&&", "||", ";", ";;", "|", "|&", "&", "\n"}
_EXPANSIONS = {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
_OF_REDIRECT = {"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect", "herestring_redirect"}
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection: an operator such as ``<``, ``>``, ``>>``, ``&>`` or ``>|``, and the word that it leads to."""

    operator: str
    target: str | None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command of a line: a program with its arguments."""

    words: tuple[str | None, ...]
    text: str
    """The command as it was written, without redirections."""
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    """The text of a here-document or here-string."""
    cwd: str | None = ""
    """The directory it runs in, absolute or relative to where the line started; None where that is unknown."""
    after: str = ""
    """The operator that follows, such as ``&&``, ``|`` or ``;``; empty for the last command, ``$(`` inside a word."""
    negated: bool = False

    @property
    def program(self) -> str:
        """The name of the program without its directory; empty where it is unknown."""
        return posixpath.basename(self.words[0] or "") if self.words else ""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line: its simple commands in the order they are written."""

    commands: tuple[SimpleCommand, ...]
    broken: bool
    """Whether it has a syntax error."""

    def exit_code_of(self, index: int, exit_code: int | None) -> int | None:
        """Return a command's own exit code as far as the exit code of the line tells it; None where it does not."""
        command = self.commands[index]
        if exit_code is None or command.negated or command.after in ("$(", "&"):
            return None
        rest = [each for each in self.commands[index:-1] if each.after != "$("]
        if not rest:
            return exit_code
        fatal = {"&&", "|", "|&"} if self._sets("pipefail") else {"&&"}
        if self._sets("-e") or self._sets("errexit"):
            fatal |= {";", "\n"}
        return exit_code if exit_code == 0 and all(each.after in fatal for each in rest) else None

    def _sets(self, option: str) -> bool:
        flags = [word or "" for each in self.commands if each.program == "set" for word in each.words[1:]]
        short = option.removeprefix("-")
        if option.startswith("-"):
            return any(flag.startswith("-") and short in flag for flag in flags)
        return option in flags


EMPTY_LINE = CommandLine((), False)


@functools.cache
def _parser() -> Parser:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError:
        raise UsageError(
            "process discipline needs a parser for shell command lines; "
            "install it with: pip install 'pytest-evocode[process]'"
        ) from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


@dataclass
class _SyntaxReader:
    """Collects the commands of a syntax tree in source order."""

    commands: list[SimpleCommand] = field(default_factory=list)
    variables: dict[str, str | None] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    """The functions that the line has defined so far; what they run counts where they are defined."""
    cwd: str | None = ""

    def visit(self, node: Node) -> None:
        """Collect the commands at a node and below it."""
        method = getattr(self, f"_{node.type}", None)
        if method is not None:
            method(node)
        elif node.type in _OPERATORS:
            self._mark(node.type)
        else:
            for child in node.children:
                self.visit(child)

    def _mark(self, operator: str) -> None:
        if self.commands and not self.commands[-1].after:
            self.commands[-1] = replace(self.commands[-1], after=operator)

    def _program(self, node: Node) -> None:
        for child in node.children:
            if self.commands and child.is_named:  # Between statements there may be nothing but the end of a line.
                self._mark("\n")
            self.visit(child)

    def _command(self, node: Node) -> None:
        words: list[str | None] = []
        shown: list[str] = []
        redirects: list[Redirect] = []
        stdin: str | None = None
        for child in node.children:
            if child.type == "variable_assignment":
                self._within(child)
            elif child.type == "file_redirect":
                redirects.append(self._redirect(child))
            elif child.type == "herestring_redirect":
                stdin = self._word(child.children[-1])
            else:
                self._within(child)
                words.append(self._word(child))
                shown.append(_text(child))
        if words and words[0] in self.functions:
            words[0] = None  # Whatever its name is, it is no program.
        self._emit(SimpleCommand(tuple(words), " ".join(shown), tuple(redirects), stdin, self.cwd))

    def _emit(self, command: SimpleCommand) -> None:
        self.commands.append(command)
        if command.program == "cd":
            target = command.words[1] if len(command.words) > 1 else None
            if target is None or target.startswith(("~", "-")) or self.cwd is None:
                self.cwd = None
            else:
                self.cwd = posixpath.normpath(posixpath.join(self.cwd, target))

    def _function_definition(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if body is not None:
            self.visit(body)
        if name is not None:
            self.functions.add(_text(name))

    def _test_command(self, node: Node) -> None:
        self._within(node)
        self._emit(SimpleCommand(("[",), _text(node), cwd=self.cwd))

    def _declaration_command(self, node: Node) -> None:
        for child in node.children:
            if child.type == "variable_assignment":
                self._variable_assignment(child)
        self._emit(SimpleCommand(tuple(_text(node).split()), _text(node), cwd=self.cwd))

    def _variable_assignment(self, node: Node) -> None:
        self._within(node)
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None:
            self.variables[_text(name)] = self._word(value) if value is not None else ""

    def _negated_command(self, node: Node) -> None:
        begun = len(self.commands)
        for child in node.children:
            self.visit(child)
        self.commands[begun:] = [replace(each, negated=True) for each in self.commands[begun:]]

    def _subshell(self, node: Node) -> None:
        cwd = self.cwd
        for child in node.children:
            self.visit(child)
        self.cwd = cwd

    def _for_statement(self, node: Node) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return
        values = [self._word(value) for value in node.children_by_field_name("value")]
        for value in values[:_LOOP_LIMIT] or [None]:
            self.variables[_text(variable)] = value
            self.visit(body)
            self._mark(";")

    def _redirected_statement(self, node: Node) -> None:
        begun = len(self.commands)
        body = node.child_by_field_name("body")
        if body is not None:
            self.visit(body)
        rest = [child for child in node.children if child != body]
        if len(self.commands) == begun:  # Such as `> file`, which has no command.
            self._emit(SimpleCommand((), "", cwd=self.cwd))
        for child in rest:
            self._attach(child)
        for child in rest:
            if child.type == "heredoc_redirect":
                for inner in child.children:
                    if inner.type in _OPERATORS or (inner.is_named and inner.type not in _OF_REDIRECT):
                        self.visit(inner)

    def _attach(self, node: Node) -> None:
        """Attach a redirection to the command before it."""
        last = self.commands[-1]
        if node.type == "file_redirect":
            self.commands[-1] = replace(last, redirects=(*last.redirects, self._redirect(node)))
        elif node.type == "herestring_redirect":
            self.commands[-1] = replace(last, stdin=self._word(node.children[-1]))
        elif node.type == "heredoc_redirect":
            bodies = [_text(child) for child in node.children if child.type == "heredoc_body"]
            self.commands[-1] = replace(last, stdin="".join(bodies))
            for child in node.children:
                if child.type == "file_redirect":
                    self._attach(child)

    def _redirect(self, node: Node) -> Redirect:
        operator = next((child.type for child in node.children if not child.is_named), ">")
        target = node.child_by_field_name("destination")
        self._within(node)
        return Redirect(operator, self._word(target) if target is not None else None)

    def _within(self, node: Node) -> None:
        """Collect the commands in ``$(...)`` and ``<(...)``, whose exit codes are lost."""
        for child in _substitutions(node):
            begun = len(self.commands)
            self._subshell(child)
            self.commands[begun:] = [replace(each, after="$(") for each in self.commands[begun:]]

    def _word(self, node: Node) -> str | None:
        if node.type == "command_name":
            return self._word(node.children[0])
        if node.type == "raw_string":
            return _text(node)[1:-1]
        if node.type == "ansi_c_string":
            return _text(node)[2:-1].encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
        if node.type in ("simple_expansion", "expansion"):
            match = _VARIABLE.fullmatch(_text(node))
            return self.variables.get(match[1]) if match else None
        if node.type in _EXPANSIONS:
            return None
        if node.type in ("string", "concatenation"):
            return self._joined(node)
        return re.sub(r"\\(.)", r"\1", _text(node).replace("\\\n", ""))

    def _joined(self, node: Node) -> str | None:
        parts: list[str] = []
        for child in node.children:
            if child.type == '"':
                continue
            if child.type == "string_content":
                parts.append(re.sub(r'\\(["\\$`])', r"\1", _text(child).replace("\\\n", "")))
                continue
            part = self._word(child)
            if part is None:
                return None
            parts.append(part)
        return "".join(parts)


def _substitutions(node: Node) -> Iterator[Node]:
    """Yield the outermost ``$(...)`` and ``<(...)`` in a word."""
    if node.type in ("command_substitution", "process_substitution"):
        yield node
    else:
        for child in node.children:
            yield from _substitutions(child)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def parse_line(text: str) -> CommandLine:
    """Parse a line or script for bash into the commands that it runs.

    Raises:
        UsageError: The parser is not installed.
    """
    if not text.strip():
        return EMPTY_LINE
    root = _parser().parse(text.encode("utf-8", "replace")).root_node
    reader = _SyntaxReader()
    reader.visit(root)
    return CommandLine(tuple(inner for command in reader.commands for inner in _unwrapped(command)), root.has_error)


def _unwrapped(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """Yield the commands that a command runs, without ``timeout 20``, ``env A=b``, ``bash -c`` and the like."""
    words = command.words
    while words and posixpath.basename(words[0] or "") in COMMANDS.tables["prefixes"]:
        rest = _without_prefix(words)
        if rest is None:
            break
        words = rest
    inside = _in_container(words)
    if isinstance(inside, tuple):
        yield from _unwrapped(replace(command, words=inside, cwd=None))
        return
    if isinstance(inside, str) or (words and posixpath.basename(words[0] or "") in COMMANDS.words["shells"]):
        script = inside if isinstance(inside, str) else _script_of(words)
        if script is not None:
            inner = parse_line(script).commands
            for number, each in enumerate(inner):
                cwd = None if command.cwd is None or each.cwd is None else posixpath.join(command.cwd, each.cwd)
                last = number == len(inner) - 1
                redirects = (*each.redirects, *command.redirects) if last else each.redirects
                stdin = each.stdin if each.stdin is not None else command.stdin
                after = command.after if last else each.after
                yield replace(each, cwd=cwd, redirects=redirects, stdin=stdin, after=after)
            return
    yield replace(command, words=words)


def _without_prefix(words: tuple[str | None, ...]) -> tuple[str | None, ...] | None:
    name = posixpath.basename(words[0] or "")
    rest = list(words[1:])
    if name in COMMANDS.words["runners"] or name == "coverage":
        while name in COMMANDS.words["runners"] and len(rest) > 1 and rest[0] in COMMANDS.words["values_of_runners"]:
            rest = rest[2:]
        if rest[:1] not in (["run"], ["exec"], ["x"]):
            return None
        rest = rest[2:] if name == "direnv" else rest[1:]
        while name in COMMANDS.words["runners"] and rest and rest[0] in COMMANDS.words["values_of_runners"]:
            rest = rest[2:]
        if name == "coverage":  # It runs Python: `coverage run -m pytest`.
            rest = ["python", *rest]
    while rest:
        word = rest[0] or ""
        if word in COMMANDS.tables["prefixes"][name]:
            rest = rest[2:]
        elif name != "coverage" and (word.startswith("-") or (name in ("env", "cross-env") and "=" in word)):
            rest = rest[1:]
        else:
            break
    if name == "timeout":
        rest = rest[1:]
    return tuple(rest) or None


def _in_container(words: tuple[str | None, ...]) -> tuple[str | None, ...] | str | None:
    """Return the words, or the script, that a command runs in a container or on another machine; None for none."""
    name = posixpath.basename(words[0] or "") if words else ""
    verbs = COMMANDS.tables["containers"].get(name)
    if verbs is None:
        return None
    rest = [*words[1:]] if name != "ssh" else ["", *words[1:]]
    while rest and rest[0] not in verbs:
        if rest[0] is None or (rest[0] not in ("compose",) and not rest[0].startswith("-")):
            return None
        rest = rest[2:] if rest[0] in COMMANDS.words["values_of_containers"] else rest[1:]
    rest = rest[1:]
    entry = next((after for option, after in pairwise(rest) if option == "--entrypoint"), None)
    script = "--" not in rest and name in ("vagrant", "lando") and "-c" in rest[:-1]
    if script:
        return rest[rest.index("-c") + 1] or ""
    while rest and (rest[0] or "").startswith("-"):
        rest = (
            rest[2:] if rest[0] in COMMANDS.words["values_of_containers"] and "=" not in (rest[0] or "") else rest[1:]
        )
    rest = rest if name == "ddev" else rest[1:]  # The name of the container, service, image or machine.
    if "--" in rest[:3]:
        rest = rest[rest.index("--") + 1 :]
    if not rest:
        return None
    if name == "ssh":
        return " ".join(word or "" for word in rest)
    return (entry, *rest) if entry else tuple(rest)


def _script_of(words: tuple[str | None, ...]) -> str | None:
    for position, word in enumerate(words[1:], 1):
        if word is None or not word.startswith("-"):
            return None
        if not word.startswith("--") and "c" in word:
            return words[position + 1] if position + 1 < len(words) else None
    return None
