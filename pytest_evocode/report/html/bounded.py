"""Texts of agents and programs cut to a length that a browser can take, with what was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_evocode.results.plain_files import open_plain

_DEEPEST = 12  # levels of tables and lists within one another
_MOST_ITEMS = 500  # of one table or list


def bounded(text: str, longest: int) -> str:
    r"""Return a text, or its beginning and end with the number of characters that were left out between them.

    >>> bounded("abcdefghij", 4)
    'ab\n[... 6 characters left out ...]\nij'
    """
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    end = longest - longest // 2
    return f"{text[: longest // 2]}\n[... {left_out:,} characters left out ...]\n{text[len(text) - end :]}"


def bounded_value(value: Any, longest: int, deepest: int = _DEEPEST) -> Any:
    """Return a JSON value with every text in it cut, and without what is nested too deep or is too much.

    Args:
        value: The value.
        longest: Characters of each text.
        deepest: Levels of tables and lists within one another.
    """
    if isinstance(value, str):
        return bounded(value, longest)
    if value is None or isinstance(value, bool | int | float):
        return value
    if deepest == 0:
        return "[... nested too deep ...]"
    if isinstance(value, dict):
        items = list(value.items())
        kept = {
            bounded(str(key), _MOST_ITEMS): bounded_value(each, longest, deepest - 1)
            for key, each in items[:_MOST_ITEMS]
        }
        left_out = len(items) - _MOST_ITEMS
        return kept | ({"...": f"{left_out:,} more left out"} if left_out > 0 else {})
    if isinstance(value, list | tuple):
        kept_items = [bounded_value(each, longest, deepest - 1) for each in value[:_MOST_ITEMS]]
        left_out = len(value) - _MOST_ITEMS
        return kept_items + ([f"[... {left_out:,} more left out ...]"] if left_out > 0 else [])
    return bounded(str(value), longest)


def read_bounded(path: Path, longest: int, *, within: Path) -> tuple[str, int]:
    """Return the text in a file and how many bytes of it were left out in the middle, without reading these.

    Args:
        path: The file.
        longest: Bytes that are read at most.
        within: A directory that the file has to lie in.

    Raises:
        OSError: It cannot be read.
    """
    with open_plain(path, within=within) as file:
        data = file.read(longest + 1)
        if len(data) <= longest:
            return data.decode("utf-8", "replace"), 0
        size = file.seek(0, 2)
        end = longest // 2
        file.seek(size - end)
        last = file.read(end)
    first = data[: longest - end]
    left_out = size - len(first) - len(last)
    # A cut within a character leaves parts of it, which are no text.
    start, stop = first.decode("utf-8", "ignore"), last.decode("utf-8", "replace").lstrip("\ufffd")
    return f"{start}\n[... {left_out:,} bytes left out ...]\n{stop}", left_out
