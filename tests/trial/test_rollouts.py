"""Rollouts from Python: attempts and episodes whose model is asked for its tokens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import make_agent
from pytest_evocode.environments import Engine
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, Tool
from pytest_evocode.play import RoundObservation, play
from pytest_evocode.report.training import read_sequences
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial import Trial
from tests.model_scripts import Run, Say, Step
from tests.token_server import TokenServer

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

SCRIPT: list[Step] = [[Say("I write."), Run("echo 1 > work")], Say("Done."), Run("echo 2 >> work"), Say("Done.")]
CHECK = "grep -qx {} work && echo 1 > /logs/verifier/reward.txt"


def test_an_attempt_of_a_model_has_sequences_to_train_on(
    engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    directory = AttemptDirectory(tmp_path / "rollout")
    with pytest.raises(UsageError, match="no attempt has come to its end there"):
        read_sequences(directory.path)
    with TokenServer(SCRIPT, "vllm") as server:
        agent = make_agent("openai/mine", {"base_url": f"{server.url}/v1", "token_ids": "vllm"})
        records = finish(Trial(make_task(CHECK.format(1), CHECK.format(2)), agent, engine, directory=directory))
    assert [record.passed for record in records] == [True, True]
    data = read_sequences(directory.path)
    assert data is not None
    [sequence] = data["sequences"]
    assert sequence["token_ids"] == server.log[-1].prompt + server.log[-1].completion
    assert [step["reward"] for step in sequence["steps"]] == [0.0, 1.0, 0.0, 1.0]


def test_an_option_of_a_model_that_is_wrong_is_told_with_its_name() -> None:
    with pytest.raises(UsageError, match=r"openai/mine: token_ids = 'gguf': .*'vllm' or 'sglang'"):
        make_agent("openai/mine", {"token_ids": "gguf"})


def test_a_policy_of_ones_own_in_an_episode_has_the_tokens_of_each_reply(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(CHECK.format(1), CHECK.format(2))
    tool = Tool("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
    with TokenServer(SCRIPT, "sglang") as server:
        client = make_client("openai", "mine", ModelOptions(base_url=f"{server.url}/v1", token_ids="sglang"))

        async def rollout() -> list[tuple[int, ...]]:
            tokens, talk = [], []
            async with play(task, env=engine) as episode:
                observation: RoundObservation | None = await episode.reset()
                while observation is not None:
                    talk.append(Message("user", observation.instruction))
                    while (reply := client.complete(talk, [tool], timeout=60)).calls:
                        talk.append(reply.message)
                        for call in reply.calls:
                            done = await episode.exec(str((call.arguments or {})["command"]))
                            talk.append(Message("tool", done.output, call_id=call.id))
                        tokens.append(reply.tokens.completion_token_ids)
                    talk.append(reply.message)
                    tokens.append(reply.tokens.completion_token_ids)
                    observation = (await episode.finish_round()).observation
                assert episode.rewards == {"reward": 1.0}
            return tokens

        told = asyncio.run(asyncio.wait_for(rollout(), 120))
        client.close()
    assert [list(each) for each in told] == [each.completion for each in server.log]
