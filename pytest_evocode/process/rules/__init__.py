"""The rules by which trajectories are read: phrases, words, and what programs print, as data with labelled examples.

Each TOML file has tables of rules, by name. A rule is one of four things:

- ``any``: a regular expression, of which one of several alternatives has to match. ``form`` is what stands around them,
  as ``{any}``; ``{name}`` stands for another rule of the file; ``flags`` are those of :mod:`re`. An alternative can be
  a table with a form and alternatives of its own.
- ``words``: some words, in order, in one text or as a list.
- ``table``: some words for each key.
- An array of tables: several regular expressions, each of which is asked.

``finds`` and ``misses`` are texts in which a regular expression has to find something, and in which it must not. Each
``[[example]]`` says what several rules come to: what is asked, of what, and the answer. All of them are tested.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

Read = TypeVar("Read")

_KINDS = ("any", "words", "table")
_KEYS = {*_KINDS, "form", "flags", "finds", "misses"}
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


class _ByName(dict[str, Read]):
    """Rules by name, each read when it is first asked for."""

    def __init__(self, read: Callable[[str], Read]) -> None:
        self._read_rule = read

    def __missing__(self, name: str) -> Read:
        self[name] = found = self._read_rule(name)
        return found


class RuleFile(_ByName[re.Pattern[str]]):
    """The rules of one file, which is read when one is first asked for; by name, its regular expressions.

    >>> MESSAGES["direct"].search("Which one?") is not None, "pytest" in COMMANDS.words["test_tools"]
    (True, True)
    """

    def __init__(self, path: Path) -> None:
        super().__init__(lambda name: self._compiled(name, self._rule(name)))
        self.path = path
        self.series: Mapping[str, tuple[re.Pattern[str], ...]] = _ByName(
            lambda name: tuple(self._compiled(name, each) for each in self._rule(name))
        )
        self.ordered: Mapping[str, tuple[str, ...]] = _ByName(lambda name: _words(self._rule(name)["words"]))
        self.words: Mapping[str, frozenset[str]] = _ByName(lambda name: frozenset(self.ordered[name]))
        self.tables: Mapping[str, Mapping[str, frozenset[str]]] = _ByName(
            lambda name: {key: frozenset(_words(each)) for key, each in self._rule(name)["table"].items()}
        )

    def find(self, text: str, *names: str) -> bool:
        """Return whether any of some regular expressions finds something in a text."""
        return any(self[name].search(text) for name in names)

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """The file as it is.

        Raises:
            ValueError: It is no file of rules; the message says what is wrong where.
        """
        try:
            content = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{self.path}: not valid TOML: {error}") from None
        for name, rule in content.items():
            for each in rule if isinstance(rule, list) else [rule]:
                if name != "example" and (set(each) - _KEYS or sum(kind in each for kind in _KINDS) != 1):
                    raise ValueError(
                        f"{self.path}: {name}: a rule has one of {', '.join(_KINDS)}, and of other keys only "
                        f"form, flags, finds and misses; this one has {', '.join(each) or 'none'}"
                    )
        return content

    def _rule(self, name: str) -> Any:
        if name not in self.content:
            raise ValueError(f"{self.path}: there is no rule {name!r}; add it, or correct what asks for it")
        return self.content[name]

    def _compiled(self, name: str, rule: Mapping[str, Any]) -> re.Pattern[str]:
        try:
            return re.compile(self._expression(rule), sum(_FLAGS[flag] for flag in rule.get("flags", "")))
        except (re.error, KeyError) as error:
            raise ValueError(f"{self.path}: {name}: no regular expression, or unknown flags: {error}") from None

    def _expression(self, rule: Mapping[str, Any] | str) -> str:
        """Return the regular expression of a rule or an alternative, with the rules that it refers to."""
        if isinstance(rule, str):
            return _REFERENCE.sub(lambda match: self._expression(self._rule(match[1])), rule)
        alternatives = "|".join(map(self._expression, rule["any"]))
        return self._expression(rule.get("form", "{any}").replace("{any}", alternatives))


def _words(given: str | list[str]) -> tuple[str, ...]:
    return tuple(given.split() if isinstance(given, str) else given)


COMMANDS, FAULTS, FILES, MESSAGES, OUTPUTS, PLANS = (
    RuleFile(Path(__file__).with_name(f"{name}.toml"))
    for name in ("commands", "faults", "files", "messages", "outputs", "plans")
)
