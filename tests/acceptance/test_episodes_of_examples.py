"""The same policy scores the same in an episode (:mod:`pytest_evocode.play`) as in a session, on every example task."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import tarfile
from pathlib import Path

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.environments import choose_engine
from pytest_evocode.play import play
from pytest_evocode.tasks import Round, load_task
from tests.acceptance.sessions import RunTasks

pytestmark = [pytest.mark.slow("it plays whole example tasks twice"), pytest.mark.nightly]

EXAMPLES = Path(__file__).parents[2] / "example_tasks"
TASKS = sorted(path.parent for path in EXAMPLES.rglob("task.toml"))
#: It has a sidecar.
IN_DOCKER = "shelfmark"


class Policy:
    """The policy as an agent of sessions."""

    name = "policy"

    def run_round(self, context: RoundContext) -> RoundTranscript:
        for command in commands(context.round):
            context.environment.exec(command, user=context.round.agent_user)
        return RoundTranscript()


def commands(round_: Round) -> list[str]:
    """What the policy does in a round: nothing in each third, else the reference solution by commands alone."""
    if round_.index % 3 == 0 or round_.solution is None:
        return []
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:xz") as archive:
            archive.add(round_.solution, "solution")
        packed = base64.b64encode(file.getvalue()).decode()
    parts = [packed[start : start + 50_000] for start in range(0, len(packed), 50_000)]
    return [
        *(f"printf %s {part} >> /tmp/packed" for part in parts),
        "base64 -d /tmp/packed > /tmp/packed.xz && python3 -m tarfile -e /tmp/packed.xz / && rm /tmp/packed*",
        "bash /solution/solve.sh; rm -rf /solution",
    ]


async def rewards_of(directory: Path, env: str) -> list[float | None]:
    engine, _ = choose_engine(env)
    task = load_task(directory)
    try:
        async with play(task, engine) as episode:
            await episode.reset()
            for round_ in task.rounds:
                for command in commands(round_):
                    await episode.exec(command)
                await episode.finish_round()
            return [None if record.verdict is None else record.verdict.reward for record in episode.records]
    finally:
        engine.close()


@pytest.mark.parametrize(
    "directory",
    [pytest.param(path, id=path.name, marks=[pytest.mark.docker] if path.name == IN_DOCKER else []) for path in TASKS],
)
def test_an_episode_has_the_rewards_of_a_session(
    pytester: pytest.Pytester, run_tasks: RunTasks, directory: Path
) -> None:
    env = "docker" if directory.name == IN_DOCKER else "sandbox"
    run_tasks(str(directory), agent=f"{__name__}:{Policy.__name__}", env=env, replay=False)
    [result] = pytester.path.rglob("*__a1/result.json")
    session = [each["verdict"]["reward"] for each in json.loads(result.read_text())["rounds"]]
    assert len(set(session)) > 1
    assert asyncio.run(rewards_of(directory, env)) == session
