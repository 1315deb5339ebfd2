"""What commands print: texts that programs and agents may have written a part of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pytest_evocode.report.printable import printable, printable_json


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, on standard error with ``err``, and end its line unless ``nl`` is false."""
    click.echo(printable(text), err=err, nl=nl)


def print_json(value: Any, out: Path | None = None) -> None:
    """Print indented JSON, or write it to the file ``out``."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if out is None:
        click.echo(printable_json(text))
    else:
        out.write_text(f"{text}\n", encoding="utf-8")
