"""Reports on bad ground: a full disk, no permission, two writers, a killed writer. What is there stays whole."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from pytest_evocode.environments.sandbox.bubblewrap import find_bubblewrap
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html import folder
from pytest_evocode.report.html.contents import ReportContents
from pytest_evocode.report.html.folder import MARKER
from pytest_evocode.report.html.writing import write_report
from pytest_evocode.results.loading import load_results
from tests.report.html.reports import files_in, unpacked, value_in
from tests.result_trees import write_attempt

pytestmark = pytest.mark.turns(2)

_MAIN = "from pytest_evocode.cli import main; main()"


def write(results: Path, report: Path) -> Path:
    found = load_results([results])
    return write_report(report, ReportContents(found, score_table(found), [results])).page.parent


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two attempts at one task."""
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pf", cases=["pp", "pf"])
    write_attempt(root, "a", "nop", "ff", cases=["fp", "ff"])
    return root


def command(results: Path, report: Path) -> list[str]:
    return [sys.executable, "-c", _MAIN, "report", str(results), "-o", str(report)]


def confined(*options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell with the machine's files under bubblewrap, which needs no root for that."""
    bwrap = [find_bubblewrap(), "--bind", "/", "/", "--dev-bind", "/dev", "/dev", *options, "--", "sh", "-c", script]
    return subprocess.run(bwrap, capture_output=True, text=True, timeout=120, check=False)


def whole(report: Path) -> set[str]:
    """The names of all files of a report, each of which can be read, without those that nothing reads."""
    names = {name for name in files_in(report) if not Path(name).name.startswith(".")}
    for name in names:
        if name.startswith("data/"):
            called, _ = unpacked((report / name).read_bytes())
            assert f"data/{called}.js" == name
        else:
            assert (report / name).stat().st_size > 0
    return names


def assert_same(report: Path, fresh: Path) -> None:
    """The report is what one is that is written at once, down to the names of its files."""
    assert files_in(report).keys() == files_in(fresh).keys()
    for name in files_in(fresh).keys() - {"data/index.js", "summary.json", "summary.md", MARKER}:
        assert (report / name).read_bytes() == (fresh / name).read_bytes(), name
    index, expected = value_in(report, "index"), value_in(fresh, "index")
    assert {**index, "written": ""} == {**expected, "written": ""}


def test_a_full_disk_leaves_the_old_report_and_one_error_and_the_next_report_goes_on(
    results: Path, tmp_path: Path
) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    old = write(results, tmp_path / "old")
    size = sum(path.stat().st_size + 4096 for path in old.rglob("*")) + 32 * 4096
    path = write_attempt(results, "b", "gpt", "p", cases=["p"])
    # What cannot be compressed to where it would fit.
    noise = os.urandom(15_000).hex()
    (path / "steps" / "round-1" / "verifier" / "test-stdout.txt").write_text(f"{noise}\n")
    again = " ".join(command(results, disk / "report")).replace(_MAIN, f"'{_MAIN}'")
    ended = confined(
        *("--size", str(size), "--tmpfs", str(disk)),
        script=f"cp -r {old} {disk}/report && head -c {size} /dev/zero > {disk}/ballast; {again}; echo status $?; "
        f"cp -r {disk}/report {kept}; rm {disk}/ballast; {again} >&2 && cp -r {disk}/report {kept}-then",
    )
    assert "status 1\n" in ended.stdout, ended.stderr
    (error,) = (line for line in ended.stderr.splitlines() if line.startswith("Error: "))
    assert error.endswith("the report cannot be written: No space left on device")
    assert "Traceback" not in ended.stderr
    assert whole(kept) == whole(old)
    assert value_in(kept, "index") == value_in(old, "index")
    assert not [path for path in kept.rglob(".*") if path.name != MARKER]
    assert_same(tmp_path / "kept-then", write(results, tmp_path / "fresh"))


@pytest.mark.parametrize("where", ["", "data", "data/attempts"])
@pytest.mark.matrix
def test_a_directory_that_may_not_be_written_is_one_error(results: Path, tmp_path: Path, where: str) -> None:
    report = write(results, tmp_path / "report")
    before, index = files_in(report), value_in(report, "index")
    write_attempt(results, "a", "nop", "pf", cases=["pp", "ff"])
    (report / where).chmod(0o555)
    # Without capabilities root is held to permissions as everybody is.
    script = " ".join(command(results, report)).replace(_MAIN, f"'{_MAIN}'")
    ended = confined("--cap-drop", "ALL", script=script)
    (report / where).chmod(0o755)
    assert ended.returncode == 1
    assert re.fullmatch(
        rf"Error: {re.escape(str(report))}\S*: the report cannot be written: Permission denied\n", ended.stderr
    )
    assert value_in(report, "index") == index
    assert whole(report) == before.keys() - {MARKER}
    assert_same(write(results, report), write(results, tmp_path / "fresh"))


def test_two_processes_that_write_one_report_both_do(results: Path, tmp_path: Path) -> None:
    report = tmp_path / "report"
    both = [subprocess.Popen(command(results, report), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait(120) for each in both] == [0, 0]
    assert_same(report, write(results, tmp_path / "fresh"))


def killed_at(number: int, write_it: Callable[[], object]) -> bool:
    """Write a report in another process that is killed within its file of that number; whether it got there."""
    with warnings.catch_warnings():
        # Of other threads, by Python or by what earlier tests have imported; the child takes no lock of theirs.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _kill_within(number)
            write_it()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def _kill_within(number: int) -> None:
    replacing, begun = folder.replacing, iter(range(number))  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def replacing_until(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
        with replacing(path, mode=mode) as file:
            if next(begun, None) is None:
                file.write(b"half a fi")
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            yield file

    folder.replacing = replacing_until  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.matrix
def test_a_writer_that_is_killed_leaves_whole_files_and_the_next_one_takes_them_up(
    results: Path, tmp_path: Path, is_there: bool
) -> None:
    old = write(results, tmp_path / "old") if is_there else None
    write_attempt(results, "a", "nop", "pf", cases=["pp", "ff"])
    write_attempt(results, "b", "gpt", "p", cases=["p"])
    fresh = write(results, tmp_path / "fresh")
    killed = 0
    for number in range(0, 40, 1 if is_there else 4):
        report = tmp_path / f"report-{number}"
        if old is not None:
            shutil.copytree(old, report)
        if not killed_at(number, partial(write, results, report)):
            break
        killed += 1
        names = whole(report)
        if old is not None:
            assert names >= whole(old)
        if "data/index.js" in names:
            # Whatever it names can be opened.
            for each in value_in(report, "index")["attempts"]:
                assert f"data/attempts/{each['id']}.js" in names
        assert_same(write(results, report), fresh)
    assert killed >= (12 if is_there else 4)


def test_what_a_killed_writer_wrote_is_not_taken_for_what_was_there_before(results: Path, tmp_path: Path) -> None:
    run = "2026-01-05__00-00-00"
    write_attempt(results, "b", "gpt", "p", of=2, cases=["p"], finished=False, run=run)
    report = write(results, tmp_path / "report")
    found = load_results([results])
    under_way = ReportContents(found, score_table(found), [results], under_way=run)
    assert killed_at(2, lambda: write_report(report, under_way))
    # The attempt's own file is among the first; the marker, which says what all was made from, is the last.
    (of_b,) = (each["id"] for each in value_in(report, "index")["attempts"] if each["task"] == "b")
    assert value_in(report, f"attempts/{of_b}")["rounds"][1]["outcome"] == "under way"
    assert_same(write(results, report), write(results, tmp_path / "fresh"))
