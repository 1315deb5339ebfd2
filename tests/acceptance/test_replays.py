"""Trajectories of whole sessions: written as they grow, valid, and good to be played again."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import atif, recording_agent
from tests.acceptance.models import at, in_rounds
from tests.inner_sessions import UNUSED
from tests.model_scripts import Run
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
Session = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def session(pytester: pytest.Pytester, run_tasks: RunTasks) -> Session:
    """Run a session; one that ``dies`` has a process group of its own, as it kills itself."""
    pytester.makeconftest(inspect.getsource(recording_agent))

    def run(agent: str = recording_agent.NAME, env: str = "sandbox", dies: bool = False) -> Any:
        if not dies:
            ended = run_tasks("tasks", agent=agent, env=env)
            return subprocess.CompletedProcess((), ended.exit_status, ended.text)
        options = (*UNUSED, f"--evocode-agent={agent}", f"--evocode-env={env}")
        argv = [sys.executable, "-m", "pytest", *options, "tasks"]
        return subprocess.run(
            argv, cwd=pytester.path, capture_output=True, text=True, timeout=300, start_new_session=True, check=False
        )

    return run


def trajectories(directory: Path) -> list[dict[str, Any]]:
    return [atif.read(path) for path in sorted(directory.glob("steps/*/agent/trajectory.json"))]


def attempt(pytester: pytest.Pytester, agent: str) -> Path:
    (found,) = pytester.path.glob(f"evocode-results/a/harbor_jobs/{agent}/*/a__a1")
    return found


def changes(trajectory: dict[str, Any]) -> list[Any]:
    return [
        action.get("changes")
        for step in trajectory["steps"]
        for action in step.get("extra", {}).get("evocode", {}).get("actions", [])
    ]


@pytest.mark.nightly
def test_a_session_that_is_killed_in_a_turn_leaves_what_has_happened(
    pytester: pytest.Pytester, write_task: WriteTask, session: Session
) -> None:
    write_task("a", 2)
    (pytester.path / "die").touch()
    assert session(dies=True).returncode == -signal.SIGKILL
    (trajectory,) = trajectories(attempt(pytester, recording_agent.NAME))
    messages = [step["message"] for step in trajectory["steps"] if step["source"] == "agent"]
    assert messages == ["Command 1.", "Command 2.", "Command 3."]
    assert [len(made) for made in changes(trajectory)] == [2, 2]
    assert "observation" not in trajectory["steps"][-1]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.nightly
def test_a_session_that_is_played_again_ends_as_it_did(
    pytester: pytest.Pytester, write_task: WriteTask, session: Session, env: str
) -> None:
    # The reward is what chance said, to the last digit.
    write_task("a", 2, test=dict.fromkeys((1, 2), "echo 0.$(cat copy) > /logs/verifier/reward.txt"))
    first = session(env=env)
    again = session("replay:evocode-results", env=env)
    assert "2 failed" in first.stdout, first.stdout
    assert "2 failed" in again.stdout, again.stdout
    recorded, played = attempt(pytester, recording_agent.NAME), attempt(pytester, "replay")
    for name in ("round-1", "round-2"):
        rewards = [(each / "steps" / name / "verifier/reward.txt").read_text() for each in (recorded, played)]
        assert 0 < float(rewards[0]) == float(rewards[1])
    assert list(map(changes, trajectories(recorded))) == list(map(changes, trajectories(played)))


def test_what_a_model_did_is_played_again_without_one(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 2)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    script = in_rounds(*([Run(f"echo line-{number} >> log.txt"), Run("date > when")] for number in (1, 2)))
    with ModelServer(script) as server:
        first = run_tasks(*at(server, "openai/gpt-5"), "tasks", agent=None)
    assert first.outcomes == {"passed": 2}
    monkeypatch.delenv("OPENAI_API_KEY")
    again = run_tasks("--evocode-agent=replay:evocode-results", "tasks", agent=None)
    assert again.outcomes == {"passed": 2}
    rounds = again.record("a", "replay").rounds
    assert [(each.tool_calls, each.usage) for each in rounds] == [(2, None)] * 2
