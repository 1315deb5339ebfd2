"""Templates in environment variables are filled from the host's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import resolve_env

PATH = Path("task.toml")


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("plain", "plain"),
        ("${HOST}", "db"),
        ("http://${HOST}:${PORT:-80}/", "http://db:80/"),
        ("${HOST:-other}", "db"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
        ("$HOST", "$HOST"),
        ("$$", "$$"),
        ("${1}", "${1}"),
        ("${HOST", "${HOST"),
        ("${HOST%x}", "${HOST%x}"),
        ("${NESTED}", "${HOST}"),
    ],
)
def test_only_braced_names_are_filled_in(written: str, filled: str) -> None:
    environ = {"HOST": "db", "EMPTY": "", "NESTED": "${HOST}"}
    assert resolve_env({"X": written}, environ, path=PATH) == {"X": filled}


def test_a_variable_without_value_or_default_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text('[environment.env]\nKEY = "${API_KEY}"\n')
    with pytest.raises(TaskError) as caught:
        resolve_env({"KEY": "${API_KEY}"}, {}, path=path)
    assert caught.value.line == 2
    assert str(caught.value) == (
        f"{path}:2: API_KEY not set in the environment; export it or give a default: ${{API_KEY:-value}}"
    )


def test_all_missing_variables_are_named_once() -> None:
    with pytest.raises(TaskError, match=r"task\.toml: A, B not set in the environment"):
        resolve_env({"X": "${A}${B}", "Y": "${A}"}, {}, path=Path("nowhere/task.toml"))


def test_the_templates_themselves_are_left_alone() -> None:
    env = {"X": "${HOST}"}
    resolve_env(env, {"HOST": "db"}, path=PATH)
    assert env == {"X": "${HOST}"}
