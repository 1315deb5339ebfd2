"""``cmd:NAME``: what a declared command is given, and what becomes of what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_evocode.agents import make_agent
from pytest_evocode.agents.declarations import read_declarations
from pytest_evocode.agents.installed.declared_command import CommandAgent, CommandDeclaration
from pytest_evocode.agents.specs import Option
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from tests import atif
from tests.agents.installed.conftest import PASS, Attempt, MakeTask

pytestmark = pytest.mark.turns(2)

OUT = "/logs/artifacts"


def command(start: str, *, options: dict[str, Any] | None = None, **declared: Any) -> CommandAgent:
    declaration = CommandDeclaration.model_validate({"start": start, **declared})
    return CommandAgent("mine", declaration, **(options or {}))


def written(directory: AttemptDirectory, name: str, round_name: str = "round-1") -> str:
    return (directory.artifacts(round_name) / name).read_text()


def test_it_has_the_instruction_the_model_and_the_round_in_variables(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    start = (
        f'echo "$EVOCODE_MODEL $EVOCODE_ROUND $PWD $EVOCODE_INSTRUCTION" >{OUT}/a; cp $EVOCODE_INSTRUCTION_FILE {OUT}/b'
    )
    (record,) = attempt(command(start, options={"model": "a/model"}), make_task('Do "this" for $5.\n'))
    assert record.outcome == "passed"
    assert written(directory, "a") == 'a/model round-1 /app Do "this" for $5.\n\n'
    assert written(directory, "b") == 'Do "this" for $5.\n'


def test_a_command_of_the_projects_configuration_continues_in_later_rounds(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pytest-evocode.commands.mine]\n"
        """start = 'echo "start $EVOCODE_MODEL" >>log'\ncontinue = 'echo go on >>log'\n"""
    )
    declarations = read_declarations([tmp_path / "pyproject.toml"])
    agent = make_agent("cmd:mine", {"model": Option("a/model", "here")}, declarations)
    attempt(agent, make_task("One.\n", "Two.\n", "Three.\n", check=f"cp /app/log {OUT}; {PASS}"))
    assert written(directory, "log", "round-3") == "start a/model\ngo on\ngo on\n"
    with pytest.raises(UsageError, match="did you mean 'rules'"):
        make_agent("cmd:mine", {"rule": Option("x", "here")}, declarations)


def test_later_rounds_start_anew_where_there_is_no_line_to_continue_with(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    attempt(command("echo start >>log"), make_task("One.\n", "Two.\n", check=f"cp /app/log {OUT}; {PASS}"))
    assert written(directory, "log", "round-2") == "start\nstart\n"


def test_it_needs_no_network(make_task: MakeTask, attempt: Attempt) -> None:
    (record,) = attempt(command("true"), make_task("One.\n", toml='[environment]\nnetwork_mode = "no-network"\n'))
    assert record.outcome == "passed"


def test_it_gets_the_declared_secrets_and_they_are_in_no_record(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD_OF_MINE", "open-sesame-now")
    agent = command(f"echo $WORD_OF_MINE ${{#WORD_OF_MINE}} >{OUT}/word", secrets="WORD_OF_MINE")
    attempt(agent, make_task("One.\n"))
    assert written(directory, "word") == "[WORD_OF_MINE] 15\n"
    with pytest.raises(UsageError, match="cmd:mine needs WORD_OF_MINE, which is not set"):
        agent.check({}, Budget())


def test_certificates_are_trusted_while_it_is_installed() -> None:
    declaration = CommandDeclaration(start="mine", install="pip install mine")
    installation = CommandAgent("mine", declaration, ca="ca.pem").installation
    assert installation is not None
    assert installation.ca == Path("ca.pem")


def test_it_is_installed_as_root_before_the_first_attempt(make_task: MakeTask, attempt: Attempt) -> None:
    agent = command(
        "/usr/local/bin/mine", install="echo 'touch /app/done' >/usr/local/bin/mine; chmod +x /usr/local/bin/mine"
    )
    (record,) = attempt(agent, make_task("One.\n", check=f"[ -e /app/done ] && {PASS}"))
    assert record.outcome == "passed"


def test_a_command_that_fails_is_an_error_with_its_last_lines(make_task: MakeTask, attempt: Attempt) -> None:
    (record,) = attempt(command("echo no such model; exit 3"), make_task("One.\n"))
    assert (record.outcome, record.cause) == (
        "error",
        "cmd:mine ended with exit code 3. Its last lines:\nno such model",
    )


def test_at_the_deadline_it_is_ended_and_what_there_is_counts(make_task: MakeTask, attempt: Attempt) -> None:
    task = make_task("One.\n", check=f"[ -e a ] && {PASS}", timeout=2)
    (record,) = attempt(command("touch a; sleep 600"), task)
    assert (record.outcome, record.timed_out) == ("passed", "agent")


def rules(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "rules.md").write_text("Be kind.\n")
    return {"rules": tmp_path / "rules.md"}


def test_rules_are_in_the_workspace_during_its_turns_only(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    agent = command(f"cat docs/AGENTS.md >{OUT}/seen", rules_file="docs/AGENTS.md", options=rules(tmp_path))
    task = make_task("One.\n", "Two.\n", check=f"find /app -mindepth 1 >{OUT}/left; {PASS}")
    attempt(agent, task)
    for name in ("round-1", "round-2"):
        assert written(directory, "seen", name) == "Be kind.\n\n"
        assert written(directory, "left", name) == ""


def test_rules_come_before_those_of_the_task_and_are_cut_off_again(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    line = f"cp AGENTS.md {OUT}/seen; echo Be brief. >>AGENTS.md"
    task = make_task("One.\n", check=f"cat AGENTS.md >{OUT}/left; {PASS}", files={"AGENTS.md": "Be quick.\n"})
    attempt(command(line, options=rules(tmp_path)), task)
    assert written(directory, "seen") == "Be kind.\n\nBe quick.\n"
    assert written(directory, "left") == "Be quick.\nBe brief.\n"


def test_what_it_makes_of_the_rules_file_stays(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    task = make_task("One.\n", check=f"cat AGENTS.md >{OUT}/left; {PASS}")
    attempt(command("echo My own. >AGENTS.md", options=rules(tmp_path)), task)
    assert written(directory, "left") == "My own.\n"


def test_rules_are_nothing_for_git(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    start = f"git init -q; cp .git/info/exclude {OUT}/before"
    later = f"git status --porcelain >{OUT}/status"
    task = make_task("One.\n", "Two.\n", check=f"cp .git/info/exclude {OUT}/after; {PASS}")
    attempt(command(start, **{"continue": later}, options=rules(tmp_path)), task)
    assert written(directory, "status", "round-2") == ""
    assert written(directory, "after", "round-2") == written(directory, "before")


def test_the_prompt_goes_before_the_first_instruction(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "prompt.md").write_text("You plan first.\n")
    agent = command(f'echo "$EVOCODE_INSTRUCTION" >{OUT}/told', options={"prompt": tmp_path / "prompt.md"})
    attempt(agent, make_task("One.\n", "Two.\n"))
    assert written(directory, "told") == "You plan first.\n\nOne.\n\n"
    assert written(directory, "told", "round-2") == "Two.\n\n"


TRAJECTORY = {
    "schema_version": "ATIF-v1.7",
    "session_id": "x",
    "agent": {"name": "mine", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "One."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Done.",
            "metrics": {"prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.5},
        },
    ],
}


def test_the_trajectory_that_it_writes_is_the_rounds(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    start = f"[ ! -e steps.json ] && cat >steps.json <<'END'\n{json.dumps(TRAJECTORY)}\nEND"
    records = attempt(command(start, trajectory="steps.json"), make_task("One.\n", "Two.\n"))
    for record in records:
        assert record.usage is not None
        assert (record.usage.tokens, record.usage.cost_usd) == (15, 0.5)
        found = atif.read(directory.path / "steps" / record.round / "agent/trajectory.json")
        assert [step["message"] for step in found["steps"]] == ["One.", "Done."]


def test_a_trajectory_of_another_form_is_an_error(make_task: MakeTask, attempt: Attempt) -> None:
    (record,) = attempt(command("echo '{}' >t.json", trajectory="t.json"), make_task("One.\n"))
    assert record.cause.startswith("cmd:mine wrote no ATIF trajectory to /app/t.json: ")


@pytest.mark.parametrize("path", ["/etc/rules", "../rules", "."])
def test_a_rules_file_is_below_the_workspace(path: str) -> None:
    with pytest.raises(ValidationError, match="it has to be a path below the working directory"):
        command("true", rules_file=path)


@pytest.mark.parametrize("budget", [Budget(tokens=1), Budget(turns=1), Budget(cost=1), Budget(total_cost=1)])
def test_a_budget_of_what_nobody_counts_is_refused(budget: Budget) -> None:
    with pytest.raises(UsageError, match="cmd:mine does not report what it uses"):
        command("true").check({}, budget)
    command("true", trajectory="turn.json").check({}, budget)
    command("true").check({}, Budget(minutes=1))
