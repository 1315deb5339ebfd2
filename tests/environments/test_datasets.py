"""Repositories that are cloned into the cache by URL and commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments.datasets import Dataset, fetched, parse_dataset
from pytest_evocode.errors import UsageError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(directory: Path, *arguments: str) -> str:
    """What git prints of a repository that nobody else configures."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(name="repository")
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits, and a cache that is empty."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    repository = tmp_path / "some tasks.git"
    repository.mkdir()
    git(repository, "init", "--quiet")
    for text in ("old", "new"):
        (repository / "tasks").mkdir(exist_ok=True)
        (repository / "tasks/file").write_text(text)
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", text)
    return repository


@pytest.mark.parametrize(
    ("text", "dataset", "name"),
    [
        (
            f"git+https://h.org/o/n.git@{COMMIT}#a/./b/",
            Dataset("https://h.org/o/n.git", COMMIT, "a/b"),
            "n-0123456789ab",
        ),
        (f"git+ssh://git@h.org/o/n@{COMMIT}", Dataset("ssh://git@h.org/o/n", COMMIT, ""), "n-0123456789ab"),
        (f"git+git@h.org:n@{COMMIT}#a", Dataset("git@h.org:n", COMMIT, "a"), "n-0123456789ab"),
        (f"git+../n e/@{COMMIT}#a", Dataset("/somewhere/n e", COMMIT, "a"), "n-e-0123456789ab"),
        (f"git+file:///x/n@{COMMIT}", Dataset("file:///x/n", COMMIT, ""), "n-0123456789ab"),
    ],
)
def test_a_dataset_is_written_as_url_commit_and_path(text: str, dataset: Dataset, name: str) -> None:
    assert parse_dataset(text, Path("/somewhere/here")) == dataset
    assert dataset.name == name


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"https://h.org/n@{COMMIT}", "write it as git"),
        ("git+", "write it as git"),
        ("git+https://h.org/n", "name its commit, all 40 digits"),
        ("git+https://h.org/n@main", "name its commit, all 40 digits"),
        (f"git+https://h.org/n@{COMMIT[:12]}#tasks", "name its commit, all 40 digits"),
        (f"git+https://h.org/n@{COMMIT}#../x", "relative and without"),
        (f"git+https://h.org/n@{COMMIT}#/x", "relative and without"),
    ],
)
def test_what_is_no_pinned_dataset_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_dataset(text, Path("/"))


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_any_commit_is_cloned_once_and_needs_its_source_no_more(repository: Path, scheme: str) -> None:
    for revision, text in (("HEAD~1", "old"), ("HEAD", "new")):
        dataset = Dataset(f"{scheme}{repository}", git(repository, "rev-parse", revision), "tasks")
        with fetched(dataset) as directory:
            assert (directory / "file").read_text() == text
            (directory / "mark").touch()
    repository.rename(repository.with_name("gone"))
    with fetched(dataset) as directory:
        assert (directory / "mark").exists()


def test_what_cannot_be_had_is_one_sentence_and_leaves_no_clone(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    for dataset, why in (
        (Dataset(str(repository.with_name("none")), head, ""), "none cannot be cloned: fatal: "),
        (Dataset(str(repository), COMMIT, ""), f"has no commit {COMMIT}: fatal: "),
    ):
        with pytest.raises(UsageError, match=why) as error, fetched(dataset):
            pass
        assert "\n" not in str(error.value)
        assert not dataset.clone.exists()
    with (
        pytest.raises(UsageError, match=f"has no directory rounds at {head[:12]}"),
        fetched(Dataset(str(repository), head, "rounds")),
    ):
        pass


def test_clean_removes_clones_that_no_session_uses(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    dataset = Dataset(str(repository), git(repository, "rev-parse", "HEAD"), "")
    with fetched(dataset):
        assert str(dataset.clone) not in CliRunner().invoke(clean_command).output
        assert dataset.clone.is_dir()
    assert f"removed dataset {dataset.clone}\n" in CliRunner().invoke(clean_command).output
    assert not dataset.clone.exists()
    assert not [each for each in dataset.clone.parent.iterdir() if each.name != ".lock"]
