"""An attempt's files and its task on their way between machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evocode.environments.kept_tasks import KeptTasks
from pytest_evocode.plugin.cluster.orders import (
    FILE,
    REMOVED,
    FileChanges,
    FileCopies,
    pack_task,
    read_tree,
    write_tree,
)
from pytest_evocode.tasks.content_hash import hash_directory

pytestmark = pytest.mark.every_python


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with an attempt's files."""
    directory = tmp_path / "here"
    (directory / "steps/round-1/artifacts").mkdir(parents=True)
    (directory / "state.json").write_text("{}")
    (directory / "steps/round-1/artifacts/.env").write_text("a=1")
    (directory / "steps/round-1/large").write_bytes(bytes(range(256)) * 40_000)
    (directory / "steps/.round.json.k3").write_text("half of ")
    return directory


def send(changes: FileChanges, copies: FileCopies) -> list[str]:
    """Send what has changed, and say what that was."""
    sent = list(changes.messages())
    for message in sent:
        copies.take(message)
    return sorted({message[1] for message in sent})


def test_only_what_changed_is_sent_and_large_files_in_parts(source: Path, tmp_path: Path) -> None:
    changes, copies = FileChanges(source), FileCopies(tmp_path / "there")
    assert send(changes, copies) == ["state.json", "steps/round-1/artifacts/.env", "steps/round-1/large"]
    assert read_tree(tmp_path / "there") == read_tree(source)
    assert send(changes, copies) == []
    (source / "state.json").write_text('{"a": 1}')
    (source / "steps/round-1/large").unlink()
    assert send(changes, copies) == ["state.json", "steps/round-1/large"]
    assert read_tree(tmp_path / "there") == read_tree(source)


def test_a_file_is_whole_or_not_there(source: Path, tmp_path: Path) -> None:
    copies = FileCopies(tmp_path / "there")
    copies.take((FILE, "steps/x", b"first part, ", False))
    assert read_tree(tmp_path / "there") == {}
    copies.take((FILE, "steps/x", b"second part", True))
    assert read_tree(tmp_path / "there") == {"steps/x": b"first part, second part"}


@pytest.mark.parametrize("kind", [FILE, REMOVED])
def test_nothing_is_written_or_removed_outside(kind: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "other").write_text("stays")
    with pytest.raises(ValueError, match="is not in"):
        FileCopies(tmp_path / "there").take((kind, "../other", b"", True)[: 4 if kind == FILE else 2])
    assert (tmp_path / "other").read_text() == "stays"


def test_what_is_brought_back_takes_the_place_of_what_was_there(source: Path, tmp_path: Path) -> None:
    write_tree(source, {"state.json": b"new"})
    assert read_tree(source) == {"state.json": b"new"}


def test_a_task_is_brought_once_and_is_the_same_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    task = tmp_path / "task"
    (task / "__pycache__").mkdir(parents=True)
    (task / "__pycache__/x.pyc").write_text("")
    (task / "solve.sh").write_text("true")
    (task / "solve.sh").chmod(0o755)
    os.symlink("solve.sh", task / "link")
    fetched: list[bytes] = []

    def fetch() -> bytes:
        fetched.append(pack_task(task))
        return fetched[-1]

    digest = hash_directory(task)
    placed = [KeptTasks().place(digest, "task", fetch) for _ in range(2)]
    assert len(fetched) == 1
    assert placed[0] == placed[1]
    assert hash_directory(placed[0]) == digest
    assert not (placed[0] / "__pycache__").exists()
    (placed[0] / "solve.sh").write_text("changed by somebody")
    assert hash_directory(KeptTasks().place(digest, "task", fetch)) == digest
