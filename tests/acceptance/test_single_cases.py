"""``--evocode-case``: some cases of a round's suite for their author, which is no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = pytest.mark.turns(3)

ROUND_2 = "tasks/a/task.toml::oracle::round-2"
TESTS = """import pytest

@pytest.mark.parametrize("word", ["good", "bad"])
def test_word(word):
    print("looking at", word)
    assert word == "good"

def test_other():
    pass
"""


def test_only_the_cases_asked_for_run_and_nothing_is_recorded(write_native: WriteNative, run_tasks: RunTasks) -> None:
    write_native("a", 2, test={2: TESTS})
    session = run_tasks("--evocode-case=test_word*", "--json-report", ROUND_2)
    assert session.outcomes == {"passed": 1, "failed": 1}
    session.has(
        "evocode: cases test_word* only: no verdict, and nothing is recorded",
        "no verdict, only cases called test_word[*] were run: round-2 failed: 1 of 2 cases failed*",
        "*round-2/test_line_2.py::test_word[[]bad]*",
        "*looking at bad*",
        f"{ROUND_2}: no verdict: 1 of 2 cases called test_word[*] passed",
        "nothing was recorded; leave out --evocode-case for a verdict",
    )
    session.lacks("*Dataset Score*")
    session.lacks("*suite output: *")
    assert not session.results.exists()
    report = session.json_report()
    assert "evocode" not in report
    properties = [names for test in report["tests"] for each in test.get("user_properties", []) for names in each]
    assert properties == ["evocode_case"]


def test_a_pattern_that_no_case_is_called_like_names_those_near(write_native: WriteNative, run_tasks: RunTasks) -> None:
    write_native("a", 1, test={1: TESTS})
    session = run_tasks("--evocode-case=test_wrod*", "tasks")
    assert session.outcomes == {"errors": 1}
    session.has("*no case of round-1 is called test_wrod[*]; near are test_word, *")


def test_a_script_suite_has_no_single_cases(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-case=has-line-1", "tasks")
    assert session.outcomes == {"errors": 1}
    session.has("*--evocode-case picks cases of native suites, and a test.sh, as round-1 has, runs as a whole; leave *")


@pytest.mark.parametrize(
    ("arguments", "agent", "says"),
    [
        (("--evocode-pin",), None, "leave out --evocode-pin"),
        (("--evocode-check",), None, "leave out --evocode-check"),
        (("--evocode-resume=x",), "oracle", "leave out --evocode-resume"),
        (("--evocode-fail-under=0",), "oracle", "leave out --evocode-fail-under"),
        (("--evocode-shard=1/2",), "oracle", "leave out --evocode-shard"),
        (("--evocode-snapshots",), "oracle", "leave out --evocode-snapshots"),
        (("--evocode-process",), "oracle", "leave out --evocode-process"),
        ((), "openai/gpt-5", "takes no agent that may cost something, such as openai/gpt-5"),
    ],
)
@pytest.mark.matrix
def test_what_needs_verdicts_is_refused_beside_it(
    run_tasks: RunTasks, arguments: tuple[str, ...], agent: str | None, says: str
) -> None:
    session = run_tasks("--evocode-case=test_word", *arguments, agent=agent)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert says in session.text
