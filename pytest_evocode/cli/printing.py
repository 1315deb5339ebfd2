"""What commands print: texts that programs and agents may have written a part of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import click

from pytest_evocode.report.printable import printable, printable_json
from pytest_evocode.report.tables import short_line
from pytest_evocode.report.views import FORMATS, Format, Table, View, printed


class Trouble(click.ClickException):
    """What keeps a command from an answer, where its status 1 is one."""

    exit_code = 2


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, on standard error with ``err``, and end its line unless ``nl`` is false."""
    click.echo(printable(text), err=err, nl=nl)


def tell_note(text: str) -> None:
    """Print a note on standard error, in one short line and once in a command, however often it comes up."""
    told = _told_notes()
    if text not in told:
        told.append(text)
        echo(f"note: {short_line(text)}", err=True)


def _told_notes() -> list[str]:
    """Return the notes that the command has told so far."""
    context = click.get_current_context(silent=True)
    told: list[str] = [] if context is None else context.meta.setdefault("evocode notes", [])
    return told


def print_json(value: Any, out: Path | None = None) -> None:
    """Print indented JSON, or write it to the file ``out``."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if out is None:
        click.echo(printable_json(text))
    else:
        out.write_text(f"{text}\n", encoding="utf-8")


def print_view(view: View, form: Format, *, quiet: bool = False, table: str | None = None) -> None:
    """Print a view, or its one table of a name; what formats without notes do not say is told on standard error.

    CSV is always of one table, by default the first, for programs that read it know nothing of more.
    In Markdown, which is often all that is kept, such as in the summary of a CI job, what was told there is repeated.
    """
    for note in view.caveats if form in ("csv", "json") else ():
        tell_note(note)
    if table is not None:
        view = _only(view, table)
    elif form == "csv" and len(view.tables) > 1:
        first, *others = view.tables
        view = replace(view, tables=[first])
        # Never cut short, as other notes are: no other place has all the names.
        echo(f"note: CSV has one table, here {first.name}; --table=NAME prints another: {_names(others)}", err=True)
    if form == "markdown":
        view = replace(view, notes=[*view.notes, *_told_notes()])
    text = printed(view, form, definitions=not quiet)
    click.echo(printable_json(text) if form == "json" else printable(text))


def _only(view: View, name: str) -> View:
    """Return a view of the table of a name; raises click.UsageError where there is none."""
    tables = [each for each in view.tables if each.name == name]
    if not tables:
        raise click.UsageError(f"there is no table {name} here; there are {_names(view.tables)}")
    return View(tables, caveats=view.caveats)


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(each.name for each in tables)


def format_options(default: Format = "text") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of formats; it receives them as ``form``, ``quiet`` and ``table``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(*, form: Format | Literal["md"] | None, **given: Any) -> None:
            wanted: Format = "markdown" if form == "md" else form or default
            command(form=wanted, **given)

        shown = click.option(
            "--format",
            "form",
            type=click.Choice([*FORMATS, "md"]),
            help=f"Format; the default is {default}. CSV has one table: the first, or that of --table.",
        )
        as_json = click.option("--json", "form", flag_value="json", help="Same as --format=json.")
        quiet = click.option("-q", "--quiet", is_flag=True, help="Leave out what each column is.")
        table = click.option("--table", metavar="NAME", help="Print only this table.")
        return shown(as_json(quiet(table(call))))

    return decorate


def prints_view(default: Format = "text") -> Callable[[Callable[..., View]], Callable[..., None]]:
    """Have a command print the view that its function returns, in the format that its user asks for."""

    def decorate(make: Callable[..., View]) -> Callable[..., None]:
        @wraps(make)
        def call(*, form: Format, quiet: bool, table: str | None, **given: Any) -> None:
            print_view(make(**given), form, quiet=quiet, table=table)

        return format_options(default)(call)

    return decorate
