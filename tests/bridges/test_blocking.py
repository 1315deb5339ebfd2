"""Episodes for code that does not await."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_evocode.bridges.blocking import BlockingEpisode
from pytest_evocode.errors import EpisodeFault
from pytest_evocode.play import play


def test_threads_play_episodes_side_by_side(task: Path) -> None:
    def one(number: int) -> dict[str, float] | None:
        episode = BlockingEpisode(play(task, "sandbox"))
        try:
            assert episode.reset().instruction == "Add one.\n"
            assert episode.exec("echo one > work").ok
            assert episode.finish_round().passed
            episode.exec("echo two >> work" if number else "true", timeout=60)
            assert episode.finish_round().done
            with pytest.raises(EpisodeFault, match="no turn"):
                episode.exec("true")
            return episode.rewards
        finally:
            episode.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, range(2))) == [{"reward": 0.5}, {"reward": 1.0}]
