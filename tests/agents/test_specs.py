"""From what the command line says to an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents import Agent, make_agent
from pytest_evocode.agents.declarations import Declaration, Declarations
from pytest_evocode.agents.specs import FORMS, Option
from pytest_evocode.errors import UsageError
from tests.agents.somebodys import Somebodys

CLASS = "somebodys:Somebodys"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def option(value: object, base: Path | None = None) -> Option:
    return Option(value, "--evocode-agent-option", base or Path.cwd())


def made(agent: Agent) -> tuple[str, str]:
    return agent.model, agent.effort  # type: ignore[attr-defined]


def refusal(spec: str, options: dict[str, Option] | None = None, declarations: Declarations | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        make_agent(spec, options, declarations)
    return str(caught.value)


def test_each_attempt_has_an_agent_of_its_own() -> None:
    assert make_agent("oracle") is not make_agent("oracle")


@pytest.mark.parametrize(
    "spec", ["openai/gpt-5", "anthropic/claude-opus-4-8", "codex:gpt-5", "claude-code", "claude-code:opus"]
)
def test_a_model_can_be_named_without_its_package_or_its_key(spec: str) -> None:
    assert make_agent(spec).name


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("oracel", "did you mean 'oracle'?"),
        ("openia/gpt-5", "did you mean 'openai/gpt-5'?"),
        ("claud-code:opus", "did you mean 'claude-code:opus'?"),
        ("antropic/claude", "did you mean 'anthropic/claude'?"),
        ("openai/", "write openai/MODEL;"),
        ("google", "write google/MODEL;"),
        ("acp:", "write acp:COMMAND;"),
        ("claude-code:", "write claude-code:MODEL;"),
        ("opena", "did you mean 'openai/MODEL'?"),
        ("openai/", "known are oracle, nop"),
        ("replay:", "known are oracle, nop"),
    ],
)
def test_an_unknown_agent_is_refused_with_the_nearest(spec: str, hint: str) -> None:
    message = refusal(spec)
    assert message.startswith(f"unknown agent {spec!r};")
    assert hint in message
    assert ", ".join(FORMS) in message


def test_a_declared_name_is_among_the_nearest() -> None:
    declared = Declaration("careful", {"spec": "nop"}, Path("pyproject.toml"), 3)
    assert "did you mean 'careful'?" in refusal("carefull", declarations=Declarations(agents={"careful": declared}))


def test_a_class_is_made_by_its_name_with_options_as_arguments() -> None:
    assert made(make_agent(CLASS)) == ("small", "low")
    assert made(make_agent(CLASS, {"effort": option("high")})) == ("small", "high")


def test_an_option_that_a_class_does_not_take_is_refused() -> None:
    assert "has no option 'efort'; did you mean 'effort'?" in refusal(CLASS, {"efort": option("high")})


@pytest.mark.parametrize(
    ("spec", "message"),
    [("nowhere_at_all:Agent", "nowhere_at_all cannot be imported"), ("json:Agent", "json has no 'Agent'")],
)
def test_a_class_that_is_not_there_is_refused(spec: str, message: str) -> None:
    assert message in refusal(spec)


def test_entry_points_name_agents_of_other_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "vendor-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vendor\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_evocode.agents]\nvendors = {CLASS}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert made(make_agent("vendors")) == ("small", "low")
    assert made(make_agent("vendors:large", {"effort": option("high")})) == ("large", "high")
    assert "did you mean 'vendors'?" in refusal("vendor")


def test_an_option_that_is_not_there_is_refused_with_all_that_are() -> None:
    assert (
        refusal("nop", {"effort": option("high")})
        == "--evocode-agent-option: nop has no option 'effort'; it takes none"
    )
    assert "did you mean 'effort'?" in refusal("openai/gpt-5", {"efort": option("high")})


def test_a_value_of_the_wrong_kind_is_refused_with_where_it_was_given() -> None:
    message = refusal("openai/gpt-5", {"max_tokens": Option("many", "pyproject.toml:7")})
    assert message.startswith("pyproject.toml:7: max_tokens = 'many': ")


def test_paths_are_relative_to_where_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be careful.")
    assert make_agent("openai/gpt-5", {"rules": option("AGENTS.md", tmp_path)})
    message = refusal("openai/gpt-5", {"rules": option("RULES.md", tmp_path)})
    assert message == f"--evocode-agent-option: rules = 'RULES.md': there is no {tmp_path / 'RULES.md'}"


def test_a_command_that_is_not_declared_is_refused() -> None:
    assert "there is no [tool.pytest-evocode.commands.mine] in pyproject.toml" in refusal("cmd:mine")


def test_the_agent_of_the_tests_is_one_that_can_be_continued() -> None:
    agent = Somebodys()
    agent.load_state(["ls"])
    assert agent.save_state() == ["ls"]
