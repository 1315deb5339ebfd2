"""The numbers of an HTML report are those that ``evocode results --json`` prints of the same session."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
from typing import Any

import pytest

from pytest_evocode.cli import main
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html.index import index_of
from pytest_evocode.report.score_columns import REPORT
from pytest_evocode.results.loading import load_results
from tests import failing_agent
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.report.html.contract import faults

FAILS = {"a": [{2}, {1}], "b": [{1, 2}, set()]}


def index(session: Session) -> dict[str, Any]:
    results = load_results([session.results], cases=True)
    found = index_of(score_table(results), results, title="A session", roots=[session.results])
    assert faults(found, "Index") == []
    return found


def printed(*arguments: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert not ended.value.code
    return json.loads(out.getvalue())


def test_a_session_has_the_same_numbers_in_both(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(inspect.getsource(failing_agent) + f"\nFAILS = {FAILS}\n")
    write_task("a", 2)
    write_task("b", 2)
    session = run_tasks("--evocode-attempts=2", "tasks", agent=failing_agent.NAME, replay=False)
    found = index(session)
    (row,) = found["rows"]
    (said,) = printed("results", str(session.results), "--by", "task", "--intervals")["rows"]
    scores = (*REPORT, "trusting")
    assert {name: row["scores"][name] for name in scores} == {name: said["scores"][name] for name in scores}
    groups = {name: group["dataset_score"] for name, group in row["groups"]["task"].items()}
    assert groups == {name: group["dataset_score"] for name, group in said["groups"].items()}
    kinds = printed("failures", str(session.results))["kinds"][row["name"]]
    assert row["failures"] == kinds
    cells = {(each["task"], each["attempt"]): each["cells"] for each in found["attempts"]}
    passed = {key: [cell == "p" for cell in of] for key, of in cells.items()}
    records = {(task, number): session.record(task, failing_agent.NAME, number) for task, number in cells}
    assert passed == {key: [each.passed for each in record.rounds] for key, record in records.items()}
    assert {cell for of in cells.values() for cell in of} > {"p"}
    (run,) = found["runs"]
    assert (run["name"], run["finished"] is not None) == (session.run.run, True)
    assert set(run["attempts"]) == {each["id"] for each in found["attempts"]}
    assert {"agent", "suite"} <= run["phases"].keys()
