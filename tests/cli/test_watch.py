"""``evocode watch``: an author edits a task, and what that affects is run again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.tasks import native_test, native_writer
from tests.cli.conftest import Evocode
from tests.terminals import HANGS, Person

# Ctrl-C goes to the programs whose controlling terminal it is.
_MAIN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from pytest_evocode.cli import main; main()"
EVOCODE = [sys.executable, "-c", _MAIN]
WAITING = "waiting for changes\r\n"


class Author(Person):
    """Somebody who edits a task that is watched."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.resize(50, 200)
        self.directory = directory
        self.command: subprocess.Popen[bytes] | None = None

    def watch(self, *arguments: str) -> None:
        """Start to watch ``tasks/a``."""
        argv = [*EVOCODE, "watch", "tasks/a", "--env=sandbox", *arguments]
        self.command = subprocess.Popen(
            argv,
            cwd=self.directory,
            stdin=self.terminal,
            stdout=self.terminal,
            stderr=self.terminal,
            start_new_session=True,
        )

    def edits(self, path: str, text: str) -> None:
        """Save a file of the task."""
        file = self.directory / "tasks/a" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name("sedAbCdEf")  # As many editors do it.
        new.write_text(text)
        new.rename(file)


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    """See :class:`Author`."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    native_writer(tmp_path)("a", 2)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    with Author(tmp_path) as somebody:
        yield somebody
        if somebody.command is not None and somebody.command.poll() is None:
            somebody.command.kill()
            somebody.command.wait()


@pytest.mark.slow
@pytest.mark.nightly
def test_what_a_change_affects_is_run_again(author: Author) -> None:
    author.watch("--", "-rs", "--color=no")
    first = author.sees(WAITING)
    assert "running round-1, round-2\r\n" in first
    assert "2 passed" in first
    assert "round-1, round-2: passed; " in first
    author.edits("steps/round-2/tests/__pycache__/test_line_2.pyc", "")
    author.edits("steps/round-2/tests/.test_line_2.py.swp", "")
    author.edits("README.md", "About this task")
    author.edits("steps/round-2/instruction.md", "Append it, please.")
    assert author.sees("no round depends on that") == "\r\nchanged: steps/round-2/instruction.md\r\n"
    # What changes while the task is broken is run when it is not any more.
    author.edits("steps/round-2/instruction.md", "")
    author.sees("nothing is run until this is corrected: ")
    author.edits("steps/round-2/tests/test_line_2.py", native_test(2).replace('"line-2" in', '"line-3" in'))
    author.sees("nothing is run until this is corrected: ")
    author.edits("steps/round-2/instruction.md", "Append it.")
    second = author.sees(WAITING)
    assert "changed: steps/round-2/instruction.md\r\nrunning round-2\r\n" in second
    assert "1 failed, 1 skipped" in second
    assert "the reference state after round-1 is known" in second  # As -rs asks for.
    assert "round-2: not passed; " in second
    author.edits("task.toml", "[[steps")
    assert author.sees("nothing is run until this is corrected: ") == "\r\nchanged: task.toml\r\n"
    author.type("\x03")
    assert author.command is not None
    assert author.command.wait(HANGS) == 128 + signal.SIGINT
    assert not (author.directory / "evocode-results").exists()


@pytest.mark.slow
@pytest.mark.nightly
def test_control_c_ends_a_run_too_and_leaves_nothing(author: Author, tmp_path: Path) -> None:
    author.edits("steps/round-1/solution/solve.sh", "echo begun > /logs/agent/begun; sleep 600")
    author.watch("--", "-s", "--log-cli-level=DEBUG")
    author.sees("the turn of oracle begins")
    author.type("\x03")
    assert author.command is not None
    assert author.command.wait(HANGS) == 128 + signal.SIGINT
    assert [path for path in (tmp_path / "cache/sandboxes").iterdir() if path.is_dir()] == []


def test_the_library_for_it_is_named_where_it_is_missing(
    evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native_writer(tmp_path)("a")
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    ran = evocode("watch", "tasks/a")
    assert ran.status == 1
    assert "install it with: pip install 'pytest-evocode[watch]'" in ran.err


def test_what_cannot_be_watched_is_said(evocode: Evocode, tmp_path: Path) -> None:
    native_writer(tmp_path)("a")
    nowhere = evocode("watch", "tasks")
    assert (nowhere.status, "is not a task: there is no task.toml" in nowhere.err) == (2, True)
    other = evocode("watch", "tasks/a", "--", "--evocode-agent=nop")
    assert (other.status, "leave out --evocode-agent" in other.err) == (2, True)
