"""What models are told beside the system prompts, and the tools that they are offered: ``words.toml`` has the words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pytest_evocode.llm.protocol import Tool

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
NUDGES: Mapping[str, str] = _WORDS["nudges"]
"""What a model is told after a reply that called nothing, by why its turn goes on."""
COMPACTIONS: Mapping[str, str] = _WORDS["compaction"]
"""What the trajectory says of each step that makes a conversation shorter."""
CONVERSATION: Mapping[str, str] = _WORDS["conversation"]
USER: Mapping[str, str] = _WORDS["user"]
"""What the model is told that plays a user."""
TOOLS: Mapping[str, Tool] = {name: Tool(name, **about) for name, about in _WORDS["tools"].items()}
