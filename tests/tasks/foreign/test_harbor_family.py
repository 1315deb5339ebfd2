"""Single-step tasks in Harbor's format as rounds of one task."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tasks.foreign.conftest import Imported, WriteFiles, refused
from tests.tasks.foreign.harbor_tasks import FILES, SECOND, TOML


@pytest.fixture
def first(write_files: WriteFiles) -> Path:
    directory = write_files("family/greet", FILES)
    (directory / "solution/solve.sh").chmod(0o755)
    return directory


def test_each_task_is_a_round_in_the_given_order(first: Path, write_files: WriteFiles) -> None:
    imported = Imported("harbor", write_files("family/leave", FILES, SECOND), first)
    assert [round_.name for round_ in imported.task.rounds] == ["round-1", "round-2"]
    assert "| round-1 | leave |\n| round-2 | greet |" in imported.text("IMPORT.md")
    assert imported.text("steps/round-1/instruction.md") == "Write a farewell into farewell.txt.\n"
    assert [imported.text(f"steps/round-{number}/tests/words.txt") for number in (1, 2)] == ["bye\n", "hello\n"]
    assert all(round_.has_solution and round_.has_script for round_ in imported.task.rounds)
    assert os.access(imported.directory / "steps/round-2/solution/solve.sh", os.X_OK)
    assert imported.text("environment/names.txt") == "Ada\n"


def test_what_a_step_can_say_is_the_round_s_own_and_all_else_the_task_s(first: Path, write_files: WriteFiles) -> None:
    slower = TOML.replace("90.0", "200").replace("120.0", '60\nuser = "nobody"') + 'artifacts = ["/app/out"]\n'
    second = write_files(
        "family/leave",
        FILES,
        {"task.toml": 'artifacts = ["/app/log"]\n' + slower.replace('artifacts = ["/app/out"]\n', "")},
    )
    imported = Imported("harbor", first, second)
    rounds = imported.task.rounds
    assert [round_.verifier_timeout for round_ in rounds] == [90.0, 200.0]
    assert [(round_.agent_timeout, round_.agent_user) for round_ in rounds] == [(120.0, None), (60.0, "nobody")]
    assert [[each.source for each in round_.artifacts] for round_ in rounds] == [[], ["/app/log"]]
    config = imported.task.config
    assert (config.environment.memory_mb, config.solution.env) == (2048, {"GREETING": "${GREETING:-hello}"})
    assert config.task is not None
    assert config.task.name == "imported/made"


def test_the_name_stays_in_its_organisation(first: Path, write_files: WriteFiles) -> None:
    named = TOML + '\n[task]\nname = "shop/greet"\ndescription = "Greets."\n'
    task = Imported("harbor", write_files("family/named", FILES, {"task.toml": named}), first).task.config.task
    assert task is not None
    assert (task.name, task.description) == ("shop/made", "Greets.")


def test_tasks_that_agree_have_one_note_each_on_what_rounds_are(first: Path, write_files: WriteFiles) -> None:
    notes = Imported("harbor", first, write_files("family/leave", FILES, SECOND)).notes
    assert len(notes) == 2
    assert notes[0].startswith("family/leave/solution/solve.sh: in round-2 it starts from where the round before left")
    assert notes[1].startswith("family/leave: its suite verifies what it asks for, and nothing of the tasks before it")


@pytest.mark.parametrize(
    ("place", "text", "note"),
    [
        ("task.toml", TOML.replace('"2G"', '"4G"'), "task.toml:14: environment.memory is not carried over"),
        ("task.toml", TOML.replace("cpus = 1\n", ""), "task.toml:12: environment.cpus is not given, and"),
        ("task.toml", TOML.replace("easy", "hard"), "task.toml:4: metadata.difficulty is not carried over"),
        ("task.toml", TOML + 'LOUD = "1"\n', "task.toml:16: solution.env is not carried over"),
        ("environment/names.txt", "Bob\n", "environment/names.txt: is another one; all rounds start from"),
        ("environment/more.txt", "Bob\n", "environment/more.txt: is there only; all rounds start from"),
        ("environment/names.txt", None, "environment/names.txt: is missing; all rounds start from"),
        ("README.md", "Read me.\n", "README.md: is no part of the format, and was left out"),
        ("solution/solve.sh", None, "family/leave: there is no solution/solve.sh; write steps/round-2/solution"),
        ("tests/test.sh", "#!/bin/bash\ncurl -L x\n", "tests/test.sh:2: curl fetches what the suite needs"),
    ],
)
def test_what_differs_is_reported_with_its_place(
    first: Path, write_files: WriteFiles, place: str, text: str | None, note: str
) -> None:
    notes = Imported("harbor", first, write_files("family/leave", FILES, {**SECOND, place: text})).notes
    assert any(note in each for each in notes)


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("task.toml", TOML + '[[steps]]\nname = "a"\n', "family/leave"),
        ("task.toml", TOML.replace("cpus = 1", "cpus = 0"), "family/leave/task.toml:13: environment.cpus: must be mo"),
        ("task.toml", "version =\n", "family/leave/task.toml:1: not valid TOML"),
        ("instruction.md", None, "family/leave/instruction.md"),
        ("tests/test.sh", None, "family/leave"),
        ("environment/docker-compose.yaml", "services: [", "not valid YAML"),
    ],
)
def test_mistakes_are_refused_with_their_place(
    first: Path, write_files: WriteFiles, place: str, text: str | None, message: str
) -> None:
    assert message in refused("harbor", first, write_files("family/leave", FILES, {**SECOND, place: text}))


def test_tasks_of_several_steps_run_as_they_are(first: Path, write_files: WriteFiles) -> None:
    steps = {
        f"steps/a/{place}": text
        for place, text in FILES.items()
        if place.partition("/")[0] in ("tests", "solution", "instruction.md")
    }
    several = write_files("family/several", FILES, {"task.toml": TOML + '[[steps]]\nname = "a"\n', **steps})
    message = refused("harbor", several, first)
    assert message.startswith("family/several/task.toml:18: has [[steps]]: a task of several steps runs as it is")


def test_a_task_that_is_named_twice_is_refused(first: Path, write_files: WriteFiles) -> None:
    second = write_files("family/leave", FILES, SECOND)
    assert "family/leave: is named twice" in refused("harbor", first, second, second)


def test_links_out_of_a_task_are_refused(first: Path, write_files: WriteFiles) -> None:
    second = write_files("family/leave", FILES, SECOND)
    (second / "tests/passwd").symlink_to("/etc/passwd")
    assert "tests/passwd: is a link to /etc/passwd, which is outside of" in refused("harbor", first, second)
