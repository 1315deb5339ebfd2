"""The command that makes tasks and rounds, ``evocode new``.

What is new is complete and passing, for its author to change: the files below ``templates/``, filled in.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click

from pytest_evocode.cli.new_task.rounds import add_round, fill_in, write_files, write_round
from pytest_evocode.cli.printing import echo
from pytest_evocode.errors import UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks.fields import is_package_name
from pytest_evocode.tasks.foreign.importing import FORMATS, REPORT, import_foreign
from pytest_evocode.tasks.schema import SCHEMA_FILE

_NEXT = "\0"
"""The name of a round that is given none; no argument of a command can be that."""


@click.command("new")
@click.argument("directory", metavar="NAME", type=click.Path(path_type=Path))
@click.argument("sources", metavar="[PATH...]", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--from", "origin", metavar="FORMAT", type=click.Choice([*FORMATS]),
    help=f"Make the task of another benchmark's, at PATH. FORMAT: {', '.join(FORMATS)}.",
)  # fmt: skip
@click.option("--rounds", type=click.IntRange(1, 99), help="Number of rounds.  [default: 2, or 1 with --empty]")
@click.option("--empty", is_flag=True, help="Leave requests, solutions and tests to be filled in.")
@click.option(
    "--native/--script", default=None, help="Verify by pytest tests (the default), or by a test.sh as Harbor does."
)
@click.option(
    "--round", "added", metavar="[ROUND]", is_flag=False, flag_value=_NEXT,
    help="Add a round to the task NAME instead, behind its last one; without a ROUND it has the next number.",
)  # fmt: skip
def new_command(
    directory: Path,
    sources: tuple[Path, ...],
    origin: str | None,
    rounds: int | None,
    empty: bool,
    native: bool | None,
    added: str | None,
) -> None:
    """Create a small task, complete and passing, in a new directory NAME, or a round of one that there is.

    Comments in its files say what to change to make the task your own. A new round gets an entry in task.toml and a
    directory with an empty instruction, a suite to fill in, and a solution that starts from that of the round before.

    --from makes a round of each checkpoint of the problem at PATH (slopcodebench), of each single-step task, in this
    order (harbor), and else one: of a task.yaml (rigorbench), a task of version 1 (terminal-bench), an exercise, also
    of Aider's polyglot benchmark (exercism), a JSON line (swe-bench). Nothing of what is imported is run. What could
    not be carried over is printed, and written beside task.toml as IMPORT.md.
    """
    if origin is not None:
        others = {"--rounds": rounds, "--empty": empty or None, "--native or --script": native, "--round": added}
        if given := [option for option, value in others.items() if value is not None]:
            raise click.UsageError(f"--from makes what {origin} has; leave out {given[0]}")
        if not sources:
            raise click.UsageError(f"--from={origin} needs the PATH of what to import, behind {directory}")
        return _import(origin, sources, directory)
    if sources:
        raise click.UsageError(f"{sources[0]}: a PATH goes with --from=FORMAT, which says what is there")
    if added is not None:
        if rounds is not None:
            raise click.UsageError("--round adds one round to a task that there is; leave out --rounds")
        if native is not None:
            form = "native" if native else "script"
            raise click.UsageError(f"a round that is added is verified as the one before it; leave out --{form}")
        return _add_round(directory, None if added == _NEXT else added)
    _make(directory, rounds, native=native is not False, empty=empty)


def _make(directory: Path, rounds: int | None, *, native: bool, empty: bool) -> None:
    """Make a task, and tell what it is made of and what to run next."""
    rounds = rounds or (1 if empty else 2)
    try:
        write_task(directory, rounds=rounds, form="native" if native else "script", empty=empty)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    shown, task = str(directory), shlex.quote(str(directory))
    made = f"{rounds} {'empty ' if empty else ''}round{'s' if rounds > 1 else ''}"
    click.echo(f"made {shown}, {made} verified by {'pytest' if native else 'test.sh'}")
    if empty:
        suite = "test_round_1.py" if native else "test.sh"
        click.echo("fill in:")
        _echo_table(
            (f"{shown}/task.toml", "the name and the description"),
            (f"{shown}/environment/Dockerfile", "what the agent finds in round 1"),
            (f"{shown}/steps/round-1/instruction.md", "the user's request, word for word"),
            (f"{shown}/steps/round-1/solution/project/", "the reference solution's files"),
            (f"{shown}/steps/round-1/tests/{suite}", "what verifies the round"),
        )
        click.echo("next:")
    else:
        click.echo(f"{directory / 'task.toml'} says what is where; next:")
    more = [(f"evocode new {task} --round", "one more round, from where this one ends")] if empty else []
    _echo_table(
        (f"pytest --evocode-check {task}", "whether it is sound"),
        (f"pytest --evocode-agent=oracle {task}", "its reference solutions against its suites"),
        *more,
        (f"pytest --evocode-pin {task}", "write down the cases that these pass"),
    )


def _echo_table(*rows: tuple[str, str]) -> None:
    echo("\n".join(f"  {line}" for line in aligned(rows, left=(0, 1))))


@click.command("new-round")
@click.argument("task", metavar="TASK", type=click.Path(path_type=Path))
@click.argument("name", metavar="[NAME]", required=False)
def new_round_command(task: Path, name: str | None) -> None:
    """Add a round to the task in the directory TASK, as evocode new TASK --round NAME does."""
    _add_round(task, name)


def _add_round(task: Path, name: str | None) -> None:
    try:
        directory = add_round(task, name)
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{task} cannot be written, and is as it was: {error.strerror or error}") from None
    solution, suite, toml = directory / "solution", directory / "tests", task / "task.toml"
    has_types = "change_types" in toml.read_text("utf-8")
    rows = [
        (f"{directory}/instruction.md", "the user's request, word for word"),
        *([(f"{solution}/", _about_solution(solution))] if solution.is_dir() else []),
        *([(f"{suite}/", "what the round adds to the suite")] if suite.is_dir() else []),
        *([(f"{toml}", "its change_types, where it is no extension")] if has_types else []),
    ]
    echo(f"made {directory}, and its entry in {toml}; fill in:")
    _echo_table(*rows)
    quoted = shlex.quote(str(task))
    echo(f"next:\n  pytest --evocode-agent=oracle {quoted} -k {directory.name}")


def _about_solution(solution: Path) -> str:
    files = sorted(str(path.relative_to(solution)) for path in solution.rglob("*") if path.is_file())
    others = [file for file in files if file != "solve.sh"]
    return f"starts as the last one: change {', '.join(others[:3])}" if others else "the reference solution"


@click.command("import")
@click.argument("format_", metavar="FORMAT", type=click.Choice([*FORMATS]))
@click.argument("sources", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--to", "target", metavar="NAME", required=True, type=click.Path(path_type=Path), help="Directory of the new task."
)
def import_command(format_: str, sources: tuple[Path, ...], target: Path) -> None:
    """Make a task from tasks of other benchmarks, as evocode new NAME --from FORMAT PATH... does."""
    _import(format_, sources, target)


def _import(format_: str, sources: tuple[Path, ...], target: Path) -> None:
    """Make a task from tasks of other benchmarks, and report what could not be carried over."""
    try:
        check_place(target)
        notes = import_foreign(format_, sources, target)
    except UsageError as error:
        raise click.UsageError(printable(str(error))) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or target} cannot be read or written: {error.strerror}") from None
    if notes:
        click.echo("not carried over as it was:")
        for note in notes:
            click.echo(printable(f"  {note}"))
    task = shlex.quote(str(target))
    commands = [(f"pytest --evocode-check {task}", "whether it is sound")]
    if any(target.glob("steps/*/solution/solve.sh")):
        commands.append((f"pytest --evocode-agent=oracle {task}", "its reference solutions against its suites"))
    click.echo(f"made {target} from {FORMATS[format_].title}; {target / REPORT} has this report; next:")
    _echo_table(*commands)


Form = Literal["native", "script"]

_ANY_ROUND = "round-K"
"""In the path of a template: any round from the third on."""
_STATE = """
[metadata.evocode]
# Suites run in the image as it was built, with the working directory carried over. What agents are to leave elsewhere
# goes into this list of paths, as in ["/var/lib/name"].
state = []
"""
_PARCELS = "A command-line tool that prices parcels, and whose requirements change."
_WRITE = ""
_ONE_ROUND = re.compile(r"\bround-(\d+)\b")


def write_task(directory: Path, *, rounds: int, form: Form, empty: bool = False) -> None:
    """Write a task, whole or not at all.

    Args:
        directory: The task's directory, which must not exist; missing parents are made.
        rounds: The number of rounds, 1 to 99.
        form: What verifies them: native suites, or a ``test.sh``.
        empty: Whether the rounds are left to the author; else they are those of a program that prices parcels.

    Raises:
        UsageError: The directory cannot be a new task.
        OSError: It cannot be written.
    """
    check_place(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    names = [f"round-{number}" for number in range(1, rounds + 1)]
    with tempfile.TemporaryDirectory(prefix=".evocode-new-", dir=directory.parent) as parent:
        task = Path(parent, directory.name)
        values = _values(directory.name, names, form, empty=empty)
        write_files(task, fill_in("task", values))
        (task / SCHEMA_FILE.name).write_bytes(SCHEMA_FILE.read_bytes())
        if empty:
            write_files(task, fill_in("empty", values))
            for name in names:
                write_round(task / "steps" / name, name, script=form == "script", is_first=name == names[0])
        else:
            write_files(task, _example(rounds, form))
        os.rename(task, directory)


def check_place(directory: Path) -> None:
    """Raise UsageError where a directory cannot be a new task: it exists, has no proper name, or lies in a task."""
    if os.path.lexists(directory):
        is_task = (directory / TASK_FILE).exists()
        more = f"; evocode new {shlex.quote(str(directory))} --round adds a round to it" if is_task else ""
        raise UsageError(f"{directory} exists already; choose another name, or remove it{more}")
    if not is_package_name(f"your-org/{directory.name}"):
        raise UsageError(
            f"no task can be called {directory.name!r}; use letters, digits, '_' and '-', and single dots between them"
        )
    around = next((each for each in directory.absolute().parents if (each / TASK_FILE).exists()), None)
    if around is not None:
        raise UsageError(f"{directory} would lie in the task {around}; choose a place outside of it")


def _example(rounds: int, form: Form) -> Iterator[tuple[str, str]]:
    """Yield the files of the rounds that price parcels: their paths in the task, and their texts."""
    for tree in ("parcels", f"parcels-{form}"):
        for number in range(1, rounds + 1):
            for path, text in fill_in(tree, _example_values(rounds, number)):
                if number in _rounds_with(path, rounds):
                    yield path.replace(_ANY_ROUND, f"round-{number}"), text


def _rounds_with(path: str, rounds: int) -> range:
    """Return the rounds that have the file of a template; a file without a round in its path is written once, as of 1.

    >>> list(_rounds_with("steps/round-K/instruction.md", 4)), list(_rounds_with("steps/round-2/instruction.md", 1))
    ([3, 4], [])
    """
    if _ANY_ROUND in path:
        return range(3, rounds + 1)
    found = _ONE_ROUND.search(path)
    number = int(found[1]) if found else 1
    return range(number, number + 1) if number <= rounds else range(0)


def _values(name: str, rounds: Sequence[str], form: Form, *, empty: bool) -> Mapping[str, str]:
    """Return what the placeholders in task.toml stand for."""
    return {
        "name": name,
        "description": _WRITE if empty else _PARCELS,
        "keywords": "" if empty else '"python", "cli"',
        "steps": "\n\n".join(f'[[steps]]\nname = "{each}"' for each in rounds),
        "changes": "\n\n".join(_change_types(each, conflict=not empty) for each in rounds),
        "category": "" if empty else 'difficulty = "easy"\ncategory = "command-line tools"\n',
        "verify": _STATE if form == "script" else "",
    }


def _example_values(rounds: int, number: int) -> Mapping[str, object]:
    """Return what the placeholders in the files of a round stand for."""
    cents = 50 + 50 * number
    return {
        "retired": ', retired="round-2"' if rounds > 1 else "",
        "number": number,
        "cents": cents,
        "surcharge": f"{cents / 100:.2f}",
        "price": f"{(120 + cents) / 100:.2f}",
    }


def _change_types(round_: str, *, conflict: bool) -> str:
    types = '["conflict", "extension"]' if conflict and round_ == "round-2" else '["extension"]'
    return f'[[metadata.requirement_chain.steps]]\nstep = "{round_}"\nchange_types = {types}'
