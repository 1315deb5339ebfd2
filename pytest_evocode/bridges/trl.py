"""Tasks as environments of TRL's ``GRPOTrainer`` (https://github.com/huggingface/trl); the extra ``trl`` brings it.

>>> factory = partial(TrainingEpisode, "example_tasks/ledger", "sandbox")  # doctest: +SKIP
>>> GRPOTrainer(model, environment_factory=factory, args=GRPOConfig(max_steps=100)).train()  # doctest: +SKIP

For several tasks TRL takes a factory for each by its name, and a dataset whose column ``environment`` has the names.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from pytest_evocode.bridges.bash_tool import SECONDS, shown
from pytest_evocode.bridges.blocking import BlockingEpisode
from pytest_evocode.environments import Engine
from pytest_evocode.errors import EpisodeFault
from pytest_evocode.play import play
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial import TrialOptions

logger = logging.getLogger(__name__)
_OVER = "There is no further request: all is done."


class TrainingEpisode:
    """A task for one rollout after the other, which TRL drives: its public methods are the model's tools.

    The first instruction goes to the end of the prompt, and each other one is what ``finish_round`` returns. When the
    rollout has ended, the round that is under way is verified as it is, and those after it count 0.
    """

    def __init__(
        self, task: Task | Path | str, env: Engine | str = "auto", *, options: TrialOptions | None = None
    ) -> None:
        """Prepare a task; the arguments are those of :func:`~pytest_evocode.play.play`."""
        self._task = task if isinstance(task, Task) else load_task(Path(task))
        self._env = env
        self._options = options
        self._episode: BlockingEpisode | None = None
        self._is_over = True
        self._is_lost = False

    def reset(self, **row: Any) -> str:
        """Begin at the first round, whatever the row of the dataset, and return its instruction.

        Where the environment could not be started, nothing can be done in the rollout, and it has no reward: other
        rollouts of the training go on.
        """
        self._close()
        self._episode = BlockingEpisode(play(self._task, self._env, options=self._options))
        try:
            instruction = self._episode.reset().instruction
        except EpisodeFault as fault:
            logger.warning("a rollout of %s has no reward: %s", self._task.name, fault)
            self._close()
            self._is_lost = True
            return self._task.rounds[0].instruction.read_text(encoding="utf-8")
        self._is_over = self._is_lost = False
        return instruction

    def bash(self, command: str) -> str:
        """Run a bash script in the workspace.

        Args:
            command: The script.

        Returns:
            What it printed, and its exit code.
        """
        return _OVER if self._is_over else shown(self._begun().exec(command, timeout=SECONDS))

    def finish_round(self) -> str:
        """Say that the request is done.

        Returns:
            The next request, which builds on those before.
        """
        if self._is_over:
            return _OVER
        observation = self._begun().finish_round().observation
        self._is_over = observation is None
        return _OVER if observation is None else observation.instruction

    def get_reward(self) -> float | None:
        """End the episode and return its reward; None, from which TRL learns nothing, for an infrastructure fault."""
        if self._is_lost:
            return None
        episode = self._begun()
        try:
            if not self._is_over:
                episode.finish_round()
            return episode.reward
        finally:
            self._close()

    def _begun(self) -> BlockingEpisode:
        if self._episode is None:
            raise EpisodeFault("no rollout is under way: reset() begins one")
        return self._episode

    def _close(self) -> None:
        self._is_over = True
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.close()
