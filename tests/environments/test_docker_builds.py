"""The program that builds Docker images: it and all that it started end when the build is not wanted any more."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_evocode.environments import BuildWish
from pytest_evocode.environments.docker import images
from pytest_evocode.environments.docker.images import run_builder
from pytest_evocode.errors import Cancelled
from tests.waiting import wait_until

HANGS = 60.0  # seconds
HERE = "FROM a\nRUN <<EOF\necho hi\nEOF\n"


def builder(pids: Path) -> list[str]:
    """A builder that has a plugin do its work, as Docker's command line does."""
    return ["bash", "-c", f"echo begun; sleep 4321 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def assert_ended(pids: Path) -> None:
    wait_until(lambda: not any(is_running(int(pid)) for pid in pids.read_text().split()))


def test_a_build_ends_by_itself_with_all_its_output() -> None:
    deadline = time.monotonic() + HANGS
    assert run_builder(["bash", "-c", "cat; echo out; echo err >&2; exit 3"], "in\n", deadline, BuildWish()) == (
        3,
        "in\nout\nerr\n",
    )


@pytest.mark.parametrize(
    ("dockerfile", "output", "takes_it"),
    [
        (HERE, "Error response from daemon: dockerfile parse error line 3: unknown instruction: ECHO\n", True),
        (HERE, "ERROR: failed to solve: dockerfile parse error on line 6: unknown instruction: RUNN\n", False),
        (HERE, "Step 2/3 : RUN false\nThe command '/bin/sh -c false' returned a non-zero code: 1\n", False),
        (
            "FROM a\nRUNN b\n",
            "Error response from daemon: dockerfile parse error line 2: unknown instruction: RUNN\n",
            False,
        ),
    ],
)
def test_here_documents_take_buildkit(tmp_path: Path, dockerfile: str, output: str, takes_it: bool) -> None:
    (tmp_path / "Dockerfile").write_text(dockerfile)
    assert images._takes_buildkit(tmp_path / "Dockerfile", output) is takes_it


def test_a_build_that_is_not_wanted_any_more_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    wish, pids = BuildWish(threading.Event()), tmp_path / "pids"

    def cancel() -> None:
        while not pids.exists():
            time.sleep(0.01)
        wish.cancelled.set()

    threading.Thread(target=cancel, daemon=True).start()
    with pytest.raises(Cancelled):
        run_builder(builder(pids), "", time.monotonic() + HANGS, wish)
    assert_ended(pids)


def test_a_build_that_takes_too_long_is_ended_and_what_it_printed_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    # It is late as soon as it has begun, however long that took.
    monkeypatch.setattr(images, "time", SimpleNamespace(monotonic=lambda: 2.0 if pids.exists() else 0.0))
    assert run_builder(builder(pids), "", 1.0, BuildWish()) == (None, "begun\n")
    assert_ended(pids)


def test_one_whose_session_is_killed_ends_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = (
        "import sys\n"
        "from pytest_evocode.environments.engines import BuildWish\n"
        "from pytest_evocode.environments.docker.images import run_builder\n"
        "run_builder(['bash', '-c', sys.argv[1]], '', float('inf'), BuildWish())\n"
    )
    argv = [sys.executable, "-c", script, builder(pids)[2]]
    with subprocess.Popen(argv, start_new_session=True) as session:
        wait_until(pids.exists)
        os.killpg(session.pid, signal.SIGKILL)
    assert_ended(pids)


def test_none_begins_that_would_not_end_with_its_session(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = (
        "import os, sys\n"
        "from pytest_evocode.environments.engines import BuildWish\n"
        "from pytest_evocode.environments.docker import images\n"
        "images._ending_with_session = lambda builder: os.kill(os.getpid(), 9)\n"
        "images.run_builder(['bash', '-c', sys.argv[1]], '', float('inf'), BuildWish())\n"
    )
    session = subprocess.run([sys.executable, "-c", script, builder(pids)[2]], check=False)
    assert session.returncode == -signal.SIGKILL
    wait_until(lambda: not any(str(pids).encode() in arguments for arguments in _arguments_of_processes()))
    assert not pids.exists()


def _arguments_of_processes() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()
