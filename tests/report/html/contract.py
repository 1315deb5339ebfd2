"""Whether JSON values are what ``data.d.ts`` says: the part of TypeScript's types that this file is written in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pytest_evocode.report import html

DECLARATIONS = Path(html.__file__).parent / "viewer" / "data.d.ts"
_TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|\d+|[{}\[\]()<>|;:?,=]')
_PLAIN: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "boolean": (bool,)}

Type = tuple[Any, ...]
"""A kind, and what belongs to it: ``("union", types)``, ``("object", fields)`` and so on."""


def faults(value: Any, name: str) -> list[str]:
    """Return where a value is not of the declared type of that name; empty where it is."""
    return list(_faults(value, ("name", name), name))


def _faults(value: Any, kind: Type, place: str) -> Iterator[str]:
    what, *parts = kind
    if what == "name":
        yield from _of_name(value, parts[0], place)
    elif what == "literal":
        if value != parts[0] or isinstance(value, bool) != isinstance(parts[0], bool):
            yield f"{place}: {value!r:.80} is not {parts[0]!r}"
    elif what == "union":
        found = [list(_faults(value, each, place)) for each in parts[0]]
        if all(found):
            yield max(found, key=lambda each: each[0].count("."))[0]
    elif what in ("array", "tuple"):
        if not isinstance(value, list | tuple):
            yield f"{place}: {value!r:.80} is no list"
            return
        kinds = parts[0] if what == "tuple" else [parts[0]] * len(value)
        if len(kinds) != len(value):
            yield f"{place}: {value!r:.80} has not {len(kinds)} values"
        for number, (each, of) in enumerate(zip(value, kinds, strict=False)):
            yield from _faults(each, of, f"{place}[{number}]")
    else:
        yield from _of_object(value, kind, place)


def _of_name(value: Any, name: str, place: str) -> Iterator[str]:
    if name in _PLAIN:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = is_number and math.isfinite(value) if name == "number" else isinstance(value, _PLAIN[name])
        if not fits:
            yield f"{place}: {value!r:.80} is no {name}"
    elif name == "null":
        if value is not None:
            yield f"{place}: {value!r:.80} is not null"
    elif name != "unknown":
        yield from _faults(value, _declared()[name], place)


def _of_object(value: Any, kind: Type, place: str) -> Iterator[str]:
    what, *parts = kind
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        yield f"{place}: {value!r:.80} is no object"
    elif what == "map":
        keys, of = parts
        for key, each in value.items():
            yield from _faults(key, keys, f"{place}: key {key}")
            yield from _faults(each, of, f"{place}.{key}")
    else:
        fields = _fields(kind)
        for key in value.keys() - fields.keys():
            yield f"{place}: there is no field {key}"
        for key, (of, optional) in fields.items():
            if key in value:
                yield from _faults(value[key], of, f"{place}.{key}")
            elif not optional:
                yield f"{place}: the field {key} lacks"


def _fields(kind: Type) -> dict[str, tuple[Type, bool]]:
    if kind[0] == "partial":
        whole = _declared()[kind[1][1]]
        return {key: (of, True) for key, (of, _) in _fields(whole).items()}
    fields: dict[str, tuple[Type, bool]] = kind[1]
    return fields


@cache
def _declared() -> dict[str, Type]:
    """Return the declared types by name."""
    text = re.sub(r"/\*.*?\*/", "", DECLARATIONS.read_text(encoding="utf-8"), flags=re.DOTALL)
    parser = _Parser(_TOKEN.findall(text))
    return dict(parser.declarations())


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def declarations(self) -> Iterator[tuple[str, Type]]:
        while self._at < len(self._tokens):
            word, name = self._next(), self._next()
            assert word in ("type", "interface"), word
            if word == "type":
                self._expect("=")
            yield name, self._type()
            self._skip(";")

    def _type(self) -> Type:
        self._skip("|")
        types = [self._suffixed()]
        while self._skip("|"):
            types.append(self._suffixed())
        return types[0] if len(types) == 1 else ("union", types)

    def _suffixed(self) -> Type:
        found = self._single()
        while self._tokens[self._at : self._at + 2] == ["[", "]"]:
            self._at += 2
            found = "array", found
        return found

    def _single(self) -> Type:
        token = self._next()
        if token == "{":
            return self._object()
        if token == "(":
            found = self._type()
            self._expect(")")
            return found
        if token == "[":
            types = []
            while not self._skip("]"):
                types.append(self._type())
                self._skip(",")
            return "tuple", types
        if token == "Partial":
            self._expect("<")
            found = self._type()
            self._expect(">")
            return "partial", found
        if token.startswith('"'):
            return "literal", token[1:-1]
        return ("literal", int(token)) if token.isdecimal() else ("name", token)

    def _object(self) -> Type:
        fields: dict[str, tuple[Type, bool]] = {}
        while not self._skip("}"):
            if self._skip("["):
                self._next()
                assert self._next() in (":", "in")
                keys = self._type()
                self._expect("]")
                self._skip("?")
                self._expect(":")
                of = self._type()
                self._skip(";")
                self._expect("}")
                return "map", keys, of
            name = self._next()
            optional = self._skip("?")
            self._expect(":")
            fields[name] = self._type(), optional
            self._skip(";")
        return "object", fields

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip(self, token: str) -> bool:
        there = self._tokens[self._at : self._at + 1] == [token]
        self._at += there
        return there

    def _expect(self, token: str) -> None:
        assert self._skip(token), (token, self._tokens[self._at : self._at + 5])
