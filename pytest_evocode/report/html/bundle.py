"""The viewer's files as a report has them: one script, one style sheet and one page.

The script and the style sheet are joined from ``viewer/``, made small by esbuild, and kept in ``built/``, so that
nothing has to be built to install the package or to run it from a clone. ``tox -e viewer -- build`` builds them anew.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

VIEWER = Path(__file__).parent / "viewer"
BUILT = Path(__file__).parent / "built"
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


def joined_scripts() -> str:
    """Return the sources of ``report.js``, which are meant for one function: only what they export is global."""
    return "".join(map(_source, scripts()))


def joined_styles() -> str:
    """Return the sources of ``report.css``."""
    return "".join(map(_source, styles()))


def heading(sources: str) -> str:
    """Return the comment that a built file begins with: of which sources it was built, and a script's licence too."""
    # The style sheet is only ever beside the script, in a folder as in a single file.
    of_style = sources == joined_styles()
    licence = (
        "The licence is in report.js." if of_style else (VIEWER / "licence.txt").read_text(encoding="utf-8").strip()
    )
    digest = hashlib.sha256(sources.encode()).hexdigest()[:16]
    return f"/*! The viewer of pytest-evocode's reports.\n\n{licence}\n\nsources: {digest}\n*/\n"


@cache
def script() -> str:
    """Return ``report.js`` as it was built."""
    return (BUILT / "report.js").read_text(encoding="utf-8")


@cache
def style() -> str:
    """Return ``report.css`` as it was built."""
    return (BUILT / "report.css").read_text(encoding="utf-8")


@cache
def page() -> str:
    """Return ``index.html``, which has no data and only links the script and the style sheet."""
    return (VIEWER / "index.html").read_text(encoding="utf-8")


def single_page(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the parts of a page that has the script, the style sheet and the data in itself.

    Args:
        data: Scripts as :func:`pytest_evocode.report.html.folder.packed` makes them.

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
