"""Secrets of the host: which environment variables hold some, and their removal from texts and streams."""

from __future__ import annotations

import base64
import functools
import html
import json
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import AnyStr, Generic
from urllib.parse import quote, quote_plus

#: Shorter values do not count as secrets: with ``TOKEN=1`` every 1 would be taken out of what is written.
SHORTEST = 8
#: How many characters of a value's beginning or end are enough to take it out of a text that was cut off.
_PIECE = 16
#: As many are enough before a text was shortened by "...": so many that it is more than what many keys begin with.
_BEFORE_DOTS = 12
#: How many are enough on either side of the "..." where both sides are of one value.
_ON_EITHER_SIDE = 4
_DOTS = r"\.\.\.+"

_SECRET_WORDS = frozenset({
    "APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CRED", "CREDENTIAL", "CREDENTIALS", "CREDS", "JWT", "KEY",
    "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PW", "PWD", "SECRET", "SECRETS", "TOKEN",
    "TOKENS",
})  # fmt: skip
_SECRET_ENDINGS = ("APIKEY", "ACCESSKEY", "SECRETKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")
# Variables whose names end so hold where a secret is, how many there are or of what kind, and not the secret.
_ABOUT_SECRETS = frozenset({
    "ALGORITHM", "BUDGET", "COUNT", "DIR", "DIRECTORY", "ENDPOINT", "EXPIRY", "FILE", "FILENAME", "FORMAT", "HOME",
    "HOST", "LENGTH", "LIMIT", "MAX", "MIN", "MODE", "NUM", "PATH", "PORT", "PROVIDER", "REGION", "SIZE", "SOCK",
    "SOCKET", "STORE", "TIMEOUT", "TTL", "TYPE", "URI", "URL",
})  # fmt: skip
# The key that signs Python's releases is in the environment of its official images.
_PUBLIC = frozenset({"PWD", "OLDPWD", "GPG_KEY", "GPG_KEYS", "XDG_SESSION_COOKIE"})
_WITH_SECRETS = re.compile(r"DOCKER_AUTH_CONFIG|(.+_)?CONNECTION_STRING")
_NO_WORD = re.compile(r"[^A-Z0-9]+")
_PEM_LINE = re.compile(r"-----(BEGIN|END) [^\n]*-----")
_PASSWORD_IN_URL = re.compile(rf"[a-z][a-z0-9+.-]*://[^\s/?#:@]*:([^\s/?#]{{{SHORTEST},}})@", re.IGNORECASE)


@functools.cache
def is_secret_name(name: str) -> bool:
    """Return whether variables of this name usually hold a secret.

    >>> [is_secret_name(name) for name in ("OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "HF_TOKEN", "PGPASSWORD")]
    [True, True, True, True]
    >>> [is_secret_name(name) for name in ("SSH_AUTH_SOCK", "KEYBOARD", "MAX_TOKENS", "TOKENIZERS_PARALLELISM")]
    [False, False, False, False]
    """
    upper = name.upper()
    if upper in _PUBLIC:
        return False
    if _WITH_SECRETS.fullmatch(upper):
        return True
    words = [word for word in _NO_WORD.split(upper) if word]
    if _ABOUT_SECRETS.intersection(words[-1:]) or {"MAX", "MIN", "NUM"}.intersection(words):
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)


def secret_value(name: str, value: str) -> str | None:
    """Return the secret part of a variable's value: all of it, the password of a URL in it, or None."""
    value = value.strip()
    if is_secret_name(name):
        # The name of a file is not a secret, and may be part of every path that is shown.
        secret = len(value) >= SHORTEST and not (value.startswith("/") and os.path.exists(value))
        return value if secret else None
    found = _PASSWORD_IN_URL.search(value) if "://" in value else None
    return found[1] if found else None


