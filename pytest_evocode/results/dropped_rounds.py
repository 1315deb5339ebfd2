"""Removes from an attempt's directory what rounds left there that were begun and do not count."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Container, Iterable
from pathlib import Path

from pytest_evocode.results.directory import AttemptDirectory


def remove_rounds(directory: AttemptDirectory, rounds: Iterable[str], *, keep_journals: bool) -> None:
    """Remove the files of rounds, given by their names.

    With ``keep_journals`` the replies stay that were paid for in their turns, because a later session may play these
    rounds after all. Raises OSError.
    """
    for name in rounds:
        step = directory.path / "steps" / name
        journal = directory.journal(name)
        if not step.is_dir():
            continue
        if not (keep_journals and journal.is_file()):
            shutil.rmtree(step)
            continue
        _remove_all_in(step, journal.parent)
        _remove_all_in(journal.parent, journal)
    with contextlib.suppress(OSError):
        (directory.path / "steps").rmdir()  # It stays where a round is left.


def _remove_all_in(directory: Path, but: Path) -> None:
    for path in directory.iterdir():
        if path == but:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove_changes(directory: AttemptDirectory, but: Container[str]) -> None:
    """Remove lists of what an agent changed, all but those with an address of :class:`ChangedPaths` in ``but``.

    Raises OSError.
    """
    changes = directory.path / "changes"
    for path in changes.glob("*.json.gz"):
        if path.name.removesuffix(".json.gz") not in but:
            path.unlink()
    with contextlib.suppress(OSError):
        changes.rmdir()
