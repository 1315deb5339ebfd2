"""Two agents of one session that would have one name are told apart, in node ids, results and the header."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

VENDORS = """
from pytest_evocode.agents.oracle import NopAgent

def pytest_evocode_make_agent(name):
    return NopAgent() if name.endswith("/small") else None
"""


@pytest.mark.parametrize("workers", [()], ids=["one process"])
def test_two_agents_of_one_name_have_names_made_of_what_differs_and_are_found_again(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    write_task("a", 1)
    pytester.makeconftest(VENDORS)
    agents = ["--evocode-agent=here/small", "--evocode-agent=there/small"]
    session = run_tasks(*agents, "tasks", agent=None)
    session.has("evocode: agent here/small as here-small, there/small as there-small")
    record = session.record(agent="here-small")
    assert record.made_by == {"spec": "here/small", "name": "small"}
    assert (record.strict, record.verify, session.run.strict) == (False, None, False)
    assert session.run.agents == {
        "here-small": {"spec": "here/small", "name": "small"},
        "there-small": {"spec": "there/small", "name": "small"},
    }
    resumed = run_tasks(*agents, "--evocode-resume", *workers, "tasks", agent=None)
    resumed.has("*2 turns kept, nothing to go*")


@pytest.mark.nightly
def test_workers_find_them_again(pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_two_agents_of_one_name_have_names_made_of_what_differs_and_are_found_again(
        pytester, write_task, run_tasks, ("-n2",)
    )
