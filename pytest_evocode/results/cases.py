"""Cases as suites tell them: what their statuses are called, how many there may be, and lines about them on stdout."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pytest_evocode.errors import VerifierFault
from pytest_evocode.results.records import Case, CaseStatus

#: Cases that one suite may report. A program under test may get to write where they are read.
MOST_CASES = 10_000
#: Characters that the texts of all cases of a suite may take as JSON, which escapes some characters by six.
MOST_CHARACTERS = 4 * 2**20
#: Characters of one text of a case; the middle of a longer one is left out.
LONGEST_TEXT = 4 * 2**10

_WORDS: dict[CaseStatus, tuple[str, ...]] = {
    "passed": ("success", "pass", "passed", "ok", "succeeded", "successful", "xpassed"),
    "failed": ("fail", "failed", "failure", "failing", "nok"),
    "skipped": ("skipped", "skip", "ignored", "disabled", "pending", "todo", "xfailed", "notrun", "suppressed"),
    "error": ("error", "errored", "other"),
}
_STATUSES = {word: status for status, words in _WORDS.items() for word in words}
"""What suites call the statuses of cases, in small letters."""
#: The names that ``CASE_RESULT`` lines have for the fields of a case.
_DESCRIPTIONS = {
    "origin": "origin_step", "requirement": "requirement_ref", "kind": "case_type", "intent": "intent",
    "scenario": "scenario", "input": "input", "expected": "expected", "actual": "actual",
}  # fmt: skip
_RESULT_LINE = re.compile(r"^CASE_RESULT (?P<fields>.*)$", re.MULTILINE)
_SHOWN_LINE, _SHOWN_WORD = 200, 60  # characters
_SUMMARY_LINE = re.compile(r"^CASE_SUMMARY (?P<fields>.*)$", re.MULTILINE)
_TOTALS = re.compile(r"CASE_SUMMARY total_cases=\d+ success_count=\d+ fail_count=\d+")
# The word boundary and the possessive quantifiers keep the time linear in the line, whatever a program printed there.
_FIELD = re.compile(r'\b(\w++)=(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|(\S*+))')
_ESCAPE = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\(.)")
GAP = "\n[...]\n"
"""What stands for the middle of a text that was too long."""
_TOTAL = re.compile(r"[0-9]{1,9}")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def parse_case_lines(output: str, *, refuse_wrong: bool = False) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases of the ``CASE_RESULT`` lines in a suite's output, and what ``CASE_SUMMARY`` says otherwise.

    Of several lines about one case, the first that is no pass counts, else the first: a line of a program's is worth
    nothing beside that of the suite.

    Args:
        output: All that the suite has printed.
        refuse_wrong: Refuse a status that is not known, which is an error of the case otherwise, a case without a name,
            and more cases than the last ``CASE_SUMMARY`` says that there are.

    Raises:
        VerifierFault: There are more cases, or longer ones, than a suite may report, or some are refused.
    """

    def read() -> Iterator[Case]:
        for match in _RESULT_LINE.finditer(output):
            line = dict(_fields(match["fields"]))
            if refuse_wrong and (status_of(line.get("status")) is None or not line.get("case_id")):
                raise _wrong_line(output.count("\n", 0, match.start()) + 1, match[0], line)
            yield as_case(line, id=line.get("case_id"), status=line.get("status"), reason=line.get("failure_reason"))

    cases = bounded(read(), "the output")
    flags = []
    summaries = deque(_SUMMARY_LINE.finditer(output), maxlen=1)
    if summaries:
        summary = dict(_fields(summaries[0]["fields"]))
        counted = {
            "total_cases": len(cases),
            "success_count": sum(case.status == "passed" for case in cases),
            "fail_count": sum(case.failing for case in cases),
        }
        flags = [
            f"CASE_SUMMARY says {name}={_text(summary[name])}, its CASE_RESULT lines give {count}"
            for name, count in counted.items()
            if name in summary and summary[name] != str(count)
        ]
        if refuse_wrong:
            _require_total(_one_per_id(cases), summary.get("total_cases", ""))
    return _one_per_id(cases), tuple(flags)


