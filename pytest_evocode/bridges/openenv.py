"""A task as a server of OpenEnv (https://github.com/meta-pytorch/OpenEnv); needs the extra ``openenv``.

>>> app = create_app("example_tasks/ledger", env="sandbox")  # doctest: +SKIP
>>> uvicorn.run(app, port=8000)  # doctest: +SKIP
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from pytest_evocode.bridges.blocking import BlockingEpisode
from pytest_evocode.environments import Engine
from pytest_evocode.play import RoundObservation, play
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial import TrialOptions


class EvocodeAction(Action):
    """A command for the shell, empty for none, and whether the round is finished after it."""

    command: str = ""
    finish: bool = False


class EvocodeObservation(Observation):
    """What came of an action; ``done`` says whether the episode is over.

    ``reward`` is that of a round that was finished; None for all else, and where the infrastructure is at fault.
    """

    round: str = ""
    index: int = 0
    """The round's place in the task, from 1."""
    instruction: str = ""
    """Of the round, whenever one begins; else empty."""
    output: str = ""
    exit_code: int | None = None
    """The command's; None without one, and where it was killed at its deadline."""
    case_rewards: dict[str, float] = {}
    fault: str = ""
    """Why there is no reward for a round that was finished."""


class EvocodeState(State):
    """How far an episode is."""

    round: str = ""
    rewards: dict[str, float] | None = None
    """Those of the whole episode so far, by key; None where the infrastructure is at fault."""


class EvocodeEnvironment(Environment[EvocodeAction, EvocodeObservation, EvocodeState]):
    """A task for one client; each has a sandbox or container of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, task: Task, env: Engine | str, options: TrialOptions | None) -> None:
        """Prepare a task; the arguments are those of :func:`~pytest_evocode.play.play`."""
        super().__init__()
        self._episode = BlockingEpisode(play(task, env, options=options))
        self._state = EvocodeState()
        self._index = 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> EvocodeObservation:
        """Begin at the first round; nothing is drawn, so the seed has no effect."""
        observation = self._episode.reset()
        self._state = EvocodeState(episode_id=episode_id or uuid.uuid4().hex, rewards=self._episode.rewards)
        return self._begun(observation)

    def step(self, action: EvocodeAction, timeout_s: float | None = None, **more: Any) -> EvocodeObservation:
        """Run the command, and finish the round where the action says so."""
        self._state.step_count += 1
        ran: dict[str, Any] = {}
        if action.command:
            done = self._episode.exec(action.command, timeout=timeout_s)
            ran = {"output": done.output, "exit_code": done.exit_code}
        if not action.finish:
            return EvocodeObservation(round=self._state.round, index=self._index, **ran)
        result = self._episode.finish_round()
        self._state.rewards = self._episode.rewards
        ran |= {"reward": result.reward, "case_rewards": result.case_rewards, "done": result.done}
        if result.reward is None:
            ran["fault"] = result.record.cause
        if result.observation is None:
            return EvocodeObservation(round=self._state.round, index=self._index, **ran)
        return self._begun(result.observation, **ran)

    @property
    def state(self) -> EvocodeState:
        """How far the episode is."""
        return self._state

    def close(self) -> None:
        """End the episode."""
        self._episode.close()

    def _begun(self, observation: RoundObservation, **ran: Any) -> EvocodeObservation:
        self._state.round, self._index = observation.round, observation.index
        return EvocodeObservation(
            round=observation.round, index=observation.index, instruction=observation.instruction, **ran
        )


def create_app(
    task: Task | Path | str, env: Engine | str = "auto", *, options: TrialOptions | None = None, clients: int = 128
) -> Any:
    """Return the application of a server, for any ASGI server such as uvicorn.

    Args:
        task: The task, or its directory.
        env: As for :func:`~pytest_evocode.play.play`.
        options: As there.
        clients: How many may play at once.
    """
    loaded = task if isinstance(task, Task) else load_task(Path(task))
    return create_fastapi_app(
        lambda: EvocodeEnvironment(loaded, env, options), EvocodeAction, EvocodeObservation, max_concurrent_envs=clients
    )