def secrets_in(environ: Mapping[str, str], *, more: Iterable[str] = ()) -> dict[str, str]:
    """Return the secrets of an environment by the variables' names; ``more`` names some that are secret in any case.

    >>> secrets_in({"HF_TOKEN": "hf_0123456789", "TOKEN": "1", "DB": "pg://me:open-sesame@db/", "HOME": "/home/me"})
    {'HF_TOKEN': 'hf_0123456789', 'DB': 'open-sesame'}
    """
    named = frozenset(more)
    found = {}
    for name in list(environ):  # A list, because other threads may change os.environ.
        value = environ.get(name, "")
        secret = value.strip() if name in named and len(value.strip()) >= SHORTEST else secret_value(name, value)
        if secret is not None:
            found[name] = secret
    return found


def withheld_from_agent(environ: Mapping[str, str], declared: Iterable[str]) -> Callable[[str], bool]:
    """Return a predicate for the variables that an agent's container must not get.

    They are the secrets, and variables that are named like one and are not set, but for the ``declared`` ones.
    """
    names = frozenset(declared)

    def withheld(name: str) -> bool:
        value = environ.get(name)
        secret = is_secret_name(name) if value is None else secret_value(name, value) is not None
        return secret and name not in names

    return withheld


@dataclass(frozen=True, slots=True)
class _Needle(Generic[AnyStr]):
    """One form of a secret and the piece of it to search for: its beginning or, with ``last``, its end."""

    piece: AnyStr
    form: AnyStr
    last: bool
    shown: AnyStr

    def find(self, text: AnyStr) -> Iterator[tuple[int, int, AnyStr]]:
        """Yield each place of the form in a text, whole or cut off: start, end and what to show in its place."""
        at = text.find(self.piece)
        while at >= 0:
            end = at + len(self.piece)
            if self.last:
                start = end - _common(self.form[::-1], text[max(0, end - len(self.form)) : end][::-1])
            else:
                start, end = at, at + _common(self.form, text[at : at + len(self.form)])
            yield start, end, self.shown
            at = text.find(self.piece, end)


def _encoded(needle: _Needle[str]) -> _Needle[bytes]:
    """Return the same needle for bytes, as an environment encodes them."""
    piece, form = (os.fsencode(part) for part in (needle.piece, needle.form))
    return _Needle(piece, form, needle.last, needle.shown.encode())


@dataclass(frozen=True, slots=True)
class _Shortened(Generic[AnyStr]):
    """All forms of all secrets, to be found where "..." stands for their middle, as pytest shortens what it shows."""

    forms: Mapping[AnyStr, AnyStr]
    """What to show in their places."""
    dots: re.Pattern[AnyStr]
    pieces: frozenset[AnyStr]
    """Each few characters that are somewhere in a form: most dots are next to none of them."""

    @classmethod
    def of(cls, forms: Mapping[AnyStr, AnyStr], dots: AnyStr) -> _Shortened[AnyStr]:
        """Prepare the search for forms."""
        size = _ON_EITHER_SIDE
        pieces = {form[at : at + size] for form in forms for at in range(len(form) - size + 1)}
        return cls(forms, re.compile(dots), frozenset(pieces))

    def find(self, text: AnyStr) -> Iterator[tuple[int, int, AnyStr]]:
        """Yield each place of what is left of a form beside dots: start, end and what to show in its place."""
        for found in self.dots.finditer(text):
            start, end = found.span()
            before, after = text[max(0, start - _ON_EITHER_SIDE) : start], text[end : end + _ON_EITHER_SIDE]
            if before not in self.pieces and after not in self.pieces:
                continue
            for form, shown in self.forms.items():
                first, last = _before(text, start, form, before), _after(text, end, form, after)
                if first and last:
                    yield start - first, end + last, shown
                elif first >= _BEFORE_DOTS:
                    yield start - first, start, shown
                elif last >= SHORTEST:
                    yield end, end + last, shown


