"""What a broken turn leaves of what was paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents.journal import Journal
from pytest_evocode.errors import ResumeRefused

WHO = {"made_by": {"spec": "openai/gpt-5"}, "task_hash": "1"}


def test_a_later_session_finds_what_was_paid_for_and_adds_to_it(tmp_path: Path) -> None:
    path = tmp_path / "agent/journal.jsonl"
    Journal(path, of=WHO).add({"reply": 1})
    second = Journal(path, of=WHO)
    assert second.earlier == [{"reply": 1}]
    second.add({"result": 2})
    assert Journal(path, of=WHO).earlier == [{"reply": 1}, {"result": 2}]


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\r", "\x0c", "\x1c"])
def test_texts_may_have_any_line_separator(tmp_path: Path, end: str) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path).add({"result": f"one{end}two"})
    assert Journal(path).earlier == [{"result": f"one{end}two"}]


def test_an_entry_that_was_cut_off_within_a_character_is_dropped_and_not_what_is_before_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.add({"reply": "whole"})
    journal.add({"reply": "ä"})
    written = path.read_bytes()
    path.write_bytes(written[: written.rfind("ä".encode()) + 1])
    after = Journal(path)
    assert after.earlier == [{"reply": "whole"}]
    after.add({"reply": "new"})
    assert Journal(path).earlier == [{"reply": "whole"}, {"reply": "new"}]


@pytest.mark.parametrize("other", [{**WHO, "made_by": {"spec": "openai/gpt-5.1"}}, {**WHO, "task_hash": "2"}])
def test_nobody_goes_on_with_what_another_agent_said_or_at_another_task(
    tmp_path: Path, other: dict[str, object]
) -> None:
    path = tmp_path / "journal.jsonl"
    Journal(path, of=WHO).add({"reply": 1})
    with pytest.raises(ResumeRefused, match=r"journal\.jsonl: this turn was begun by"):
        Journal(path, of=other)
    assert Journal(path, of=WHO).earlier == [{"reply": 1}]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("no JSON\n")
    with pytest.raises(ResumeRefused, match=r"journal\.jsonl: the journal is damaged: .*; remove it"):
        Journal(path)


def test_a_turn_that_has_ended_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.add(1)
    journal.close()
    assert list(tmp_path.iterdir()) == []
