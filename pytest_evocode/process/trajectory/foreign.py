"""What has to be guessed of trajectories whose task or harness is unknown, and what they cannot show."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.trajectories.atif import Trajectory

#: Directories that are no place of a project.
_NOT_A_PROJECT = re.compile(r"^/(tmp|usr|etc|var|proc|sys|dev|opt|bin|lib\w*|root/\.\w+|home/\w+/\.\w+)(/|$)")
_CHANGED_INTO = re.compile(r"(?:^|[;&|]\s*|\n)cd\s+(/[\w./@+-]*)")
#: A script that writes files, given to an interpreter in the line itself.
_WRITING_SCRIPT = re.compile(
    r"\b(?:python\d?|node|ruby|perl)\b[^\n]*(?:<<|\s-[ce]\s)[\s\S]*?"
    r"(?:write_text|write_bytes|writeFileSync|\bopen\([^)]*['\"][wa]b?['\"]|File\.write|\.writelines?\()"
)


def inferred_workdir(trajectories: Iterable[Trajectory]) -> str | None:
    """Return the directory that an agent worked in, by where it changed into and which files it edited.

    None where it used no absolute paths.
    """
    places: Counter[str] = Counter()
    files: list[str] = []
    for use in _uses(trajectories):
        places.update(_CHANGED_INTO.findall(use.line))
        if use.cwd.startswith("/"):
            places[use.cwd] += 1
        files += [change.path for change in use.changes if change.path.startswith("/")]
    files = [path for path in files if not _NOT_A_PROJECT.match(path)]
    known = {posixpath.normpath(place): count for place, count in places.items() if not _NOT_A_PROJECT.match(place)}
    for place in sorted(known, key=lambda each: (-known[each], len(each))):
        if place != "/" and all(path.startswith(f"{place}/") for path in files):
            return place
    if not files:
        return None
    common = posixpath.commonpath([posixpath.dirname(path) for path in files])
    # A project's directory is above those that only sort its files.
    while posixpath.basename(common) in ("src", "lib", "tests", "test", "app") and common.count("/") > 1:
        common = posixpath.dirname(common)
    return common if common != "/" else None


def unseen_edits(trajectories: Iterable[Trajectory]) -> int:
    """Return in how many calls a script may have changed files, which no one recorded."""
    return sum(use.kind == "shell" and _WRITING_SCRIPT.search(use.line) is not None for use in _uses(trajectories))


def _uses(trajectories: Iterable[Trajectory]) -> Iterator[ToolUse]:
    for trajectory in trajectories:
        for step in trajectory.steps:
            for call in step.tool_calls or ():
                yield tool_use(call.function_name, call.arguments)
