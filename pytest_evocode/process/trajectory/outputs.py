"""The recorded result of each call in a trajectory: its output, its exit code and the files it changed.

And what builds and test runners say in an output: whether the run passed, and which tests did.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, get_args

from pytest_evocode.process.rules import OUTPUTS
from pytest_evocode.process.trajectory.file_texts import ChangeKind, TextChange
from pytest_evocode.trajectories.atif import Step, ToolCall, actions_of

#: Characters kept of the start of an output; four times as many are kept of its end.
_HEAD = 16_384
#: Characters kept of the start and of the end of a line. With longer ones, or long gaps, patterns take minutes.
_LINE = 1000
_GAP = re.compile(r"(?:\n[^\S\n]*){20,}(?=\n)")


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call and its result."""

    call: ToolCall
    output: str
    exit_code: int | None
    """None where it was neither recorded nor printed."""
    timed_out: bool
    tables: tuple[dict[str, Any], ...]
    """The recorded changes, one table for each file; empty where nothing changed or nothing was recorded."""
    commits: tuple[str, ...]
    """The messages of the recorded commits."""
    told: bool = False
    """Whether the agent's program has told the output, so that nothing shows that the command printed it."""

    @property
    def changes(self) -> tuple[TextChange, ...]:
        """The recorded changes in typed form."""
        return tuple(map(_change, self.tables))


def call_results(step: Step) -> Iterator[CallResult]:
    """Yield the calls of a step with their results."""
    calls = step.tool_calls or ()
    results = step.observation.results if step.observation is not None else ()
    outputs = {result.source_call_id: text_of(result.content) for result in results if result.source_call_id}
    loose = [text_of(result.content) for result in results if not result.source_call_id]
    by_call = {action.get("tool_call_id"): action for action in actions_of(step)}
    for number, call in enumerate(calls):
        output = outputs.get(call.tool_call_id)
        if output is None:
            output = loose[number] if len(loose) == len(calls) else (loose[0] if loose and len(calls) == 1 else "")
        action = by_call.get(call.tool_call_id) or {}
        exit_code = action.get("exit_code")
        output, printed = _plain_output(output)
        yield CallResult(
            call,
            _cut(output),
            exit_code if isinstance(exit_code, int) else printed,
            bool(action.get("timed_out")),
            tuple(filter(_is_table, _listed(action.get("changes")))),
            tuple(str(each.get("message", "")) for each in _listed(action.get("commits")) if isinstance(each, dict)),
            told=action.get("told") is True,
        )


