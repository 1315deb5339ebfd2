"""Exploration efficiency: what share of the files that the agent read or changed did it change?"""

from __future__ import annotations

import posixpath
import re

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.tests_written import WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.normal_forms import normal_form


def exploration(activity: RoundActivity, roles: FileRoles, tests: WrittenTests) -> dict[str, Measure]:
    """Return EE = modified / (read + modified), of distinct files.

    Files without use for the task do not count as modified: prose that the request does not ask for, test files in
    which nothing can fail, new files that nothing imports or names, and files in which only comments, or names that
    nothing uses, differ in the end. Files outside the project count as neither.
    """
    read = dict.fromkeys(each.path for each in activity.reads if not each.path.startswith(("/", "~", "../")))
    verifying = tests.verifying_paths
    modified = [path for path in activity.before if _counts(path, activity, roles, verifying)]
    if not read and not modified:
        return {"EE": not_measured("no file was read or changed")}
    evidence = (
        Evidence(what=f"{len(modified)} files modified", quote=quoted(", ".join(modified))),
        Evidence(what=f"{len(read)} files read", quote=quoted(", ".join(read))),
    )
    value = len(modified) / (len(read) + len(modified))
    return {"EE": measured(value, f"{len(modified)} modified, {len(read)} read", evidence)}


def _counts(path: str, activity: RoundActivity, roles: FileRoles, verifying: set[str]) -> bool:
    before, after = activity.before[path], activity.after[path]
    idle = activity.idle.get(path, frozenset())
    if path not in activity.lost and _form(path, before, idle) == _form(path, after, idle):
        return False
    role = roles.of(path, after or before)
    if role == "tests":
        return path in verifying or posixpath.basename(path) == "conftest.py"
    if role == "prose":
        return re.search(rf"(?<![\w.]){re.escape(posixpath.basename(path))}\b", activity.instruction) is not None
    return role == "source" and activity.is_used(path)


def _form(path: str, text: str | None, idle: frozenset[str]) -> str | None:
    return None if text is None else normal_form(path, text, idle)
