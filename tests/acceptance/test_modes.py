"""``--evocode-mode`` and ``--evocode-from``: every number equals one that was worked out by hand."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.cli import main
from tests import failing_agent
from tests.acceptance.tasks import suite_up_to
from tests.failing_agent import turns

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

#: What the two attempts at each task fail. The suites of a want the lines of all rounds so far, those of b their own.
FAILS = {"a": [{2}, {3}], "b": [{3}, {1, 2}]}
WORKERS = pytest.mark.parametrize("workers", ["", pytest.param("-n2", marks=pytest.mark.slow)])


def own_line(index: int) -> str:
    """A suite of one case: the round's own line."""
    return suite_up_to(index).replace(f"$(seq {index})", str(index))


@pytest.fixture(autouse=True)
def tasks(pytester: pytest.Pytester, write_task: WriteTask) -> None:
    """Two tasks, of three and of four rounds, and the agent."""
    pytester.makeconftest(inspect.getsource(failing_agent) + f"\nFAILS = {FAILS}\n")
    write_task("a", 3)
    write_task("b", 4, test={index: own_line(index) for index in range(1, 5)})


@pytest.fixture
def run_tasks(run_tasks: RunTasks) -> RunTasks:
    """As usual, with that agent."""
    return functools.partial(run_tasks, agent=failing_agent.NAME, replay=False)


def row(session: Session) -> dict[str, Any]:
    """What ``evocode results --json`` says of the agent."""
    (found,) = rows(session)
    return found


def rows(session: Session) -> list[dict[str, Any]]:
    """The same of all modes."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main(["results", str(session.results), "--json"])
    assert not ended.value.code
    found: list[dict[str, Any]] = json.loads(out.getvalue())["rows"]
    return found


def marks(session: Session, task: str, number: int = 1) -> str:
    """The outcomes of an attempt's rounds, as the summary marks them."""
    letters = {"passed": ".", "failed": "F", "error": "E", "not reached": "-"}
    record = session.record(task, failing_agent.NAME, number)
    return "".join(letters[round_.outcome] for round_ in record.rounds)


@pytest.mark.nightly
def test_a_chain_runs_all_its_rounds(run_tasks: RunTasks) -> None:
    session = run_tasks("tasks")
    # a lacks line-2 from round 2 on; each round of b is judged by its own line.
    assert (marks(session, "a"), marks(session, "b")) == (".FF", "..F.")
    assert session.outcomes == {"passed": 4, "failed": 3}
    # Dataset Score (1/3 + 3/4) / 2; Case Score: a (1 + 1/2 + 2/3) / 3, b (1 + 1 + 0 + 1) / 4.
    session.has("agent *Dataset Score *Case Score *", "failing *54.2 *73.6 *")
    found = row(session)
    assert (found["name"], found["mode"], found["from_round"]) == ("failing", "chain", None)
    assert found["scores"]["dataset_score"] == pytest.approx(100 * 13 / 24)
    assert session.run.scores["failing"]["dataset_score"] == pytest.approx(100 * 13 / 24)
    assert (session.run.mode, session.record("a", "failing").mode) == ("chain", "chain")
    session.lacks("evocode: mode *")


@pytest.mark.nightly
@WORKERS
def test_with_fail_stop_the_first_failed_round_ends_an_attempt(
    run_tasks: RunTasks, pytester: pytest.Pytester, workers: str
) -> None:
    session = run_tasks(*filter(None, [workers]), "-rs", "--evocode-mode=fail-stop", "--evocode-attempts=2", "tasks")
    assert sorted(marks(session, "a", number) for number in (1, 2)) == ["..F", ".F-"]
    assert sorted(marks(session, "b", number) for number in (1, 2)) == ["..F-", "F---"]
    assert session.outcomes == {"passed": 5, "failed": 4, "skipped": 5}
    session.has("*not reached: round-2 did not pass, which ends the attempt (fail-stop)*")
    assert turns(pytester.path, "b") == [[1], [1], [1, 2], [1, 2, 3]]  # Nobody asked for more.
    # Dataset Score: a (1/3 + 2/3) / 2, b (2/4 + 0) / 2. MT@2: a passes rounds 1 and 2 in some attempt, b 1 and 2:
    # (2/3 + 2/4) / 2. Case Score: a (1 + 1/2 + 0 and 1 + 1 + 2/3) / 6, b (1 + 1 + 0 + 0 and 0) / 8.
    session.has(
        "evocode: mode fail-stop: the first round that does not pass ends its attempt",
        "agent *Dataset Score  MT@k  k  Case Score *",
        "failing (fail-stop) *37.5  58.3  2 *47.2 *",
    )
    found = row(session)
    assert (found["name"], found["mode"]) == ("failing (fail-stop)", "fail-stop")
    assert found["scores"]["dataset_score"] == pytest.approx(37.5)
    assert found["scores"]["mt_at_k"] == pytest.approx(100 * 7 / 12)
    assert found["scores"]["attempts"] == 2
    assert found["scores"]["final_round_completion"] == 0
    assert session.run.scores["failing"]["mt_at_k"] == pytest.approx(100 * 7 / 12)
    assert {session.run.mode, session.record("b", "failing", 2).mode} == {"fail-stop"}


