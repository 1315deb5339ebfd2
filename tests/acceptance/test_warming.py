"""``--evocode-warm``: images are built and reference solutions played once, for later sessions to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from pytest_evocode.agents import RoundContext, RoundTranscript
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = pytest.mark.usefixtures("cache")

INSTALLED = """
from pytest_evocode.environments import Installation

class Somebody:
    name = "somebody"
    installation = Installation("a tool", "touch /usr/local/bin/tool; {end}")

    def check(self, environ, budget):
        raise AssertionError("no agent is to work")

    def run_round(self, context):
        raise AssertionError("no agent is to work")
"""


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rounds whose reference solutions were played in this process."""
    names: list[str] = []
    run_round = OracleAgent.run_round

    def remember(self: OracleAgent, context: RoundContext) -> RoundTranscript:
        names.append(f"{context.task.name} {context.round.name}")
        return run_round(self, context)

    monkeypatch.setattr(OracleAgent, "run_round", remember)
    return names


def warm(run_tasks: RunTasks, *arguments: str) -> Session:
    return run_tasks("--evocode-warm", *arguments, "tasks", agent=None)


def test_what_is_selected_and_not_there_is_made_once_and_later_runs_find_all_of_it(
    write_task: WriteTask, write_native: WriteNative, run_tasks: RunTasks, played: list[str]
) -> None:
    write_task("a", 2)
    write_native("b", 1)
    images = warm(run_tasks, "-k", "image")
    assert images.outcomes == {"passed": 2, "deselected": 2}
    assert played == []
    assert images.text.count(" built in ") == 1, "the tasks have one image, which the first to need it builds"
    session = warm(run_tasks)
    assert session.outcomes == {"passed": 4}
    assert sorted(played) == ["a round-1", "a round-2", "b round-1"]
    session.has("*evocode warm*", "tasks/a *solutions *2 rounds played in *")
    assert not session.results.exists()
    played.clear()
    again = warm(run_tasks, "-v")
    assert (again.outcomes, played) == ({"passed": 4}, [])
    again.has("tasks/a/task.toml::warm::image PASSED (was there)*", "evocode: all is there, *")
    session = run_tasks("tasks/a/task.toml::oracle::round-2", replay=False)
    assert (session.outcomes, played) == ({"passed": 1, "skipped": 1}, ["a round-2"])


@pytest.mark.nightly  # By day tests/tasks has what is a change of a suite.
def test_what_is_there_is_made_again_for_another_suite_and_where_that_is_asked_for(
    write_task: WriteTask, write_native: WriteNative, run_tasks: RunTasks, played: list[str]
) -> None:
    task = write_task("a", 2)
    write_native("b", 1)
    assert warm(run_tasks).outcomes == {"passed": 4}
    played.clear()
    with (task / "steps/round-2/tests/test.sh").open("a") as file:
        file.write("# Another suite may need other packages.\n")
    assert warm(run_tasks).outcomes == {"passed": 4}
    assert played == ["a round-1", "a round-2"]
    played.clear()
    warm(run_tasks, "--cache-clear", "-k", "b")
    assert played == ["b round-1"]


@pytest.mark.slow
@pytest.mark.nightly
def test_what_has_been_cleaned_away_is_made_again(
    write_task: WriteTask, run_tasks: RunTasks, played: list[str]
) -> None:
    from click.testing import CliRunner

    from pytest_evocode.cli.kept import clean_command

    write_task("a", 2)
    write_task("b", 1)
    warm(run_tasks)
    played.clear()
    assert CliRunner().invoke(clean_command).exit_code == 0
    warm(run_tasks)
    assert sorted(played) == ["a round-1", "a round-2", "b round-1"]


@pytest.mark.nightly
def test_what_cannot_be_made_ready_fails_at_its_own_task(
    write_task: WriteTask, run_tasks: RunTasks, played: list[str]
) -> None:
    write_task("a", 1)
    write_task("b", 1, dockerfile=f"{DOCKERFILE}RUN echo last words; false\n")
    write_task("c", 3, solve={2: "echo no; exit 3"})
    write_task("d", 2, solve={2: "true"})
    write_task("e", 1, solve={1: None})  # Without reference solutions there is only an image.
    session = warm(run_tasks, "-rs")
    assert session.outcomes == {"passed": 5, "failed": 3, "skipped": 1}
    session.has(
        "*b image*",
        "*b/environment/Dockerfile:3: replayed on *ended with exit code 1*",
        "last words",
        "*c solutions*",
        "round-2: *the reference solution ended with exit code 3*",
        "*d solutions*",
        "round-2 failed: 1 of 2 cases failed *",
        "SKIPPED*the image cannot be had, see image",
    )
    session.lacks("*all is there*")
    assert "c round-3" not in played
    again = warm(run_tasks, "-k", "b or d")
    assert again.outcomes == {"passed": 1, "failed": 2, "skipped": 1, "deselected": 5}


@pytest.mark.nightly
def test_what_an_agent_needs_in_the_image_is_installed_and_the_agent_is_not_played(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile(somebody=INSTALLED.format(end="true"), other=INSTALLED.format(end="echo why; exit 3"))
    pytester.syspathinsert()
    session = warm(run_tasks, "-v", "--evocode-agent=somebody:Somebody", "--evocode-agent=nop")
    assert session.outcomes == {"passed": 3}
    session.has("*warming tasks for agent somebody:Somebody, nop*", "*::warm::install-*Somebody PASSED*")
    again = warm(run_tasks, "--evocode-agent=somebody:Somebody")
    again.has("evocode: all is there, *")
    failing = warm(run_tasks, "--evocode-agent=other:Somebody")
    assert failing.outcomes == {"passed": 2, "failed": 1}
    failing.has("a tool could not be installed in a sandbox*", "why")


@pytest.mark.parametrize(
    "option",
    ["--evocode-resume", "--evocode-shard=1/2", "--evocode-from=round-1", "--evocode-process", "--evocode-pin"],
)
def test_what_is_about_attempts_is_refused_beside_it(write_task: WriteTask, run_tasks: RunTasks, option: str) -> None:
    session = warm(run_tasks, option)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"--evocode-warm runs no agent and writes no results; leave out {option.partition('=')[0]}" in session.text


@pytest.mark.slow
@pytest.mark.nightly
def test_workers_make_tasks_ready_beside_one_another(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    write_task("b", 2)
    session = warm(run_tasks, "-n2")
    assert session.outcomes == {"passed": 4}
    session.has("*evocode warm*", "*solutions *2 rounds played in *")
    again = warm(run_tasks, "-n2")
    again.has("evocode: all is there, *")
    assert again.outcomes == {"passed": 4}


@pytest.mark.slow
@pytest.mark.nightly
def test_the_first_failure_ends_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, dockerfile=f"{DOCKERFILE}RUN false\n")
    write_task("b", 1, dockerfile=f"{DOCKERFILE}RUN sleep 4321\n")
    assert warm(run_tasks, "-x").outcomes == {"failed": 1}