def _before(text: AnyStr, end: int, form: AnyStr, piece: AnyStr) -> int:
    """Return how long the beginning of the form is that a text has before a place, where it has a piece of it."""
    at = form.rfind(piece) if len(piece) == _ON_EITHER_SIDE else -1
    while at >= 0:
        if text.endswith(form[: at + len(piece)], 0, end):
            return at + len(piece)
        at = form.rfind(piece, 0, at + len(piece) - 1)
    return 0


def _after(text: AnyStr, start: int, form: AnyStr, piece: AnyStr) -> int:
    """Return how long the part of the form is that a text has behind a place; what is shown may be cut once more."""
    at = form.find(piece) if len(piece) == _ON_EITHER_SIDE else -1
    longest = 0
    while at >= 0:
        longest = max(longest, _common(form[at:], text[start : start + len(form) - at]))
        at = form.find(piece, at + 1)
    return longest


@dataclass(frozen=True, slots=True)
class _Needles(Generic[AnyStr]):
    """All that is looked for in a text."""

    each: tuple[_Needle[AnyStr], ...]
    shortened: _Shortened[AnyStr]


def _common(one: AnyStr, other: AnyStr) -> int:
    """Return the length of the longest common prefix."""
    if other == one:
        return len(one)
    return next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


class Scrubber:
    """Replaces the secrets of an environment by ``[NAME]``, in every usual form that they may have.

    The forms are the value itself; the value as JSON, URLs and HTML escape it; the value inside base64, at any
    alignment; and each line of a value of several lines. Where a text was cut off, the beginning or the end of a form
    is enough: 16 characters, or two thirds; beside the "..." by which pytest shortens texts in their middle, fewer.
    The environment is read again at every call, because a conftest or an agent may add to it; a value that was secret
    once remains secret. May be used from several threads.

    >>> Scrubber({"HF_TOKEN": "hf_0123456789"}).text("using hf_0123456789 from Authorization: hf_0123456789")
    'using [HF_TOKEN] from Authorization: [HF_TOKEN]'
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environs: tuple[Mapping[str, str], ...] = (environ,)
        self._lock = threading.Lock()
        self._declared: frozenset[str] = frozenset()
        self._known: dict[str, str] = {}
        """Names by value."""
        self._in_text = _all_needles(())
        self._in_bytes = _all_encoded(())

    def learn(self, environ: Mapping[str, str], declared: Iterable[str]) -> None:
        """Also remove the secrets of this environment, and its ``declared`` variables, whatever their names are."""
        if not any(environ is known for known in self._environs):
            self._environs += (environ,)
        self._declared |= frozenset(declared)

    def _look(self) -> None:
        """Learn the secrets that are new in the environment."""
        found = [secret for environ in self._environs for secret in secrets_in(environ, more=self._declared).items()]
        if all(value in self._known for _, value in found):
            return
        with self._lock:
            for name, value in found:
                self._known.setdefault(value, name)
            values = sorted(self._known, key=len, reverse=True)
            needles = tuple(_needles(self._known, values))
            self._in_text, self._in_bytes = _all_needles(needles), _all_encoded(needles)

    def text(self, text: str) -> str:
        """Return the text without secrets; the same object where there are none."""
        return self.for_many()(text)

    def for_many(self) -> Callable[[str], str]:
        """Return :meth:`text` for many texts in a row, which reads the environment only once, now."""
        self._look()
        return functools.partial(_replace, needles=self._in_text)

    def chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield a stream without secrets, which may lie across the borders of its chunks."""
        self._look()
        needles = self._in_bytes
        longest = max((len(needle.form) for needle in needles.each), default=1) + len("...")
        held = b""
        for chunk in chunks:
            held += chunk
            # A secret that begins before the cut ends in what is held; one that spans it waits for the next chunk.
            cut = len(held) - longest
            cut = next((start for start, end, _ in _spans(held, needles) if start < cut < end), cut)
            if cut > 0:
                yield _replace(held[:cut], needles)
                held = held[cut:]
        yield _replace(held, needles)

    def finds(self, chunks: Iterable[bytes]) -> bool:
        """Return whether a stream has a secret, also across the borders of its chunks; reads only up to the first."""
        self._look()
        needles = self._in_bytes.each
        if not needles:
            return False
        overlap = max(len(needle.piece) for needle in needles) - 1
        before = b""
        for chunk in chunks:
            if any(needle.piece in before + chunk for needle in needles):
                return True
            before = (before + chunk)[-overlap:]
        return False


