"""Tasks of Terminal-Bench 1 as tasks of one round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from tests.tasks.foreign.conftest import Imported, WriteFiles, refused
from tests.tasks.foreign.other_tasks import TERMINAL_BENCH

WriteTask = Callable[[Mapping[str, str | None]], Path]
CONFIG, COMPOSE = TERMINAL_BENCH["task.yaml"], TERMINAL_BENCH["docker-compose.yaml"]


@pytest.fixture(name="task")
def _task(write_files: WriteFiles) -> WriteTask:
    return lambda changed: write_files("done", TERMINAL_BENCH, changed)


def test_a_task_is_one_round(task: WriteTask) -> None:
    imported = Imported("terminal-bench", task({}))
    assert imported.files() == {
        *("IMPORT.md", "task.toml", "task.schema.json", "environment/Dockerfile", "environment/data.txt"),
        *("steps/round-1/instruction.md", "steps/round-1/solution/solve.sh", "steps/round-1/tests/test.sh"),
        *("steps/round-1/tests/run-tests.sh", "steps/round-1/tests/test_outputs.py"),
    }
    assert imported.text("steps/round-1/instruction.md") == "Write done into done.txt.\n"
    (round_,) = imported.task.rounds
    assert (round_.agent_timeout, round_.verifier_timeout) == (360, 60)
    config = imported.task.config
    assert config.task is not None
    assert (config.task.name, config.task.keywords) == ("terminal-bench/made", ("text",))
    assert config.metadata.model_extra == {"difficulty": "easy", "category": "files"}
    assert "# canary GUID 0\n" in imported.text("task.toml")
    assert [note.partition(": ")[0] for note in imported.notes] == ["done/run-tests.sh"]


def test_scripts_are_executable_and_name_the_command_that_wrote_them(task: WriteTask) -> None:
    source = task({})
    for name in ("run-tests.sh", "solution.sh"):
        (source / name).chmod(0o644)
    imported = Imported("terminal-bench", source)
    for place in ("tests/run-tests.sh", "tests/test.sh", "solution/solve.sh"):
        assert (imported.directory / "steps/round-1" / place).stat().st_mode & 0o111 == 0o111
    for place in ("IMPORT.md", "steps/round-1/tests/test.sh"):
        assert "evocode new --from" in imported.text(place)


def test_a_task_that_is_given_as_another_format_is_recognised(task: WriteTask) -> None:
    with pytest.raises(UsageError, match=r"; this looks like terminal-bench$"):
        Imported("harbor", task({}))


def test_services_beside_the_client_are_carried_over_without_what_the_runner_fills_in(task: WriteTask) -> None:
    more = COMPOSE + "    privileged: true\n  db:\n    image: postgres:16\n    depends_on:\n      - client\n"
    imported = Imported("terminal-bench", task({"docker-compose.yaml": more}))
    compose = imported.text("environment/docker-compose.yaml")
    assert "main:\n    privileged: true\n" in compose
    assert "db:\n    depends_on:\n    - main\n    image: postgres:16\n" in compose
    assert "T_BENCH" not in compose
    assert any(
        note.startswith("done/docker-compose.yaml: the agent's service is called main") for note in imported.notes
    )


def test_the_only_service_is_the_agents_whatever_it_is_called_and_gets_no_tests(task: WriteTask) -> None:
    compose = (
        "services:\n  app:\n    build: .\n    image: x\n    volumes:\n      - ./tests:/tests\n      - ./data.txt:/d\n"
    )
    imported = Imported("terminal-bench", task({"docker-compose.yaml": compose}))
    assert imported.text("environment/docker-compose.yaml") == (
        "services:\n  main:\n    volumes:\n    - ./data.txt:/d\n"
    )


def test_commands_are_a_script_unless_they_type_into_a_program(task: WriteTask) -> None:
    commands = "# canary\n- command: echo a > a\n  min_timeout_sec: 1\n- command: |-\n    cat a\n    cat a\n"
    imported = Imported("terminal-bench", task({"solution.sh": None, "solution.yaml": commands}))
    assert imported.text("steps/round-1/solution/solve.sh").endswith("solution.yaml.\necho a > a\ncat a\ncat a\n")


def test_what_has_no_place_is_reported(task: WriteTask) -> None:
    changed: dict[str, str | None] = {
        "task.yaml": CONFIG.replace(": pytest", ": bird") + "mood: calm\nrun_tests_in_same_shell: true\n",
        "Dockerfile": "FROM a\nCOPY data.txt tests /x/\n",
        "solution.sh": None,
        "solution.yaml": "# canary\n- command: vim\n  block: false\n",
    }
    notes = Imported("terminal-bench", task(changed)).notes
    for note in (
        "Dockerfile:2: takes tests into the image",
        "solution.yaml:2: types into a program that is running",
        "task.yaml:13: mood: has no counterpart here",
        "task.yaml:10: parser_name: what bird reads",
        "task.yaml:14: run_tests_in_same_shell: ",
    ):
        assert any(each.startswith(f"done/{note}") for each in notes), note


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task.yaml": CONFIG.replace("instruction:", "text:")}, "done/task.yaml:2: instruction: is missing; add it"),
        ({"run-tests.sh": None}, "done/run-tests.sh: there is no such file; it runs the tests"),
        ({"Dockerfile": None}, "done/Dockerfile: there is no such file; the agent's environment is built from it"),
        (
            {"docker-compose.yaml": COMPOSE.replace("client:", "agent:") + "  db: {}\n"},
            "done/docker-compose.yaml:1: services: has no client, in which Terminal-Bench's agents work; add it",
        ),
        (
            {"docker-compose.yaml": COMPOSE + "    hostname: ${T_BENCH_X}\n"},
            "done/docker-compose.yaml:2: services.client: ${T_BENCH_X is filled in by Terminal-Bench's runner only",
        ),
        ({"solution.sh": None, "solution.yaml": "- run: it\n"}, "done/solution.yaml:1: must be a list of commands"),
    ],
)
def test_what_is_not_in_the_format_is_refused(task: WriteTask, changed: Mapping[str, str | None], message: str) -> None:
    assert refused("terminal-bench", task(changed)).startswith(message)
