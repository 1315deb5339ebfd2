"""A task as an environment of TRL: a step of its trainer with a tiny model, and the contract by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from pytest_evocode.bridges.trl import TrainingEpisode

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of single bytes."""
    vocabulary = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.add_tokens(list(SPECIAL), special_tokens=False)
    made.chat_template = qwen3_chat_template
    return made


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
    assert episode.finish_round() == ending
    assert episode.get_reward() == 1.0
