"""Views of results: tables of declared columns, and one printer for each format in which a view is to be had.

A view is a function that returns its tables. A column says once what it is called, what it means, how a cell shows it,
and which numbers in full precision programs get of it; so every view has every format.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain, groupby
from string import Formatter
from typing import Any, Literal, Self, get_args

from pytest_evocode.metrics.intervals import Interval
from pytest_evocode.report.export import write_csv
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import NOT_MEASURED, aligned, markdown_table, plain, short_line

Format = Literal["text", "json", "csv", "markdown", "latex"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = Mapping[str, Any]
"""The values of a row in full precision; None is not measured."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    cell: Callable[[Row], str]
    """Returns its cell, for people."""
    _: KW_ONLY
    help: str = ""
    """What it means, in one line."""
    fields: tuple[str, ...] = ()
    """The names of the values that are behind it, for programs."""
    left: bool = False
    nothing: str = ""
    """The cell in which there is nothing: people do not see a column of nothing but these."""

    @classmethod
    def form(
        cls,
        title: str,
        form: str,
        help: str = "",
        *,
        unknown: str = NOT_MEASURED,
        behind: str = "",
        fields: Sequence[str] = (),
        left: bool = False,
        nothing: str = "",
    ) -> Self:
        """Return a column whose cells are a form such as ``{passed}/{of}``, filled in with values of the row.

        Args:
            title: What it is called.
            form: The form.
            help: What it means.
            unknown: The form in its place where the first of its values is not known.
            behind: A form behind it, where the first value of that is known.
            fields: The names of the values for programs, where these are others than those in ``form`` and ``behind``.
            left: Whether it is aligned to the left.
            nothing: The cell in which there is nothing.
        """
        (first, *_), then = names = _names_in(form), _names_in(behind)

        def cell(row: Row) -> str:
            shown = unknown if row[first] is None else form
            return (shown + behind if then and row[then[0]] is not None else shown).format_map(row)

        return cls(title, cell, help=help, fields=tuple(fields or chain(*names)), left=left, nothing=nothing)

    @classmethod
    def text(cls, title: str, field: str, help: str = "") -> Self:
        """Return a column of texts, to the left."""
        return cls.form(title, f"{{{field}}}", help, left=True)

    @classmethod
    def count(cls, title: str, field: str, help: str = "", *, nothing: str = "") -> Self:
        """Return a column of whole numbers."""
        return cls.form(title, f"{{{field}}}", help, nothing=nothing)

    @classmethod
    def number(cls, title: str, field: str, help: str = "", *, digits: int = 1) -> Self:
        """Return a column of numbers with so many decimals."""
        return cls.form(title, f"{{{field}:.{digits}f}}", help)

    @classmethod
    def interval(cls, title: str, low: str, high: str, help: str = "", *, nothing: str = NOT_MEASURED) -> Self:
        """Return the column of an interval, whose ends are values of their own."""
        return cls.form(title, f"{{{low}:.1f}}..{{{high}:.1f}}", help, nothing=nothing)

    @classmethod
    def across(cls, field: str) -> Self:
        """Return the column of what is across; None is all of it."""
        return cls.form(field, f"{{{field}}}", unknown="all")


def _names_in(form: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(form) if name]


