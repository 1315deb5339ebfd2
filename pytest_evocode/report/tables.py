"""Tables as plain text and in Markdown, and numbers as their cells show them.

Not with rich: it takes 43 ms and 13 MB, fits tables to the width of the terminal, and a table here is ten lines.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from pytest_evocode.report.printable import printable

NOT_MEASURED = "n/a"


def aligned(rows: Sequence[Sequence[str]], *, left: Container[int] = (0,)) -> Iterator[str]:
    r"""Yield the rows as lines with columns two spaces apart.

    Columns whose index, from 0, is in ``left`` are aligned to the left, the others to the right.

    >>> print(*aligned([("agent", "time"), ("oracle", "4.5 s"), ("nop", "11.0 s")]), sep="\n")
    agent     time
    oracle   4.5 s
    nop     11.0 s
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        yield "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width) for index, (cell, width) in cells
        ).rstrip()


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    r"""Return a table with its first row as the head and all columns but the first aligned to the right.

    >>> print(markdown_table([("agent", "score"), ("a|b", "9.5")]))
    | agent | score |
    | :-- | --: |
    | a\|b | 9.5 |
    """
    head, *rest = rows
    align = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(map(plain, row))} |" for row in (head, align, *rest))


def plain(text: str) -> str:
    r"""Escape what Markdown and HTML would take for markup.

    >>> print(plain("a|b *c* <d>"))
    a\|b \*c\* &lt;d&gt;
    """
    plain = html.escape(printable(" ".join(text.split())), quote=False)
    plain = re.sub(r"([\\|*_`\[\]~#])", r"\\\1", plain)
    # GitHub makes links of bare addresses.
    return re.sub(r":(?=//)|(?<=www)\.", r"\\\g<0>", plain, flags=re.IGNORECASE) or " "


def join_first(texts: Sequence[object], most: int = 20) -> str:
    """Return the first texts, separated by commas, and how many more there are.

    >>> join_first("abcd", 4), join_first("abcd", 2)
    ('a, b, c, d', 'a, b and 2 more')
    """
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(map(str, texts[:most])) + more


_LONGEST = 160
_MORE = " ... (--json has all)"


def short_line(text: str, most: int = _LONGEST) -> str:
    """Return a note in one line of so many characters, cut behind a name where it has more of them than fit.

    >>> short_line("left out: alpha, beta, gamma, delta, epsilon", 40)
    'left out: alpha ... (--json has all)'
    """
    line = " ".join(text.split()) if "\n" in text else text
    if len(line) <= most:
        return line
    kept = line[: most - len(_MORE)]
    return kept[: max(kept.rfind(", "), kept.rfind("; "), kept.rfind(" "))].rstrip(",; ") + _MORE


def fitting(head: str, names: Sequence[str], most: int = _LONGEST) -> str:
    """Return a note with as many names behind its head as fit into so many characters, and how many more there are.

    >>> fitting("left out: ", ["alpha", "beta", "gamma"], 26)
    'left out: alpha and 2 more'
    """
    texts = (head + join_first(names, number) for number in range(len(names), 0, -1))
    return next((text for text in texts if len(text) <= most), head + join_first(names, 1))


def fitting_groups(head: str, groups: Mapping[str, Sequence[str]], most: int = _LONGEST) -> str:
    """Return a note with all values that differ, and behind each as many of its names as fit.

    >>> fitting_groups("differ: ", {"docker": ["alpha", "beta", "gamma"], "sandbox": ["delta"]}, 50)
    'differ: docker (alpha and 2 more); sandbox (delta)'
    """
    text = ""
    for number in (5, 3, 2, 1, 0):
        some = {value: join_first(names, number) if number else f"{len(names)}" for value, names in groups.items()}
        text = head + "; ".join(f"{value} ({told})" for value, told in some.items())
        if len(text) <= most:
            break
    return text


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "task"), counted(7, "task")
    ('1 task', '7 tasks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def format_number(value: float | None, unit: str = "", *, digits: int = 1) -> str:
    """Return a number with so many decimals, or ``n/a``.

    >>> format_number(12.345, " s"), format_number(0.5, digits=2), format_number(None, " s")
    ('12.3 s', '0.50', 'n/a')
    """
    return NOT_MEASURED if value is None else f"{value:.{digits}f}{unit}"


def format_money(value: float | None) -> str:
    """Return a number of US dollars, or ``n/a``."""
    return NOT_MEASURED if value is None else f"${value:,.4f}"


def format_thousands(number: float | None) -> str:
    """Return a number in thousands with one decimal, or ``n/a``.

    >>> format_thousands(50_040), format_thousands(None)
    ('50.0K', 'n/a')
    """
    return NOT_MEASURED if number is None else f"{number / 1000:,.1f}K"


def values_of(thing: object, *names: str) -> dict[str, Any]:
    """Return attributes by their names, for a row or for JSON.

    >>> values_of(1.5j, "real", "imag")
    {'real': 0.0, 'imag': 1.5}
    """
    return {name: getattr(thing, name) for name in names}
