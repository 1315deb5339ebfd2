"""Journals of turns under way: what an agent has paid for, so that a resumed session need not pay again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.errors import EnvironmentFault, ResumeRefused


class Journal:
    """The entries of one turn, which are any JSON values.

    A turn that is broken off leaves its file. In the next session, the turn of the same round finds the entries in
    ``earlier``, replays them on the workspace as it was when the turn began, and continues after them.

    Args:
        path: File to write to; without one, entries are not kept.
        of: Identifies the agent and the task, which have to be the same in the next session.
        clean: Removes secrets from what is written.

    Raises:
        ResumeRefused: The file is of another agent or another task.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        of: Mapping[str, Any] | None = None,
        clean: Callable[[Any], Any] = lambda entry: entry,
    ) -> None:
        self._path = path
        self._clean = clean
        self._head = {"of": json.loads(json.dumps(clean(dict(of or {})), default=str))}
        head, *earlier = (_read(path) if path is not None else []) or [None]
        self._is_begun = head is not None
        self.earlier: list[Any] = earlier
        if head is not None and head != self._head:
            raise ResumeRefused(
                f"{path}: this turn was begun by an agent with other options, or with other files of the task "
                f"({json.dumps(head.get('of'))}); resume it with those, or remove the file to pay for the turn again"
            )

    def add(self, entry: Any) -> None:
        """Write an entry for what was just paid for."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lines = [self._clean(entry)] if self._is_begun else [self._head, self._clean(entry)]
            with self._path.open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            self._is_begun = True
        except OSError as error:
            raise EnvironmentFault(f"the results could not be written: {error}") from error

    def split(self, key: str) -> list[Journal]:
        """Return the journals of the parts of a turn, which entries with a ``key`` separate; all write to this one."""
        parts: list[list[Any]] = [[]]
        for entry in self.earlier:
            if isinstance(entry, dict) and key in entry:
                parts.append([])
            else:
                parts[-1].append(entry)
        return [Journal.following(self, earlier) for earlier in parts]

    @staticmethod
    def following(journal: Journal, earlier: list[Any] | None = None) -> Journal:
        """Return a journal with entries of its own from an earlier session, which writes to another one."""
        found = Journal()
        found.earlier = earlier or []
        found.add = journal.add  # type: ignore[method-assign]
        return found

    def close(self) -> None:
        """Remove the file, because the turn has ended."""
        if self._path is not None:
            with contextlib.suppress(NotADirectoryError):
                self._path.unlink(missing_ok=True)


def _read(path: Path) -> list[Any]:
    """Read the entries of an earlier session; a last line that was cut off is removed, from the file as well."""
    try:
        written = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    # In bytes: the cut may be within a character, and str.splitlines splits at more than line feeds.
    whole = written[: written.rfind(b"\n") + 1]
    if whole != written:
        path.write_bytes(whole)
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise ResumeRefused(f"{path}: the journal is damaged: {error}; remove it to pay for the turn again") from None
