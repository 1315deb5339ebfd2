"""The tasks that a node of a cluster keeps, and how long."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments import kept_tasks
from pytest_evocode.environments.kept_tasks import KeptTasks
from pytest_evocode.plugin.cluster.orders import pack_task
from pytest_evocode.tasks.content_hash import hash_directory

DAY = 86_400.0


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the time is."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    return [1_800_000_000.0]


@pytest.fixture
def tasks(clock: list[float]) -> KeptTasks:
    return KeptTasks(now=lambda: clock[0])


def make(tmp_path: Path, name: str, size: int = 1000) -> tuple[str, bytes]:
    """A task's hash and archive."""
    directory = tmp_path / "made" / name
    directory.mkdir(parents=True)
    (directory / "task.toml").write_text(f"# {name}".ljust(size))
    return hash_directory(directory), pack_task(directory)


def place(tasks: KeptTasks, made: tuple[str, bytes], name: str) -> Path:
    return tasks.place(made[0], name, lambda: made[1])


def test_what_nobody_used_for_a_month_goes_when_another_task_comes(
    tasks: KeptTasks, clock: list[float], tmp_path: Path
) -> None:
    a, b, c = (make(tmp_path, name) for name in "abc")
    paths = place(tasks, a, "a"), place(tasks, b, "b")
    clock[0] += 20 * DAY
    place(tasks, b, "b")
    clock[0] += 20 * DAY
    place(tasks, c, "c")
    assert [path.exists() for path in paths] == [False, True]


def test_the_longest_unused_go_when_all_are_too_large(
    tasks: KeptTasks, clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tasks, "MOST_BYTES", 25_000)
    made = {name: make(tmp_path, name, 10_000) for name in "abcd"}
    for name in "abc":
        place(tasks, made[name], name)  # All within an hour: none goes, because it may be about to be used.
        clock[0] += 60
    assert [kept.home.name[:64] for kept in tasks.all()] == [made[name][0] for name in "abc"]
    clock[0] += 2 * 3600
    place(tasks, made["d"], "d")
    assert [kept.home.name[:64] for kept in tasks.all()] == [made[name][0] for name in "cd"]


def test_a_task_that_an_attempt_uses_stays(tasks: KeptTasks, clock: list[float], tmp_path: Path) -> None:
    a, b, c = (make(tmp_path, name) for name in "abc")
    path = place(tasks, a, "a")
    with tasks.used(a[0], "a"), tasks.used(a[0], "a"):
        clock[0] += 40 * DAY
        place(tasks, b, "b")
        assert path.exists()
        assert "task a of a cluster" not in CliRunner().invoke(clean_command, ["--dry-run"]).output
    clock[0] += 1
    place(tasks, c, "c")
    assert not path.exists()


def test_clean_removes_tasks(tasks: KeptTasks, tmp_path: Path) -> None:
    path = place(tasks, make(tmp_path, "a"), "a")
    assert "removed task a of a cluster, 0.0 MB\n" in CliRunner().invoke(clean_command).output
    assert not path.exists()


def test_attempts_that_want_the_same_task_at_once_get_it_once(tasks: KeptTasks, tmp_path: Path) -> None:
    task_hash, archive = make(tmp_path, "a")
    fetched: list[str] = []
    found: list[str] = []
    both = threading.Barrier(4)

    def fetch() -> bytes:
        fetched.append(task_hash)
        return archive

    def want() -> None:
        both.wait()
        found.append(hash_directory(tasks.place(task_hash, "a", fetch)))

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [task_hash] * 4
    assert fetched == [task_hash]


def test_tasks_with_the_same_contents_and_other_names_are_both_kept(tasks: KeptTasks, tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "task.toml").write_text("# the same")
        found.append(tasks.place(hash_directory(directory), name, partial(pack_task, directory)))
    assert [path.name for path in found] == ["first", "second"]
    assert all((path / "task.toml").is_file() for path in found)