@pytest.mark.parametrize(
    ("least", "status", "line"),
    [(57, 0, "reached with an SR of 57.1"), (58, 1, "not reached with an SR of 57.1")],
)
@pytest.mark.matrix
def test_single_rounds_begin_where_the_solutions_lead_and_are_held_against_their_sr(
    run_tasks: RunTasks, pytester: pytest.Pytester, least: int, status: int, line: str
) -> None:
    for task in ("a", "b"):  # The second attempt: a passes 2 of 3, b 2 of 4.
        for index in range(1, 5):
            (pytester.path / f"attempt-{task}-{index}-0").touch()
    session = run_tasks("--evocode-mode=single-round", f"--evocode-fail-under={least}", "tasks")
    assert session.exit_status == status
    session.has(f"--evocode-fail-under={least}: {line}")
    # Whoever fails round 1 or 2 does not carry that into the next one, and nobody remembers another round.
    assert (marks(session, "a"), marks(session, "b")) == ("..F", "FF..")
    assert session.outcomes == {"passed": 4, "failed": 3}
    assert turns(pytester.path, "b") == [[1], [2], [3], [4]]
    session.has(
        "evocode: mode single-round: each round starts from what the reference solutions of the earlier rounds lead to",
        "agent *SR  SR macro  k *",
        "failing (single-round)  57.1 *58.3  1 *",
    )
    session.lacks("*Dataset Score*")
    found = row(session)
    assert (found["name"], found["mode"]) == ("failing (single-round)", "single-round")
    assert found["scores"]["sr"] == pytest.approx(100 * 4 / 7)
    assert found["scores"]["sr_macro"] == pytest.approx(100 * 7 / 12)
    assert found["scores"]["dataset_score"] is None
    assert session.run.scores["failing"]["sr"] == pytest.approx(100 * 4 / 7)
    record = session.record("b", "failing")
    assert (record.mode, record.from_round, len(record.rounds)) == ("single-round", None, 4)


@pytest.mark.slow
@pytest.mark.nightly
@WORKERS
def test_several_attempts_at_single_rounds_count_on_average(
    run_tasks: RunTasks, pytester: pytest.Pytester, workers: str
) -> None:
    session = run_tasks(*filter(None, [workers]), "--evocode-mode=single-round", "--evocode-attempts=2", "tasks")
    # Whoever fails round 2 does not carry that into round 3.
    assert sorted(marks(session, "a", number) for number in (1, 2)) == ["..F", ".F."]
    assert sum(marks(session, "b", number).count(".") for number in (1, 2)) == 5
    assert session.outcomes == {"passed": 9, "failed": 5}
    # Nobody remembers another round.
    assert turns(pytester.path, "a") == [[1], [1], [2], [2], [3], [3]]
    # SR: a passes 2 of 3 rounds in both attempts, b 3 of 4 and 2 of 4: (2 + 2.5) / 7 rounds. By task: (2/3 + 5/8) / 2.
    session.has(
        "evocode: mode single-round: each round starts from what the reference solutions of the earlier rounds lead to",
        "agent *SR  SR macro  k *",
        "failing (single-round)  64.3 *64.6  2 *",
    )
    session.lacks("*Dataset Score*")
    found = row(session)
    assert (found["name"], found["mode"]) == ("failing (single-round)", "single-round")
    assert found["scores"]["sr"] == pytest.approx(100 * 4.5 / 7)
    assert found["scores"]["sr_macro"] == pytest.approx(100 * 31 / 48)
    assert found["scores"]["dataset_score"] is None
    assert session.run.scores["failing"]["sr"] == pytest.approx(100 * 4.5 / 7)
    record = session.record("b", "failing", 2)
    assert (record.mode, record.from_round, len(record.rounds)) == ("single-round", None, 4)
    assert session.run.attempts == tuple(dict.fromkeys(session.run.attempts))
    assert len(session.run.attempts) == 4


