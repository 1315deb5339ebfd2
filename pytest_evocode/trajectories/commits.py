"""Commits that an agent makes, from what Git notes of every move of HEAD."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from pytest_evocode.environments import Environment, User

_LIMIT = 100  # commits of one action
_LINE = re.compile(r"[0-9a-f]+ ([0-9a-f]+) .*?\t(.*)")
# Moves of HEAD to a commit that is new; a checkout, a reset, a clone and a fast-forward go to one that was there.
_MAKING = re.compile(
    r"commit|cherry-pick|revert|am:|rebase[^:]*\((pick|reword|edit|squash|fixup|continue)\)|merge .*made"
)
_TIMEOUT = 60.0


def new_commits(
    environment: Environment, repository: str, old: bytes, new: bytes, *, user: User | None
) -> list[dict[str, Any]]:
    """The commits that a reflog tells of since it was ``old``: ``id``, ``message`` and the ``paths`` they change.

    ``repository`` is relative to the working directory, and so are the paths; they are None, and the message is its
    first line, where Git does not answer. It is asked as the agent's ``user``: what is configured in the repository may
    run programs.
    """
    added = new.removeprefix(old) if new.startswith(old) else b""
    lines = map(_LINE.fullmatch, added.decode("utf-8", "replace").split("\n"))
    made = [(line[1], line[2]) for line in lines if line is not None and _MAKING.match(line[2])][-_LIMIT:]
    if not made:
        return []
    known = _ask_git(environment, repository, [commit for commit, _ in made], user)
    return [
        known.get(commit) or {"id": commit, "message": subject.partition(": ")[2], "paths": None}
        for commit, subject in made
    ]


def _ask_git(
    environment: Environment, repository: str, commits: Sequence[str], user: User | None
) -> dict[str, dict[str, Any]]:
    """Messages and paths by commit."""
    argv = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", "-C", repository or ".", "log"]
    argv += ["--no-walk=unsorted", "--name-only", "--no-renames", "-m", "--first-parent", "--no-show-signature"]
    argv += ["-z", "--format=%x01%H%x02%B%x02", *dict.fromkeys(commits)]
    answer = environment.exec(argv, user=user, timeout=_TIMEOUT)
    if not answer.ok:
        return {}
    found = {}
    for record in answer.output.split("\x01")[1:]:
        commit, message, names = (*record.split("\x02", 2), "", "")[:3]
        paths = [posixpath.join(repository, name.lstrip("\n")) for name in names.split("\0") if name.strip("\n")]
        found[commit] = {"id": commit, "message": message.strip("\n"), "paths": paths}
    return found
