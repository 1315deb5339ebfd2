"""Files of a harness."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents.harness import Skill, read_file, read_skills
from pytest_evocode.errors import UsageError


def skill(directory: Path, name: str, text: str) -> Path:
    path = directory / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_skills_say_what_they_are_called_and_what_they_are_for(tmp_path: Path) -> None:
    skill(tmp_path, "b", '---\nname: "baking"\ndescription: How to bake.\n---\nWith flour.\n')
    skill(tmp_path, "a", "---\ndescription: >\n  How to fish\n  at night.\nversion: 1\n---\nWith a net.\n")
    assert read_skills(tmp_path) == [Skill("a", "How to fish at night.", "a"), Skill("baking", "How to bake.", "b")]


@pytest.mark.parametrize("text", ["With a net.\n", "---\nname: fishing\n---\n", "---\ndescription: never ends\n"])
def test_a_skill_without_a_description_is_refused(tmp_path: Path, text: str) -> None:
    path = skill(tmp_path, "a", text)
    with pytest.raises(UsageError) as caught:
        read_skills(tmp_path)
    assert str(caught.value).startswith(f"{path}:1: it has to begin with a block between --- lines")


def test_a_directory_without_skills_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no skills found"):
        read_skills(tmp_path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it has to be UTF-8 text"):
        read_file(tmp_path / "rules")
