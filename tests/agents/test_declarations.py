"""What a project declares in its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents.declarations import read_declarations
from pytest_evocode.errors import UsageError

AGENT = """[tool.pytest-evocode.agents.careful]
spec = "openai/gpt-5"
rules = "AGENTS.md"
effort = "high"
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_an_agent_has_a_name_a_spec_and_options(tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", f'[project]\nname = "x"\n\n{AGENT}')
    declared = read_declarations([path]).agents["careful"]
    assert declared.values == {"spec": "openai/gpt-5", "rules": "AGENTS.md", "effort": "high"}
    assert declared.where == f"{path}:4"


def test_an_ini_file_can_say_the_same(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pytest.ini",
        "[pytest]\n\n[pytest-evocode.agents.careful]\nspec = openai/gpt-5\neffort = high\n"
        '[pytest-evocode.commands.mine]\nstart = do it\nsecrets = ["A", "B"]\n',
    )
    found = read_declarations([path])
    assert found.agents["careful"].values == {"spec": "openai/gpt-5", "effort": "high"}
    assert found.agents["careful"].line == 3
    assert found.commands["mine"].values == {"start": "do it", "secrets": ["A", "B"]}


def test_files_that_are_not_there_or_say_nothing_declare_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "pyproject.toml", "[project]\nname = 'x'\n")
    assert not read_declarations([path, tmp_path / "tox.ini"]).agents


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.pytest-evocode.agents.a]\nrules = "x"\n', ":1: 'a' has no spec"),
        (
            '\n[tool.pytest-evocode.agent.a]\nspec = "x"\n',
            ":2: 'agent' cannot be declared; did you mean 'agents'?",
        ),
        ('[tool.pytest-evocode.agents]\na = "x"\n', ":2: 'a' has to be a table"),
        ('[tool.pytest-evocode.agents.oracle]\nspec = "nop"\n', ":1: 'oracle' is the name of a built-in agent"),
        ('[tool.pytest-evocode.agents."a b"]\nspec = "x"\n', ":1: 'a b' is not a valid name"),
        ('[tool.pytest-evocode]\nagents = "x"\n', ":2: 'agents' has to be a table of tables"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "pyproject.toml", text)
    with pytest.raises(UsageError) as caught:
        read_declarations([path])
    assert f"{path}{message}" in str(caught.value)


def test_a_name_is_declared_once(tmp_path: Path) -> None:
    first = write(tmp_path / "pytest.ini", "[pytest-evocode.agents.careful]\nspec = nop\n")
    second = write(tmp_path / "pyproject.toml", AGENT)
    with pytest.raises(UsageError) as caught:
        read_declarations([first, second])
    assert str(caught.value) == f"{second}:1: 'careful' is declared in {first}:1 as well"
