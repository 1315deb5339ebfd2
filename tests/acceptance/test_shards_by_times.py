"""``--evocode-shard-times``: shards that are equally long by what attempts took before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.results.records import AttemptRecord
from tests.result_trees import write_attempt

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow
TIMES = "--evocode-shard-times=before"


def measure(before: Path, task: str, seconds: float) -> None:
    """Write an earlier attempt of the oracle at a task of one round that took so long."""
    file = write_attempt(before, task, "oracle", "p") / "result.json"
    record = AttemptRecord.model_validate_json(file.read_bytes())
    rounds = tuple(each.model_copy(update={"agent_seconds": seconds}) for each in record.rounds)
    file.write_text(record.model_copy(update={"rounds": rounds}).model_dump_json())


def tasks_of(session: Session) -> set[str]:
    return set(re.findall(r"^tasks/(.*)/task.toml::", session.text, flags=re.MULTILINE))


@pytest.fixture
def measured(pytester: pytest.Pytester, write_task: WriteTask) -> None:
    """Four tasks of one round, alike but for the time that the oracle took before."""
    for name, seconds in (("a", 10.0), ("b", 20.0), ("c", 60.0), ("d", 30.0)):
        write_task(name, 1)
        measure(pytester.path / "before", name, seconds)


@pytest.mark.usefixtures("measured")
def test_shards_are_balanced_by_measured_times(run_tasks: RunTasks) -> None:
    asked = ("--collect-only", "-q", TIMES, "tasks")
    assert tasks_of(run_tasks("--evocode-shard=1/2", *asked)) == {"c"}
    assert tasks_of(run_tasks("--evocode-shard=2/2", *asked)) == {"a", "b", "d"}


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("workers", [()], ids=["one process"])
def test_a_session_says_how_long_each_shard_is_expected_to_take_and_goes_on_with_the_times_it_was_made_by(
    pytester: pytest.Pytester, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    session = run_tasks("--evocode-shard=1/2", TIMES, *workers, "tasks", subprocess=bool(workers))
    assert session.text.count("evocode: shards are expected to take 1:00, 1:00 one attempt after the other") == 1
    assert "measured before: 4 of 4 attempts" in session.text
    (run,) = (json.loads(path.read_text()) for path in pytester.path.glob("evocode-results/runs/*.json"))
    assert len(run["shard_times"]) == 16
    other = run_tasks("--evocode-shard=1/2", f"--evocode-resume={run['run']}", "tasks")
    assert other.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"were made by other times ({run['shard_times']}, not None)" in other.text


@pytest.mark.usefixtures("measured")
@pytest.mark.nightly
def test_with_workers_it_is_said_once(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    test_a_session_says_how_long_each_shard_is_expected_to_take_and_goes_on_with_the_times_it_was_made_by(
        pytester, run_tasks, ("-n1",)
    )


@pytest.mark.usefixtures("measured")
def test_a_task_that_is_new_takes_the_mean(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("new", 1)
    asked = ("--collect-only", "-q", TIMES, "tasks")
    shards = [tasks_of(run_tasks(f"--evocode-shard={number}/2", *asked)) for number in (1, 2)]
    assert shards == [{"b", "c"}, {"a", "d", "new"}]  # 60 + 20 and 30 + 30 + 10 seconds.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--evocode-shard-times=before"], "add --evocode-shard"),
        (["--evocode-shard=1/2", "--evocode-shard-times=nowhere"], "there is no such directory"),
        (["--evocode-shard=1/2", "--evocode-shard-times=before"], "no attempt there has measured times"),
        (["--evocode-shard=1/2", "--evocode-shard-times=before", "--evocode-results=before"], "name a copy"),
    ],
)
def test_times_that_make_no_sense_are_refused(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, options: list[str], said: str
) -> None:
    write_task("a", 1)
    pytester.mkdir("before")
    session = run_tasks(*options, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert said in session.text
