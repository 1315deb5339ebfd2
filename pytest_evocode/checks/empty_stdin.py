"""Where a script reads its stdin, in which there is nothing, told by what it prints where that is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_REFUSED = re.compile(r"^(?:(?P<script>/\S+): line (?P<line>\d+): )?.*\bBad file descriptor\b.*$", re.MULTILINE)
_ADVICE = "reads its stdin, where there is nothing{}; give it its input, as by `< FILE` or a here-document"


def where_stdin_is_read(usual: str, refused: str, script: str, directories: Mapping[str, Sequence[Path]]) -> str:
    """Return the line of a script that reads its stdin and what to do, as ``path:line: why``; nothing where none does.

    Args:
        usual: What the script printed with an empty stdin.
        refused: What it printed where nothing can be read from stdin; bash names the line.
        script: The script, as it was started.
        directories: Those of the task that its directories there were made of; of several the last counts.
    """
    for found in _REFUSED.finditer(refused):
        if found[0] in usual:
            continue
        place, line = found["script"] or script, f":{found['line']}" if found["line"] else ""
        why = "" if line else f" ({found[0].strip()})"
        return f"{_on_host(place, directories)}{line}: {_ADVICE.format(why)}"
    return ""


def _on_host(place: str, directories: Mapping[str, Sequence[Path]]) -> str:
    for root, sources in directories.items():
        for source in reversed(sources):
            if place.startswith(f"{root}/") and (path := source / place.removeprefix(f"{root}/")).is_file():
                return str(path)
    return place
