"""Atomic transition integrity: does every step build, keep the tests passing, and get committed on its own?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.trajectory.events import FileEdit, RoundActivity, Statement
from pytest_evocode.process.trajectory.words import specific_words

#: Most source files and changed lines in one logical change.
FILES_OF_ONE_CHANGE = 5
LINES_OF_ONE_CHANGE = 300

_SAYS_NOTHING = re.compile(
    r"^\W*(wip|fix(es|ed)?|updates?|changes?|commit|initial( commit)?|misc|stuff|done|final|test(s|ing)?|tmp|temp|work|"
    r"progress|save|checkpoint|more|cleanup|refactor(ing)?|implement(ed|ation)?|add(ed)? (code|files?|changes?))"
    r"( (some|the|all|code|files?|bugs?|stuff|things?|changes?|it|again|more|work|\d+))*\W*$",
    re.IGNORECASE,
)
_ASKS_FOR_COMMITS = re.compile(
    r"(?<!not )(?<!n't )(?<!never )(?<!without )(?<!no )(?<!I )\b"
    r"(?:commit(?:s|ted)? (?:your|each|every|the|all|it|them|this|after|with|to|in|as)|"
    r"(?:make|create|write|with|in|as) (?:\w+ ){0,2}(?:git )?commits?\b|git commit|commit history|please commit)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r";|\band also\b|\bplus\b|, and \w+|(?:^|\s)and (add|fix|remove|update|refactor|change|implement)\b", re.I
)


def atomicity(activity: RoundActivity, build_health: Measure, stability: Measure) -> dict[str, Measure]:
    """Return CH with BH and TS, which take execution."""
    return {"BH": build_health, "TS": stability, "CH": _commit_hygiene(activity)}


def _commit_hygiene(activity: RoundActivity) -> Measure:
    if not any(_ASKS_FOR_COMMITS.search(each) for each in activity.requests or (activity.instruction,)):
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
        score, found = _score(commit, edits, activity)
        scores.append(score)
        evidence.append(found)
    rest = [edit for edit in activity.working_edits if edit.at > begun]
    if rest:  # Counts as a commit without a message.
        scores.append(0.0)
        evidence.append(rest[0].evidence("edits that were never committed"))
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
    if len(re.findall(r"\w+", subject)) < 3 or _SAYS_NOTHING.match(subject):
        return False
    changed = " ".join(
        [activity.instruction, *(edit.path for edit in edits), *(line for edit in edits for hunk in edit.hunks
                                                                for line in (*hunk.added, *hunk.removed))]
    )  # fmt: skip
    return bool(specific_words(subject) & specific_words(changed))


def _is_one_change(message: str, edits: Sequence[FileEdit]) -> bool:
    files = {edit.path for edit in edits if edit.role == "source"}
    lines = sum(len(hunk.added) + len(hunk.removed) for edit in edits if edit.role == "source" for hunk in edit.hunks)
    several = _SEVERAL.search(message.partition("\n")[0])
    return len(files) <= FILES_OF_ONE_CHANGE and lines <= LINES_OF_ONE_CHANGE and not several
