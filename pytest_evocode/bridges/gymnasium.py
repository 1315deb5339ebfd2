"""A task as an environment of Gymnasium (https://gymnasium.farama.org); needs the extra ``gymnasium``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces

from pytest_evocode.bridges.blocking import BlockingEpisode
from pytest_evocode.environments import Engine
from pytest_evocode.play import RoundObservation, play
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial import TrialOptions

LONGEST = 2**20
"""Characters of a text; of longer output the beginning is left out."""
NO_EXIT_CODE, MOST_EXIT_CODE = -1, 255


class AnyText(spaces.Text):
    """Texts of any characters, of which samples have printable ones of ASCII."""

    def contains(self, x: Any) -> bool:
        """Return whether it is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class EvocodeEnv(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """A task, one episode after the other.

    An action is a command for the shell, empty for none, and whether the round is finished after it. An observation has
    the instruction of the round, the command's output and exit code, -1 where it has none, and the round's index, from
    1, which stays that of the last one when the episode is over. The reward is that of a round that is finished, and 0
    for every other step. Where the infrastructure is at fault the episode is truncated, and no reward should be learned
    from: ``info["fault"]`` says why.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self, task: Task | Path | str, env: Engine | str = "auto", *, options: TrialOptions | None = None
    ) -> None:
        """Prepare a task; the arguments are those of :func:`~pytest_evocode.play.play`."""
        self.task = task if isinstance(task, Task) else load_task(Path(task))
        text = AnyText(min_length=0, max_length=LONGEST)
        self.action_space = spaces.Dict(
            {"command": AnyText(min_length=0, max_length=200), "finish": spaces.Discrete(2)}
        )
        self.observation_space = spaces.Dict(
            {
                "instruction": text,
                "output": text,
                "exit_code": spaces.Discrete(MOST_EXIT_CODE - NO_EXIT_CODE + 1, start=NO_EXIT_CODE),
                "round": spaces.Discrete(len(self.task.rounds), start=1),
            }
        )
        self.records: list[RoundRecord] = []
        """Those of the rounds of the episode that are finished."""
        self._episode = BlockingEpisode(play(self.task, env, options=options))
        self._last: dict[str, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin at the first round; nothing is drawn, so the seed changes nothing but the spaces' samples."""
        super().reset(seed=seed)
        self.records = []
        return self._observed(self._episode.reset()), {}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Run the command, and finish the round where the action says so."""
        output, exit_code = "", NO_EXIT_CODE
        if action["command"]:
            done = self._episode.exec(action["command"])
            output, exit_code = done.output[-LONGEST:], NO_EXIT_CODE if done.exit_code is None else done.exit_code
        ran = {"output": output, "exit_code": min(exit_code, MOST_EXIT_CODE)}
        if not action["finish"]:
            return {**self._last, **ran}, 0.0, False, False, {}
        result = self._episode.finish_round()
        self.records.append(result.record)
        info: dict[str, Any] = {"case_rewards": result.case_rewards}
        if result.reward is None:
            return {**self._last, **ran}, 0.0, False, True, {**info, "fault": result.record.cause}
        if result.observation is None:
            return {**self._last, **ran}, result.reward, True, False, {**info, "rewards": self._episode.rewards}
        return {**self._observed(result.observation), **ran}, result.reward, False, False, info

    def close(self) -> None:
        """End the episode."""
        self._episode.close()

    def _observed(self, observation: RoundObservation) -> dict[str, Any]:
        self._last = {
            "instruction": observation.instruction[:LONGEST],
            "output": "",
            "exit_code": NO_EXIT_CODE,
            "round": observation.index,
        }
        return dict(self._last)
