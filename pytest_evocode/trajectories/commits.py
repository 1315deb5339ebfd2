"""Finds the commits that an agent makes, from Git's reflog of HEAD."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from pytest_evocode.environments import Environment, User

_LIMIT = 100  # commits per action
_LINE = re.compile(r"[0-9a-f]+ ([0-9a-f]+) .*?\t(.*)")
# Moves of HEAD to a new commit; checkout, reset, clone and fast-forward lead to existing ones.
_MAKING = re.compile(
    r"commit|cherry-pick|revert|am:|rebase[^:]*\((pick|reword|edit|squash|fixup|continue)\)|merge .*made"
)
_TIMEOUT = 60.0


def new_commits(
    environment: Environment, repository: str, old: bytes, new: bytes, *, user: User | None
) -> list[dict[str, Any]]:
    """Return the commits that a reflog gained between its contents ``old`` and ``new``.

    Each has its ``id``, ``message`` and changed ``paths``, relative to the working directory like ``repository``. Where
    Git does not answer, the paths are None and the message is its first line. Git runs as the agent's ``user``, because
    the repository's configuration may start programs.
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
    """Return ids, messages and paths by commit."""
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
