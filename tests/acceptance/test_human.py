"""``--evocode-agent=human``: a person at the terminal does the rounds."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.sessions import AtTerminal, RunTasks
from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow("a session at a terminal")
TEST = '[ "$(cat log.txt)" = line-{} ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt'


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid gives a program a terminal of its own")
def test_a_person_solves_a_task_round_by_round(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 2, test={1: TEST.format(1), 2: TEST.format(2)})
    person.pytest("tasks", what="--evocode-agent=human", before=("setsid", "--ctty", "--wait"))
    person.sees("Leave the shell to end the turn.")
    person.type("pwd > log.txt; echo be''gin; cat log.txt; echo line-1 > log.txt; exit\n")
    person.sees("begin\r\n/app\r\n")
    person.sees("Type done to end the turn")
    person.type("no\n")
    person.type("echo be''gin; cat log.txt; exit\n")
    person.sees("begin\r\nline-1\r\n")
    person.sees("Type done to end the turn")
    person.type("done\n")
    person.sees("a round-2, in /app")
    person.type("echo wrong > log.txt; exit\n")
    person.sees("Type done to end the turn")
    person.type("done\n")
    code, rest = person.ends()
    assert code == 1
    assert "1 failed, 1 passed" in rest


def test_without_a_terminal_or_with_workers_nothing_starts(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    alone = "human needs one process with a terminal, and one attempt at a time"
    for arguments, why in (((), "human needs a terminal"), (("-n2",), alone), (("--evocode-jobs=2",), alone)):
        session = run_tasks(*arguments, "tasks", agent="human", subprocess=True)
        assert session.exit_status == pytest.ExitCode.USAGE_ERROR
        assert why in session.text
        assert not session.results.exists()
