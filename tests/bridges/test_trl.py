"""A task as an environment of TRL: a step of its trainer with a tiny model, and the contract by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from pytest_evocode.bridges.trl import TrainingEpisode
from pytest_evocode.errors import EpisodeFault
from pytest_evocode.play import Episode

BASH = '<tool_call>\n{"name": "bash", "arguments": {"command": "echo one > work"}}\n</tool_call>'
FINISH = '<tool_call>\n{"name": "finish_round", "arguments": {}}\n</tool_call>'
END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = (END, PAD, "<|im_start|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>")


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Tokens are bytes, and whole calls of tools, so that a model that knows nothing makes some."""
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, padding_side="left")
    made.add_tokens([*SPECIAL, BASH, FINISH])
    made.chat_template = qwen3_chat_template
    return made


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """A model of a few thousand parameters, all at random."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=8,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


@pytest.mark.slow("it trains, and its packages take seconds to import")
@pytest.mark.filterwarnings("ignore")  # These packages warn of each other.
def test_a_step_of_grpo_learns_from_episodes(task: Path, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    said = {tokenizer.convert_tokens_to_ids(each) for each in (BASH, FINISH, END)}
    trainer = GRPOTrainer(
        tiny_model(tokenizer),
        args=GRPOConfig(
            output_dir=str(tmp_path / "out"),
            max_steps=1,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=600,
            max_tool_calling_iterations=4,
            learning_rate=0.1,
            logging_steps=1,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            seed=1,
            # Nothing but calls, and the end of a reply.
            generation_kwargs={"suppress_tokens": [each for each in range(len(tokenizer)) if each not in said]},
        ),
        processing_class=tokenizer,
        environment_factory=partial(TrainingEpisode, task, "sandbox"),
    )
    before = {name: value.clone() for name, value in trainer.model.named_parameters()}
    trainer.train()
    [step, *_] = trainer.state.log_history
    assert step["tools/call_frequency"] > 0
    assert step["tools/failure_frequency"] == 0
    assert 0 < step["rewards/TrainingEpisode/mean"] < 1
    assert step["rewards/TrainingEpisode/std"] > 0
    assert any(not torch.equal(before[name], value) for name, value in trainer.model.named_parameters())


def stop_environment(episode: Episode) -> None:
    trial = episode._trial
    assert trial is not None
    assert trial.environment is not None
    trial.environment.stop()


def test_tools_are_described_to_the_model(task: Path) -> None:
    episode = TrainingEpisode(task, "sandbox")
    bash, finish = (get_json_schema(tool)["function"] for tool in (episode.bash, episode.finish_round))
    assert bash["parameters"]["properties"] == {"command": {"type": "string", "description": "The script."}}
    assert (bash["description"], finish["description"]) == (
        "Run a bash script in the workspace.",
        "Say that the request is done.",
    )


def test_tools_and_requests_are_those_of_the_task(task: Path) -> None:
    episode = TrainingEpisode(task, "sandbox")
    assert episode.reset(prompt="any") == "Add one.\n"
    assert episode.bash("echo one > work; exit 3") == "[exit code 3]"
    assert episode.finish_round() == "Add two.\n"
    assert episode.get_reward() == 0.5
    assert episode.reset() == "Add one.\n"
    assert episode.bash("ls") == "[exit code 0]"
    for name in ("one", "two"):
        episode.bash(f"echo {name} >> work")
        ending = episode.finish_round()
    assert ending == "There is no further request: all is done."
    assert (episode.finish_round(), episode.bash("echo more >> work")) == (ending, ending)
    assert episode.get_reward() == 1.0


def test_a_fault_of_the_infrastructure_gives_no_reward(task: Path) -> None:
    episode = TrainingEpisode(task, "sandbox")
    episode.reset()
    stop_environment(episode._begun()._episode)
    assert episode.get_reward() is None
    assert episode.reset() == "Add one.\n"
    assert episode.get_reward() == 0.0
    with pytest.raises(EpisodeFault, match="reset"):
        episode.get_reward()


def test_a_rollout_that_cannot_begin_has_no_reward_and_training_goes_on(
    task: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dockerfile = task / "environment" / "Dockerfile"
    text = dockerfile.read_text()
    dockerfile.write_text(f"{text}RUN exit 3\n")
    episode = TrainingEpisode(task, "sandbox")
    assert episode.reset() == "Add one.\n"
    assert "has no reward" in caplog.text
    assert episode.bash("ls") == episode.finish_round()
    assert episode.get_reward() is None
    dockerfile.write_text(text)
    episode = TrainingEpisode(task, "sandbox")
    episode.reset()
    assert episode.bash("ls") == "[exit code 0]"
    assert episode.get_reward() == 0.0