@pytest.mark.slow
@pytest.mark.nightly
def test_sr_and_gap_come_together_in_one_directory(run_tasks: RunTasks) -> None:
    run_tasks("--evocode-mode=fail-stop", "tasks")
    stop, single = rows(run_tasks("--evocode-mode=single-round", "tasks"))
    assert (stop["name"], single["name"]) == ("failing (fail-stop)", "failing (single-round)")
    # Fail-stop: a 1/3, b 2/4. Single rounds: the second attempt at round 1, so a 2 of 3 and b 2 of 4; but the first at
    # all others, which makes that a .F. and b F.F. in all.
    assert stop["scores"]["mt_at_k"] == pytest.approx(100 * 5 / 12)
    assert single["scores"]["sr"] == stop["scores"]["sr"] == pytest.approx(100 * 4 / 7)
    assert stop["scores"]["gap"] == pytest.approx(100 * (4 / 7 - 5 / 12))


@WORKERS
@pytest.mark.matrix
def test_a_chain_from_a_later_round_counts_from_there(
    run_tasks: RunTasks, pytester: pytest.Pytester, workers: str
) -> None:
    session = run_tasks(*filter(None, [workers]), "--evocode-from=round-2", "tasks")
    assert (marks(session, "a"), marks(session, "b")) == ("FF", ".F.")
    # Dataset Score: a 0 of 2, b 2 of 3. Case Score: a (1/2 + 2/3) / 2, b (1 + 0 + 1) / 3.
    session.has(
        "evocode: mode from round-2: "
        "round-2 starts from what the reference solutions of the earlier rounds lead to, *not count",
        "agent *Dataset Score *Case Score *",
        "failing (from round-2) *33.3 *62.5 *",
    )
    session.lacks("*Not all rounds were selected*")
    assert turns(pytester.path, "b") == [[2], [2, 3], [2, 3, 4]]
    found = row(session)
    assert (found["name"], found["from_round"]) == ("failing (from round-2)", "round-2")
    assert found["scores"]["dataset_score"] == pytest.approx(100 / 3)
    assert found["scores"]["rounds"] == 5
    assert session.run.scores["failing"]["dataset_score"] == pytest.approx(100 / 3)
    assert session.run.from_round == session.record("a", "failing").from_round == "round-2"
    assert session.record("b", "failing").rewards == {"reward": pytest.approx(2 / 3)}
    if not workers:
        assert session.outcomes == {"passed": 2, "failed": 3, "deselected": 2}


def test_a_chain_from_a_later_round_may_be_fail_stop_and_reports_name_that_mode(run_tasks: RunTasks) -> None:
    session = run_tasks("--evocode-from=round-2", "--evocode-mode=fail-stop", "--json-report", "tasks")
    assert (marks(session, "a"), marks(session, "b")) == ("F-", ".F-")
    # (0/2 + 1/3) / 2
    session.has("evocode: mode fail-stop, from round-2: *", "failing (fail-stop, from round-2) *16.7  16.7  1 *")
    assert row(session)["scores"]["mt_at_k"] == pytest.approx(100 / 6)
    for test in session.json_report()["tests"]:
        assert {"evocode_mode": "fail-stop, from round-2"} in test["user_properties"]


def test_a_single_round_is_run_without_the_others(run_tasks: RunTasks, pytester: pytest.Pytester) -> None:
    session = run_tasks("--evocode-mode=single-round", "tasks/a/task.toml::failing::round-3")
    assert session.outcomes == {"passed": 1}
    assert turns(pytester.path) == [[3]]
    # What was left out does not count.
    session.has("failing (single-round) †  100.0 *", "† Not all rounds were selected, only these count: a round-3")
    assert row(session)["scores"]["sr"] == 100.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--evocode-mode=single-round", "--evocode-from=round-2"], "*--evocode-from is about chains*select rounds*"),
        (["--evocode-check", "--evocode-mode=fail-stop"], "*leave out --evocode-mode*"),
        (["--evocode-mode=single-round", "--evocode-speculate"], "*--evocode-speculate is about chains*"),
        (["--evocode-check", "--evocode-speculate"], "*leave out --evocode-speculate*"),
        (["--evocode-check", "--evocode-from=round-2"], "*leave out --evocode-from*"),
        (["--evocode-pin", "--evocode-mode=single-round"], "*leave out --evocode-mode and --evocode-from*"),
        (["--evocode-pin", "--evocode-from=round-2"], "*leave out --evocode-mode and --evocode-from*"),
    ],
)
def test_what_cannot_be_meant_is_refused(run_tasks: RunTasks, arguments: list[str], message: str) -> None:
    alone = arguments[0] in ("--evocode-check", "--evocode-pin")
    session = run_tasks(*arguments, "tasks", agent=None if alone else "nop")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([message])


def test_a_task_without_the_round_says_which_it_has(run_tasks: RunTasks) -> None:
    session = run_tasks("--evocode-from=round-4", "tasks")
    session.has("*--evocode-from=round-4: a has no such round; its rounds are round-1, round-2, round-3*")
    assert session.outcomes == {"passed": 1, "errors": 1, "deselected": 3}
