"""Atomic transition integrity: does every step build, keep the tests passing, and get committed on its own?

And exploration efficiency: what share of the files that the agent read or changed did it change?
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.messages import is_english, specific_words
from pytest_evocode.process.rules import PLANS
from pytest_evocode.process.tests_written.code_elements import WrittenTests
from pytest_evocode.process.trajectory.events import FileEdit, RoundActivity, Statement
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.normal_forms import normal_form

#: Most source files and changed lines in one logical change.
FILES_OF_ONE_CHANGE = 5
LINES_OF_ONE_CHANGE = 300


def atomicity(activity: RoundActivity, build_health: Measure, stability: Measure) -> dict[str, Measure]:
    """Return CH with BH and TS, which take execution."""
    return {"BH": build_health, "TS": stability, "CH": _commit_hygiene(activity)}


def _commit_hygiene(activity: RoundActivity) -> Measure:
    if not any(PLANS.find(each, "asks_for_commits") for each in activity.requests or (activity.instruction,)):
        return not_measured("the task does not ask for commits")
    if not activity.commits and activity.refused_by_git:
        return not_measured("git says that the agent has no repository to commit to")
    if not activity.commits:
        return measured(0.0, "the task asks for commits, and nothing was committed")
    scores = []
    evidence = []
    begun = 0
    for commit in activity.commits:
        edits = [edit for edit in activity.working_edits if begun < edit.at <= commit.at]
        begun = commit.at
        if not commit.text.isascii() and not is_english(commit.text):
            continue
        score, found = _score(commit, edits, activity)
        scores.append(score)
        evidence.append(found)
    rest = [edit for edit in activity.working_edits if edit.at > begun]
    if rest:  # Counts as a commit without a message.
        scores.append(0.0)
        evidence.append(rest[0].evidence("edits that were never committed"))
    if not scores:
        return not_measured("the messages of the commits are not in English, which is all that the rules read")
    reason = f"{len(activity.commits)} commits: half for one logical change, half for a message that says what"
    return measured(sum(scores) / len(scores), reason, tuple(evidence))


def _score(commit: Statement, edits: Sequence[FileEdit], activity: RoundActivity) -> tuple[float, Evidence]:
    if not edits:
        return 0.0, commit.evidence("a commit without an edit of the product")
    says = _says_what(commit.text, edits, activity)
    one = _is_one_change(commit.text, edits)
    extent = "one logical change" if one else "several changes"
    words = "a message that says what" if says else "a message that does not say what"
    return 0.5 * says + 0.5 * one, commit.evidence(f"{extent}, {words}")


def _says_what(message: str, edits: Sequence[FileEdit], activity: RoundActivity) -> bool:
    """Return whether the subject has three words or more, does not fit just any commit, and is about the change."""
    subject = message.partition("\n")[0]
    if len(re.findall(r"\w+", subject)) < 3 or PLANS["says_nothing"].match(subject):
        return False
    changed = " ".join(
        [activity.instruction, *(edit.path for edit in edits), *(line for edit in edits for hunk in edit.hunks
                                                                for line in (*hunk.added, *hunk.removed))]
    )  # fmt: skip
    return bool(specific_words(subject) & specific_words(changed))


def _is_one_change(message: str, edits: Sequence[FileEdit]) -> bool:
    files = {edit.path for edit in edits if edit.role == "source"}
    lines = sum(len(hunk.added) + len(hunk.removed) for edit in edits if edit.role == "source" for hunk in edit.hunks)
    several = PLANS["several"].search(message.partition("\n")[0])
    return len(files) <= FILES_OF_ONE_CHANGE and lines <= LINES_OF_ONE_CHANGE and not several


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
