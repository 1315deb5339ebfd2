"""What is checked against the packages that tasks are environments of, by ``tox -e bridges``; without them, nothing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore = [f"test_{name}.py" for name in ("gymnasium", "openenv", "trl", "verifiers") if find_spec(name) is None]

TOML = """
[environment]
network_mode = "no-network"
[[steps]]
name = "one"
[[steps]]
name = "two"
"""
SUITE = """
if grep -qsx {name} work; then r=1; s=success; else r=0; s=fail; fi
echo CASE_RESULT case_id={name} origin_step={name} status=$s
echo $r > /logs/verifier/reward.txt
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task of two rounds, each of which wants a line of its name in a file."""
    files = {"task.toml": TOML, "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n"}
    for name in ("one", "two"):
        files[f"steps/{name}/instruction.md"] = f"Add {name}.\n"
        files[f"steps/{name}/tests/test.sh"] = SUITE.format(name=name)
    for path, text in files.items():
        (tmp_path / "task" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "task" / path).write_text(text)
    return tmp_path / "task"
