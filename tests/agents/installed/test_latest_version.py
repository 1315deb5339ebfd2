"""`version=latest`: looked up once a day, before an image is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evocode.agents import make_agent
from pytest_evocode.agents.installed.base import InstalledAgent
from pytest_evocode.agents.installed.npm_program import latest_version
from pytest_evocode.agents.specs import Option


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry's answer, in a file; another counts how often it was asked."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "npm"
    program.write_text(f"#!/bin/sh\necho asked >>{tmp_path}/asked\ncat {tmp_path}/answer\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "answer").write_text("1.2.3\n")
    return tmp_path


def asked(npm: Path) -> int:
    return len((npm / "asked").read_text().splitlines())


def agent() -> InstalledAgent:
    made = make_agent("codex:gpt-5", {"version": Option("latest", "--evocode-agent-option")})
    assert isinstance(made, InstalledAgent)
    return made


def test_the_latest_version_is_looked_up_once_for_all_attempts_and_named(npm: Path) -> None:
    first, second = agent(), agent()
    assert first.harness == ("codex", "1.2.3")
    assert first.installation == second.installation
    assert first.installation.name == "@openai/codex@1.2.3"
    assert asked(npm) == 1


def test_it_is_looked_up_again_on_another_day_and_the_image_is_another(npm: Path) -> None:
    before = agent().installation
    [known] = (npm / "cache" / "latest-versions").glob("*.json")
    known.write_text(json.dumps(json.loads(known.read_text()) | {"looked_up": 0}))
    (npm / "answer").write_text("1.2.4\n")
    after = agent().installation
    assert (before.name, after.name, asked(npm)) == ("@openai/codex@1.2.3", "@openai/codex@1.2.4", 2)


@pytest.mark.parametrize("answer", ["", "npm error 404", "1.2.3\n1.2.4"])
def test_the_version_of_an_earlier_day_serves_where_npm_tells_none(npm: Path, answer: str) -> None:
    assert latest_version("a") == "1.2.3"
    known = npm / "cache" / "latest-versions" / "a.json"
    known.write_text(json.dumps({"version": "1.2.3", "looked_up": 0}))
    (npm / "answer").write_text(answer)
    assert latest_version("a") == "1.2.3"


def test_without_npm_an_image_serves_for_a_day(npm: Path) -> None:
    (npm / "bin" / "npm").unlink()
    (npm / "empty").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(npm / "empty"))
        made = agent()
        assert made.harness == ("codex", "latest")
        assert made.installation.script.startswith("# latest as of 20")