def status_of(word: Any) -> CaseStatus | None:
    """Return the status that a suite means by a word, None where the word is not known."""
    return _STATUSES.get(_text(word).lower())


def _wrong_line(number: int, line: str, fields: Mapping[str, str]) -> VerifierFault:
    known = "; ".join(f"{status}: {', '.join(words)}" for status, words in _WORDS.items())
    advice = f"status= and one of these words ({known}); capitals do not matter"
    word = fields.get("status")
    what = f"the status {word[:_SHOWN_WORD]!r}, which is none that a case can have" if word else "no status"
    if status_of(word) is not None:
        what, advice = "no case_id", "case_id= and the case's name, another one for each case"
    shown = line if len(line) <= _SHOWN_LINE else f"{line[:_SHOWN_LINE]}..."
    return VerifierFault(f"line {number} of the suite's output has {what}: {shown}\nHave test.sh write {advice}.")


def _require_total(cases: Sequence[Case], total: str) -> None:
    if _TOTAL.fullmatch(total) and len(cases) > int(total):
        raise VerifierFault(
            f"the output has {len(cases)} cases and ends with CASE_SUMMARY total_cases={total}, so something else than "
            "the suite may have written some: have test.sh keep stdout and stderr of the program under test to itself"
        )


def require_pinned(cases: Iterable[Case], pinned: Mapping[str, str] | None) -> None:
    """Refuse passed cases that the reference solution does not have; ``pinned`` are its cases, None where not known.

    Raises:
        VerifierFault: There are some.
    """
    if pinned is None:
        return
    if more := sorted({case.id for case in cases if case.status == "passed" and case.id not in pinned}):
        shown = ", ".join(id[:60] for id in more[:3])
        raise VerifierFault(
            f"the suite reports {len(more)} passed cases that evocode.lock does not list ({shown}), so something else "
            "than the suite may have written them: have test.sh keep stdout and stderr of the program under test to "
            "itself, or pin the suite again with --evocode-pin"
        )


def bounded(cases: Iterable[Case], where: str, *, shorten: bool = False) -> tuple[Case, ...]:
    """Return the cases; raises VerifierFault for more than a suite may report, before all of them are read.

    Args:
        cases: What a suite reports.
        where: Where it does so, for the message.
        shorten: Leave out the texts of cases for which there is no room: what a program printed, where nobody but the
            suite can have written the report, is no flood, however long it is.
    """
    kept: list[Case] = []
    left = room = MOST_CHARACTERS
    for case in cases:
        size = _size(case)
        if shorten and size > room:
            case = case.model_copy(update=_TEXTS_LEFT_OUT)
            left -= _size(case)
        elif shorten:
            room -= size
        else:
            left -= size
        if len(kept) == MOST_CASES or left < 0:
            what = f"{MOST_CASES} cases" if left >= 0 else f"{MOST_CHARACTERS} characters of cases"
            raise VerifierFault(
                f"{where} has more than {what}, which no suite needs: it is flooded, perhaps by the program under "
                "test; have test.sh keep stdout and stderr of that to itself"
            )
        kept.append(case)
    return tuple(kept)


_TEXTS_LEFT_OUT = {"input": "", "expected": "", "actual": "", "reason": "", "scenario": "(left out: too long)"}


def _size(case: Case) -> int:
    return len(json.dumps(case.model_dump(exclude_defaults=True)))