def _needles(known: Mapping[str, str], values: list[str]) -> Iterator[_Needle[str]]:
    seen = set()
    for value in values:
        shown = f"[{known[value]}]"
        if any(each in shown for each in values):
            shown = "[*]"
        for form in _forms(value):
            piece = max(SHORTEST, min(_PIECE, math.ceil(len(form) * 2 / 3)))
            for part, last in ((form[:piece], False), (form[-piece:], True)):
                if (part, form, last) not in seen and not (last and part == form):
                    seen.add((part, form, last))
                    yield _Needle(part, form, last, shown)


def _all_needles(needles: tuple[_Needle[str], ...]) -> _Needles[str]:
    return _Needles(needles, _Shortened.of({needle.form: needle.shown for needle in needles}, _DOTS))


def _all_encoded(needles: tuple[_Needle[str], ...]) -> _Needles[bytes]:
    encoded = tuple(map(_encoded, needles))
    return _Needles(encoded, _Shortened.of({needle.form: needle.shown for needle in encoded}, _DOTS.encode()))


def _forms(value: str) -> list[str]:
    """Return a value in the forms that programs write it in, the longest first."""
    # The first and the last line of a PEM file are not secret; all such files have them.
    value = _PEM_LINE.sub("", value).strip() or value
    whole = [value, *(line.strip() for line in value.splitlines() if len(line.strip()) >= _PIECE)]
    forms: dict[str, None] = {}
    for each in whole:
        encoded = each.encode("utf-8", "surrogateescape")
        for form in (
            each,
            json.dumps(each)[1:-1],
            json.dumps(each, ensure_ascii=False)[1:-1],
            repr(each)[1:-1],
            quote(encoded),
            quote(encoded, safe=""),
            quote_plus(encoded),
            html.escape(each),
            html.escape(each, quote=False),
            *_inside_base64(encoded),
        ):
            if len(form) >= SHORTEST:
                forms[form] = None
    return sorted(forms, key=len, reverse=True)


def _inside_base64(value: bytes) -> Iterator[str]:
    """Yield the part of base64 text that depends on the value alone, with 0, 1 and 2 other bytes before it."""
    for before, first in enumerate((0, 2, 3)):
        whole = (before + len(value)) * 8 // 6
        padded = bytes(before) + value
        yield base64.b64encode(padded).decode()[first:whole]
        yield base64.urlsafe_b64encode(padded).decode()[first:whole]


def _spans(text: AnyStr, needles: _Needles[AnyStr]) -> list[tuple[int, int, AnyStr]]:
    """Return what to replace, in order and without overlaps; of spans that overlap, the longest gives the name."""
    found = [span for needle in needles.each if needle.piece in text for span in needle.find(text)]
    if needles.each:
        found += needles.shortened.find(text)
    if not found:
        return found
    found.sort(key=lambda span: (span[0], -span[1]))
    merged = [found[0]]
    longest = found[0][1] - found[0][0]
    for start, end, shown in found[1:]:
        first, last, name = merged[-1]
        if start >= last:
            merged.append((start, end, shown))
            longest = end - start
        elif end > last:
            if end - start > longest:
                name, longest = shown, end - start
            merged[-1] = (first, end, name)
    return merged


def _replace(text: AnyStr, needles: _Needles[AnyStr]) -> AnyStr:
    spans = _spans(text, needles)
    if not spans:
        return text
    parts = []
    at = 0
    for start, end, shown in spans:
        parts += [text[at:start], shown]
        at = end
    parts.append(text[at:])
    return text[:0].join(parts)
