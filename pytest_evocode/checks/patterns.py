"""The patterns by which checks read the files of tasks: data with labelled examples, as of the rules of process."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.process.rules import RuleFile

PATTERNS = RuleFile(Path(__file__).with_suffix(".toml"))