def text_of(content: Any) -> str:
    """Return the text of a message or an observation, which may be a list of parts.

    >>> text_of([{"type": "text", "text": "a"}, {"type": "image"}])
    'a'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, Mapping):
        return text_of(content.get("text", content.get("content", "")))
    return ""


def _plain_output(output: str) -> tuple[str, int | None]:
    """Return the text of an output, and its exit code where the tool wraps both in JSON or prints the code."""
    if output.startswith("{"):
        try:
            wrapped = json.loads(output)
        except ValueError:
            wrapped = None
        if isinstance(wrapped, dict) and isinstance(wrapped.get("output", wrapped.get("stdout")), str):
            details = wrapped.get("metadata")
            code = wrapped.get("exit_code", details.get("exit_code") if isinstance(details, dict) else None)
            text = wrapped.get("output", wrapped.get("stdout"))
            return str(text), code if isinstance(code, int) else None
    tagged = OUTPUTS["exit_tag"].search(output) or OUTPUTS["exit_code"].search(output)
    return without_wrapper(output), int(tagged[1]) if tagged else None


def without_wrapper(output: str) -> str:
    r"""Return an output without the lines that a CLI prints around it.

    >>> without_wrapper("Output: 1 passed in 0.1s\nError: (none)\nExit Code: 0")
    '1 passed in 0.1s'
    """
    before = OUTPUTS["before"].match(output)
    begin = before.end() if before else 0
    inner = output[begin:]
    if opened := OUTPUTS["opened"].search(output, 0, begin):
        # The last such tag: what was printed may have the same.
        inner = (inner.rpartition(f"</{opened[1]}>")[0] or inner).removesuffix("\n")
    return OUTPUTS["behind"].sub("", inner)


def _cut(output: str) -> str:
    return output if len(output) <= 5 * _HEAD else f"{output[:_HEAD]}\n...\n{output[-4 * _HEAD :]}"


def in_short_lines(output: str) -> str:
    """Return an output with gaps and the middle of long lines left out, so that patterns are searched for in time."""
    lines = _GAP.sub("\n", output).split("\n")
    return "\n".join(line if len(line) <= 2 * _LINE else f"{line[:_LINE]} ... {line[-_LINE:]}" for line in lines)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_table(each: Any) -> bool:
    return isinstance(each, dict) and each.get("kind") in get_args(ChangeKind) and isinstance(each.get("path"), str)


def _change(table: Mapping[str, Any]) -> TextChange:
    diff, digest = table.get("diff"), table.get("sha256")
    return TextChange(
        path=table["path"],
        kind=table["kind"],
        diff=diff if isinstance(diff, str) and diff else None,
        content=None if diff else _content(table),
        sha256=digest if isinstance(digest, str) else None,
    )


def _content(table: Mapping[str, Any]) -> str | None:
    """Return the recorded content as text; None for binary content."""
    # An added file without a line has an empty diff.
    if table.get("diff") == "" and table["kind"] == "added":
        return ""
    try:
        return base64.b64decode(table["content"], validate=True).decode("utf-8")
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None


@dataclass(frozen=True, slots=True)
class RunnerOutcome:
    """What the output of a test run says."""

    passed: bool | None
    """Whether the run passed; None where the output does not say."""
    tests: Mapping[str, bool] = field(default_factory=dict)
    """Whether each test passed, for the tests that the output names."""
    empty: bool = False
    """Whether the output says that there was no test to run."""


@functools.lru_cache(maxsize=8)  # It is asked several times of the output of one call.
def read_runner_output(output: str) -> RunnerOutcome:
    r"""Read what a test runner has printed.

    >>> read_runner_output("FAILED test_a.py::test_b - assert 1 == 2\n=== 1 failed, 3 passed in 0.10s ===")
    RunnerOutcome(passed=False, tests={'test_a.py::test_b': False}, empty=False)
    """
    output = without_escapes(output)
    tests: dict[str, bool] = {}
    for match in chain.from_iterable(each.finditer(output) for each in OUTPUTS.series["single"]):
        name, verdict = OUTPUTS["took"].sub("", match["name"].strip()), match["verdict"]
        if verdict not in OUTPUTS.words["skipped_marks"]:
            tests[name] = verdict in OUTPUTS.words["passed_marks"]
    found = _summaries(output)
    passed, failed = _totals(found)
    if passed or failed:
        return RunnerOutcome(failed == 0, tests)
    if tests:
        return RunnerOutcome(all(tests.values()), tests)
    if OUTPUTS.find(output, "broken_suite"):
        return RunnerOutcome(False)
    return RunnerOutcome(None, empty=bool(found) or OUTPUTS.find(output, "no_tests"))


def broken_off(output: str) -> tuple[str, ...]:
    r"""Return the tests that ended with an error other than one of their assertions, where the output tells.

    >>> broken_off("test_x (a.T.test_x) ... ERROR\ntest_y (a.T.test_y) ... FAIL\nFAILED a.py::test_z - KeyError: 1")
    ('test_x (a.T.test_x)', 'a.py::test_z')
    """
    matches = chain.from_iterable(each.finditer(without_escapes(output)) for each in OUTPUTS.series["broken_off"])
    return tuple(match["name"].strip() for match in matches)


#: The rules for the last words of a build or of tests whose runner is not known, or of what called them.
_LAST_WORDS = {"build": ("broken_build", "done_build"), "test": ("failed_tests", "passed_tests")}


def passed_by_last_words(purpose: Literal["build", "test"], output: str) -> bool | None:
    r"""Return whether a build or tests passed by what was printed; None where that does not say.

    >>> passed_by_last_words("build", "make: *** [a.o] Error 1"), passed_by_last_words("test", "BUILD SUCCESSFUL in 3s")
    (False, True)
    """
    failed, passed = _LAST_WORDS[purpose]
    output = without_escapes(output)
    return False if OUTPUTS.find(output, failed) else OUTPUTS.find(output, passed) or None


def _totals(summaries: Iterable[re.Match[str]]) -> tuple[int, int]:
    """Return the numbers of passed and failed tests, over all suites that were summed up."""
    passed = failed = 0
    for match in summaries:
        groups = {name: text for name, text in match.groupdict().items() if text}
        number = Counter({name: int(text) if text.isdigit() else 1 for name, text in groups.items()})
        for count, what in OUTPUTS["count"].findall(groups.get("line", "")):
            number["passed" if what == "passed" else "failed"] += int(count)
        broken = max(number["failed"] + number["errors"], number["broken"])
        failed += broken
        passed += number["passed"] or max(0, number["ran"] - broken - number["left_out"])
    return passed, failed


def _summaries(output: str) -> list[re.Match[str]]:
    """Return where the first runner that sums up its tests in an output does so."""
    found = (list(each.finditer(output)) for each in OUTPUTS.series["summary"])
    return next(filter(None, found), [])


def summaries_in(output: str) -> tuple[str, ...]:
    r"""Return what a runner of tests has printed to sum up; empty where no test was run.

    >>> summaries_in("building\n== 3 passed in 0.10s =="), summaries_in("3 tests collected in 0.01s")
    (('== 3 passed in 0.10s ==',), ())
    """
    output = without_escapes(output)
    if any(_totals(found := _summaries(output))):
        return tuple(match[0] for match in found)
    plan = OUTPUTS["tap_plan"].search(output)
    return (plan[0],) if plan and read_runner_output(output).tests else ()


def without_escapes(output: str) -> str:
    """Return an output without colours."""
    return OUTPUTS["escapes"].sub("", output)
