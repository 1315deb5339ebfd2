"""Files are written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_evocode.tasks.atomic_write import write_atomically


def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, "old")

    def power_cut(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert os.listdir(tmp_path) == ["record.json"]
    assert path.read_text() == "old"


def test_a_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from pytest_evocode.tasks.atomic_write import write_atomically\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_atomically(Path(sys.argv[1]), 'x' * 100_000)\n"
    )
    command = [sys.executable, "-B", "-c", code, str(tmp_path / "record.json")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "File too large" in ended.stderr
    assert os.listdir(tmp_path) == []


def test_a_writer_killed_half_way_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from pytest_evocode.tasks.atomic_write import write_atomically\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(Path(sys.argv[1]), 'text')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "record.json")]
    assert subprocess.run(command, timeout=300).returncode == -9
    assert not (tmp_path / "record.json").exists()
    assert list(tmp_path.glob("*.json")) == []


def test_a_reader_sees_the_old_or_the_new_text_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    texts = ["a" * 50_000, "b" * 70_000]
    write_atomically(path, texts[0])

    def write(number: int) -> None:
        for turn in range(100):
            write_atomically(path, texts[(turn + number) % 2])

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        while not all(writer.done() for writer in writers):
            assert path.read_text() in texts
        for writer in writers:
            writer.result()
    assert os.listdir(tmp_path) == ["record.json"]
