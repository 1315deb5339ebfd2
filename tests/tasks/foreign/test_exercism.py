"""Exercises of Exercism and of Aider's polyglot benchmark as tasks of one round."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.tasks.foreign.conftest import Imported, WriteFiles, refused
from tests.tasks.foreign.other_tasks import EXERCISM

WriteExercise = Callable[[Mapping[str, str | None]], Path]
CONFIG = ".meta/config.json"


@pytest.fixture(name="exercise")
def _exercise(write_files: WriteFiles) -> WriteExercise:
    return lambda changed: write_files("practice/two-fer", EXERCISM, changed)


def files(**kinds: list[str]) -> str:
    """A config.json with such files."""
    return json.dumps({"files": kinds})


def test_an_exercise_is_one_round(exercise: WriteExercise) -> None:
    imported = Imported("exercism", exercise({}))
    assert imported.files() == {
        *("IMPORT.md", "task.toml", "task.schema.json", "environment/Dockerfile", "environment/workspace/two_fer.py"),
        *("steps/round-1/instruction.md", "steps/round-1/solution/solve.sh", "steps/round-1/tests/test.sh"),
        *("steps/round-1/solution/files/two_fer.py", "steps/round-1/tests/files/two_fer_test.py"),
    }
    assert imported.text("steps/round-1/instruction.md") == (
        "# Introduction\n\n# Instructions\n\nShare.\n\n# Append\n\nWrite the solution into two_fer.py.\n"
    )
    assert "WORKDIR /exercise/two-fer\nCOPY workspace/ ./\n" in imported.text("environment/Dockerfile")
    config = imported.task.config
    assert config.task is not None
    assert (config.task.description, config.source) == ("One for you and one for me.", "Exercism: two-fer")


@pytest.mark.parametrize(
    ("test", "theirs", "ours", "command"),
    [
        ("a.spec.js", "test(1);\n  xtest(2);\nxit(3);\n", "test(1);\n  test(2);\nit(3);\n", "npm test"),
        ("src/test/java/ATest.java", '  @Disabled("x")\n  @Test\n', "  @Test\n", "gradle --no-daemon test"),
        ("tests/a.rs", "#[ignore]\n", "#[ignore]\n", "cargo test -- --include-ignored"),
        ("a_test.go", "go\n", "go\n", "go test ./..."),
        ("a_test.cpp", "c\n", "c\n", "cmake --build"),
    ],
)
def test_all_tests_of_a_language_run(exercise: WriteExercise, test: str, theirs: str, ours: str, command: str) -> None:
    changed = {CONFIG: files(solution=["two_fer.py"], test=[test]), test: theirs}
    imported = Imported("exercism", exercise(changed))
    assert imported.text(f"steps/round-1/tests/files/{test}") == ours
    assert command in imported.text("steps/round-1/tests/test.sh")
    assert any("tests are skipped at first" in note for note in imported.notes) == (theirs != ours)
    assert any("files.example names no file; write steps/round-1" in note for note in imported.notes)


def test_an_example_in_rust_brings_its_crates(exercise: WriteExercise) -> None:
    config = files(solution=["src/lib.rs"], test=["tests/a.rs"], example=[".meta/example.rs"])
    changed = {CONFIG: config, ".meta/example.rs": "", ".meta/Cargo-example.toml": "", "tests/a.rs": ""}
    places = Imported("exercism", exercise(changed)).files()
    assert {f"steps/round-1/solution/files/{each}" for each in ("src/lib.rs", "Cargo.toml")} <= places


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({CONFIG: "{"}, f"practice/two-fer/{CONFIG}:1: not valid JSON"),
        ({CONFIG: "[]"}, f"practice/two-fer/{CONFIG}: must be an object"),
        ({CONFIG: files(solution=["a.py"])}, f"practice/two-fer/{CONFIG}: files.test names no file"),
        ({CONFIG: '{"files": {"test": "a"}}'}, f"practice/two-fer/{CONFIG}: files.test must be a list"),
        (
            {CONFIG: files(solution=["a.ex"], test=["a_test.exs"])},
            f"practice/two-fer/{CONFIG}: files.test: a_test.exs is in a language that is not known here (py, go, rs",
        ),
        ({CONFIG: files(solution=["a.py"], test=["../a.py"])}, f"practice/two-fer/{CONFIG}: ../a.py is outside of"),
        ({"two_fer_test.py": None}, "practice/two-fer/two_fer_test.py: there is no such file, which"),
        (
            {each: None for each in EXERCISM if each.startswith(".docs/")},
            "practice/two-fer/.docs/instructions.md: there is no such file; it is the request of the exercise",
        ),
    ],
)
def test_what_is_not_in_the_format_is_refused(
    exercise: WriteExercise, changed: Mapping[str, str | None], message: str
) -> None:
    assert refused("exercism", exercise(changed)).startswith(message)
