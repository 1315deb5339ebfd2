"""The viewer's files as a report has them: one script, one style sheet and one page, joined from ``viewer/``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

VIEWER = Path(__file__).parent / "viewer"
#: Scripts that come before those of pages, in this order: constants of one may need what is in those before it.
FIRST = (
    "elements.js", "texts.js", "numbers.js", "loading.js", "router.js", "controls.js", "tables.js", "virtual.js",
    "cells.js", "charts.js", "diffs.js", "theme.js", "keyboard.js",
)  # fmt: skip
#: It calls what all others define.
LAST = "start.js"
_FIRST_STYLE = "base.css"
#: Comments that are whole lines: they are for who reads the sources, and a quarter of their size.
_COMMENT = re.compile(r"^[ \t]*(?:/\*(?:(?!\*/).)*\*/|//[^\n]*)[ \t]*\n", re.MULTILINE | re.DOTALL)
_SCRIPT = '<script src="report.js"></script>'
_STYLE = '<link rel="stylesheet" href="report.css">'
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"


def scripts() -> tuple[Path, ...]:
    """Return the viewer's scripts in the order in which they are joined."""
    return tuple(sorted(VIEWER.glob("*.js"), key=lambda path: (_place(path.name), path.name)))


def _place(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST) + (name == LAST)


def styles() -> tuple[Path, ...]:
    """Return the viewer's style sheets in the order in which they are joined."""
    return tuple(sorted(VIEWER.glob("*.css"), key=lambda path: (path.name != _FIRST_STYLE, path.name)))


@cache
def script() -> str:
    """Return ``report.js``: all scripts within one function, so that only what they export is global."""
    return f'{_licence()}(() => {{\n"use strict";\n{"".join(map(_source, scripts()))}}})();\n'


@cache
def style() -> str:
    """Return ``report.css``."""
    return f"{_licence()}{''.join(map(_source, styles()))}"


@cache
def page() -> str:
    """Return ``index.html``, which has no data and only links the script and the style sheet."""
    return (VIEWER / "index.html").read_text(encoding="utf-8")


def single_page(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of a page that has the script, the style sheet and the data in itself.

    Args:
        data: Scripts as :func:`pytest_evocode.report.html.files.packed.packed` makes them.

    Its policy allows the scripts and the style by their hashes, and nothing else.
    """
    code = script().replace("</script", "<\\/script").replace("<!--", "<\\!--").encode()
    # The data come first: the last of the scripts asks for the index at once.
    parts = [_KEEP + b"".join(data), code]
    sources = " ".join(map(_hash, parts))
    sheet = style().encode()
    policy = f"default-src 'none'; script-src {sources}; style-src {_hash(sheet)}; img-src data:"
    head, _, tail = page().replace(_POLICY, policy).encode().partition(_SCRIPT.encode())
    before, _, after = head.partition(_STYLE.encode())
    yield before + b"<style>" + sheet + b"</style>" + after
    for each in parts:
        yield b"<script>" + each + b"</script>\n"
    yield tail


#: What takes the data until the viewer is there, which finds it by this name.
_KEEP = b"var evocode = {kept: [], receive(name, data) { this.kept.push([name, data]); }};\n"


def _hash(source: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode()}'"


def _source(path: Path) -> str:
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return text if text.endswith("\n") else f"{text}\n"


def _licence() -> str:
    text = (VIEWER / "licence.txt").read_text(encoding="utf-8").strip()
    return f"/*! The viewer of pytest-evocode's reports.\n\n{text}\n*/\n"