def _one_per_id(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cases without those whose id another one has that counts."""
    kept: dict[str, Case] = {}
    for case in cases:
        if kept.setdefault(case.id, case).status == "passed" and case.status != "passed":
            kept[case.id] = case
    return tuple(kept.values())


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for match in _FIELD.finditer(text):
        name, quoted, bare = match.groups()
        yield name, bare if quoted is None else _ESCAPE.sub(_unescape, quoted)


def _unescape(match: re.Match[str]) -> str:
    """Return what an escape of JSON stands for; a backslash before anything else stands for itself."""
    if match[1]:
        # Decoded together, because a pair of surrogates is one character, and half a pair is none.
        return bytes.fromhex(match[1].replace("\\u", "")).decode("utf-16-be", "replace")
    return _ESCAPED.get(match[2], match[0])


def as_case(fields: Mapping[str, Any], *, id: Any, status: Any, reason: Any) -> Case:
    """Return a case with the descriptions that ``CASE_RESULT`` lines and CTRF's ``extra`` give under the same names.

    A status that is not known is an error.
    """
    texts: dict[str, Any] = {name: _text(fields.get(key)) for name, key in _DESCRIPTIONS.items()}
    known = status_of(status)
    reason = reason or ("" if known else f"its status is {_text(status)[:_SHOWN_WORD]!r}, which is none that is known")
    return Case(id=_text(id), status=known or "error", reason=_text(_missing_fixture(str(reason))), **texts)


_NO_FIXTURE = re.compile(r"^E +(fixture '([^'\n]{1,200})' not found)\n> +available fixtures: (.*)$", re.MULTILINE)
_MOST_NAMES = 200
_ASKS = re.compile(r"\bfile ([^\n\"]{1,400}), line (\d{1,9})$")
_DEFINES = re.compile(r"\s*(?:async )?def (\w+)")


def _missing_fixture(reason: str) -> str:
    r"""Return a reason, in one line where it is pytest's page about a fixture that there is not.

    >>> page = "E  fixture 'shp' not found\n>  available fixtures: cache, shop\n>  use 'pytest --fixtures'"
    >>> _missing_fixture("file /tests/test_a.py, line 3\n  def test_x(shp):\n" + page)
    "fixture 'shp' not found, used by test_x, /tests/test_a.py:3; known: shop"
    """
    if (found := _NO_FIXTURE.search(reason)) is None:
        return reason
    before = reason[: found.start()].splitlines()
    places = [place for line in before if (place := _ASKS.search(line))]
    users = [user[1] for line in before if (user := _DEFINES.match(line))]
    used = f", used by {users[0]}" if users else ""
    where = f", {places[-1][1]}:{places[-1][2]}" if places else ""
    near = get_close_matches(found[2], found[3].split(", ")[:_MOST_NAMES])
    return f"{found[1]}{used}{where}" + (f"; known: {', '.join(near)}" if near else "")


def _text(value: Any) -> str:
    """Return a value as text that UTF-8 can encode, without the middle where it is long.

    Each half of a surrogate pair that JSON held becomes a ``?``.
    """
    text = "" if value is None else str(value)
    return without_middle(text, LONGEST_TEXT).encode("utf-8", "replace").decode()


def without_middle(text: str, longest: int) -> str:
    r"""Return a text, or its beginning and its end where it is longer than so many characters.

    >>> without_middle("0123456789" * 2, 17)
    '0\n[...]\n23456789'
    """
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2 - len(GAP)]}{GAP}{text[len(text) - longest // 2 :]}"


def with_summary(output: str, cases: Sequence[Case]) -> str:
    r"""Return a suite's output with a last line of totals, which EvoCode-Bench's scripts look for, unless it has one.

    >>> with_summary("1 passed", [Case(id="x", status="passed"), Case(id="y", status="error")])
    '1 passed\nCASE_SUMMARY total_cases=2 success_count=1 fail_count=1\n'
    """
    if not cases or _TOTALS.search(output):
        return output
    passed, failed = sum(case.status == "passed" for case in cases), sum(case.failing for case in cases)
    line = f"CASE_SUMMARY total_cases={len(cases)} success_count={passed} fail_count={failed}\n"
    return f"{output}{line}" if not output or output.endswith("\n") else f"{output}\n{line}"
