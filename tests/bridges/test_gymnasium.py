"""A task as an environment of Gymnasium, by its own checker and by hand."""

from __future__ import annotations

import warnings
from pathlib import Path

from gymnasium.utils.env_checker import check_env

from pytest_evocode.bridges.gymnasium import EvocodeEnv


def test_the_checker_of_gymnasium_passes(task: Path) -> None:
    env = EvocodeEnv(task, "sandbox")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)
    env.close()


def test_an_episode_has_the_rewards_of_its_rounds(task: Path) -> None:
    env = EvocodeEnv(task, "sandbox")
    observation, _ = env.reset(seed=1)
    assert (observation["instruction"], observation["round"]) == ("Add one.\n", 1)
    observation, reward, terminated, truncated, _ = env.step(
        {"command": "echo Grüße; echo one > work; exit 3", "finish": 0}
    )
    assert (observation["output"], observation["exit_code"], reward) == ("Grüße\n", 3, 0.0)
    assert env.observation_space.contains(observation)
    assert (terminated, truncated) == (False, False)
    observation, reward, terminated, truncated, info = env.step({"command": "", "finish": 1})
    assert (observation["instruction"], observation["round"], reward) == ("Add two.\n", 2, 1.0)
    assert (info["case_rewards"], terminated, truncated) == ({"one": 1.0}, False, False)
    observation, reward, terminated, truncated, info = env.step({"command": "true", "finish": 1})
    assert (observation["round"], reward, terminated, truncated) == (2, 0.0, True, False)
    assert info["rewards"] == {"reward": 0.5}
    assert [record.outcome for record in env.records] == ["passed", "failed"]
    env.close()


def test_a_fault_of_the_infrastructure_truncates_the_episode(task: Path) -> None:
    env = EvocodeEnv(task, "sandbox")
    env.reset()
    trial = env._episode._episode._trial
    assert trial is not None
    assert trial.environment is not None
    trial.environment.stop()
    _, reward, terminated, truncated, info = env.step({"command": "", "finish": 1})
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["fault"]
    env.close()