def ends(found: Interval | None, name: str = "") -> dict[str, float | None]:
    """Return the ends of an interval as values of a row.

    >>> ends(Interval(12.5, 50.0, "any"), "score"), ends(None)
    ({'score_low': 12.5, 'score_high': 50.0}, {'low': None, 'high': None})
    """
    low, high = (None, None) if found is None else (found.low, found.high)
    before = f"{name}_" if name else ""
    return {f"{before}low": low, f"{before}high": high}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, and what is to be said of them."""

    name: str
    """What a file with it is called."""
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    _: KW_ONLY
    titled: bool = False
    """Whether a terminal shows the title, with the rows below it indented."""
    by_section: bool = False
    """Whether people see a table for each value of the first column."""
    across: int | None = None
    """The place of the column whose values are columns for people, each with the cells of the one behind it."""
    headless: bool = False
    """Whether a terminal shows no head."""
    most: int | None = None
    """How many rows people see; with 0, no head either."""
    rest: str = ""
    """The line in place of the rows that are not shown."""
    notes: Sequence[str] = ()
    """Lines below the rows; what several tables have is told below the first of them."""
    more: Sequence[str] = ()
    """The names of values that programs get and people do not see."""

    @property
    def fields(self) -> list[str]:
        """The names of the values that programs get of each row."""
        return [*dict.fromkeys([*chain.from_iterable(column.fields for column in self.columns), *self.more])]


@dataclass(frozen=True, slots=True)
class View:
    """What a command prints."""

    tables: Sequence[Table]
    _: KW_ONLY
    json: Callable[[], Any] | None = None
    """Returns its JSON, where that has more than the tables."""
    text: Sequence[str] = ()
    """Its lines in a terminal, where these are no plain tables."""
    notes: Sequence[str] = ()
    """Lines below all tables."""
    caveats: Sequence[str] = ()
    """What of the notes is to be told beside a format that has none."""


def printed(view: View, form: Format, *, definitions: bool = True) -> str:
    """Return a view as text of a format, without the end of the last line; with ``definitions``, of each column."""
    return _PRINTERS[form](_with_short_notes(view), definitions)


def _with_short_notes(view: View) -> View:
    """Return a view that says each note once, in one line."""
    told: set[str] = set()

    def once(notes: Sequence[str]) -> list[str]:
        new = [note for note in notes if not note or note not in told]
        told.update(new)
        return list(map(short_line, new))

    return replace(
        view, tables=[replace(table, notes=once(table.notes)) for table in view.tables], notes=once(view.notes)
    )


def shown_cells(table: Table) -> list[tuple[str, ...]]:
    """Return the head and the rows as people see them, without columns that have nothing in them."""
    columns, rows = _shown(table), _shown_rows(table)
    if table.across is None:
        return [tuple(column.title for column in columns), *(tuple(each.cell(row) for each in columns) for row in rows)]
    who, across, cell = columns[: table.across], columns[table.across], columns[table.across + 1]
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        found.setdefault(tuple(each.cell(row) for each in who), {})[across.cell(row)] = cell.cell(row)
    values = _values_across(table)
    head = (*(column.title for column in who), *values)
    return [head, *((*names, *(cells.get(value, "") for value in values)) for names, cells in found.items())]


def _shown_rows(table: Table) -> Sequence[Row]:
    return table.rows if table.most is None else table.rows[: table.most]


def _shown(table: Table) -> list[Column]:
    return [
        each for each in table.columns if not each.nothing or any(each.cell(row) != each.nothing for row in table.rows)
    ]


def _values_across(table: Table) -> list[str]:
    """Return the values that are columns, each once: first what is over all others, then in the order of values."""
    assert table.across is not None
    column = table.columns[table.across]
    (field,) = column.fields
    found = {row[field]: column.cell(row) for row in table.rows if row[field] != ""}
    return [text for value, text in sorted(found.items(), key=lambda each: (each[0] is not None, each[0] or 0))]


def _left(table: Table) -> set[int]:
    columns = _shown(table)
    return {place for place, each in enumerate(columns[: table.across]) if each.left}


def _sections(table: Table) -> Iterator[tuple[str, Table]]:
    """Yield the tables that people see in place of one, with what is above each."""
    if not table.by_section:
        yield "", table
        return
    section, *columns = table.columns
    across = None if table.across is None else table.across - 1
    for name, rows in groupby(table.rows, key=section.cell):
        yield name, Table(table.name, table.title, columns, list(rows), across=across)


def definition_lines(table: Table, told: Collection[str] = ()) -> list[str]:
    """Return a line for each column that people see, without those that were ``told`` before."""
    columns = _shown(table) if _shown_rows(table) else []
    found = {column.title: column.help for column in columns}
    if columns and table.across is not None:
        across, cell = columns[table.across], columns[table.across + 1]
        values = _values_across(table)
        span = values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
        found = {each.title: each.help for each in columns[: table.across]}
        found[span] = f"By {across.title}, {cell.help}" if cell.help else ""
    return [line for title, help in found.items() if help and (line := f"{title}: {help}") not in told]


def _text(view: View, definitions: bool) -> str:
    lines = [*view.text]
    told: list[str] = []
    for place, table in enumerate(view.tables):
        if not view.text:
            lines += [*([""] if place else []), *_table_lines(table)]
        new = definition_lines(table, told) if definitions else []
        indent = "  " if table.titled else ""
        lines += [*([""] if new and view.text and not told else []), *(f"{indent}{line}" for line in new)]
        told += new
    return "\n".join([*lines, *view.notes])


def _below(table: Table) -> list[str]:
    return [*([table.rest] if table.rest else []), *table.notes]


def _table_lines(table: Table) -> Iterator[str]:
    indent = "  " if table.titled else ""
    if table.titled:
        yield table.title
    for place, (name, part) in enumerate(_sections(table)):
        yield from [""] if place else []
        yield from [f"{name}:"] if name else []
        if part.most != 0:
            cells = shown_cells(part)[1 if table.headless else 0 :]
            yield from (f"{indent}{line}" for line in aligned(cells, left=_left(part)))
    yield from (f"{indent}{note}" for note in _below(table))


def _json(view: View, definitions: bool) -> str:
    values = view.json() if view.json else {table.name: _values(table) for table in view.tables}
    return json.dumps(values, indent=2, ensure_ascii=False)


def _values(table: Table) -> list[dict[str, Any]]:
    return [{name: row[name] for name in table.fields} for row in table.rows]


def _csv(view: View, definitions: bool) -> str:
    return "\n".join(map(csv_text, view.tables)).removesuffix("\n")


def csv_text(table: Table, *, exact: bool = False) -> str:
    """Return a table as :func:`~pytest_evocode.report.export.write_csv` writes it, with numbers in full precision."""
    file = io.StringIO()
    write_csv(_values(table), table.fields, file, exact=exact)
    return file.getvalue()


def _markdown(view: View, definitions: bool) -> str:
    parts = []
    for table in view.tables:
        if table.titled or len(view.tables) > 1:
            parts.append(plain(table.title))
        parts += _markdown_parts(table)
        if definitions and (said := definition_lines(table)):
            parts.append("\n".join(f"- {plain(line)}" for line in said))
    return "\n\n".join([*parts, *map(plain, filter(None, view.notes))])


def markdown_text(table: Table) -> str:
    """Return a table in Markdown, with its title, its notes and what its columns are."""
    title = "" if table.titled else f"{plain(table.title)}\n\n"
    return title + _markdown(View([table]), definitions=True)


def _markdown_parts(table: Table) -> Iterator[str]:
    for name, part in _sections(table):
        if name:
            yield f"{plain(name)}:"
        if part.most != 0:
            yield markdown_table(shown_cells(part))
    yield from map(plain, _below(table))


def _latex(view: View, definitions: bool) -> str:
    return "\n\n".join(latex_text(table, definitions=definitions) for table in view.tables)


def latex_text(table: Table, *, definitions: bool = True) -> str:
    """Return a table for LaTeX's package booktabs, with its notes and what its columns are below."""
    parts = (_latex_lines(name, part, _below(table), definitions) for name, part in _sections(table))
    return "\n\n".join(map("\n".join, parts))


def _latex_lines(name: str, table: Table, notes: Sequence[str], definitions: bool) -> Iterator[str]:
    head, *rows = ([_latex_cell(cell) for cell in row] for row in shown_cells(table))
    left = _left(table)
    caption = f"{table.title.splitlines()[0]}{f': {name}' if name else ''}"
    yield "% \\usepackage{booktabs}"
    yield from ("\\begin{table}", "\\centering", f"\\caption{{{latex_escaped(caption)}}}")
    yield f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', ' '.join([table.name, name]).strip())}}}"
    yield f"\\begin{{tabular}}{{{''.join('l' if place in left else 'r' for place in range(len(head)))}}}"
    yield from ("\\toprule", _latex_row(head), "\\midrule", *map(_latex_row, rows), "\\bottomrule", "\\end{tabular}")
    below = [*table.title.splitlines()[1:], *notes, *(definition_lines(table) if definitions else ())]
    if below:
        yield "\\par\\smallskip\\begin{minipage}{\\linewidth}\\footnotesize"
        yield "\\\\\n".join(map(_latex_cell, below))
        yield "\\end{minipage}"
    yield "\\end{table}"


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _latex_cell(text: str) -> str:
    """Return a cell, or a line, that is no optional argument of the end of the line before it."""
    escaped = latex_escaped(text)
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


_LATEX = {
    "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}",
    "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}",
    "|": "\\textbar{}", "†": "\\dag{}",
}  # fmt: skip


def latex_escaped(text: str) -> str:
    r"""Return a text in one line that LaTeX prints as it is.

    >>> print(latex_escaped("100 % of a_b & {c}\\d^2"))
    100 \% of a\_b \& \{c\}\textbackslash{}d\textasciicircum{}2
    """
    return "".join(_LATEX.get(character, character) for character in printable(" ".join(text.split())))


_PRINTERS: Mapping[Format, Callable[[View, bool], str]] = {
    "text": _text,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
    "latex": _latex,
}
