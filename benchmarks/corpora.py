"""How many tasks of public corpora pytest collects as they are: ``python -m benchmarks.corpora``.

``corpora.toml`` beside this module lists repositories with tasks in Harbor's format, each at a commit, with how many
tasks it has and how many of them collect: per corpus, so that a big one hides none. Nothing of theirs is kept here.
This counts again and says what differs; ``--write`` writes it down, ``--add OWNER/NAME@COMMIT`` has one more counted.

Repositories are taken from ``--repositories DIR``, where a clone or a bare mirror of OWNER/NAME is called
``OWNER+NAME``, and cloned from GitHub into it if they are not there. Only what git has at hand of a commit is written
out: a file that a mirror left out, as one of many megabytes may be, is empty, which collecting does not notice.

A task is a directory with a task.toml and an instruction.md, in itself or in its steps, that lies in no other task.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import tomli

from pytest_evocode.plugin.task_directories import is_task
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks.config_text import toml_text

MANIFEST = Path(__file__).with_suffix(".toml")
_COMMENT = (
    "# Written by python -m benchmarks.corpora --write. What is refused is counted by the first line of the error.\n"
)
_LINK = "120000"
_NAMED = re.compile(r"(?<=steps)\[[^]]*\](?=\.)")
_PLACE = re.compile(r"^/\S+?(:\d+)?: |/\S+/")


@dataclass(frozen=True)
class Corpus:
    """A repository at a commit, and what was counted in it."""

    repository: str
    """Its owner and name."""
    commit: str
    tasks: int = 0
    collect: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    """Of the others, how many were refused for which reason."""


def read_manifest() -> list[Corpus]:
    """Return what was counted last."""
    return [Corpus(**each) for each in tomli.loads(MANIFEST.read_text())["corpora"]] if MANIFEST.exists() else []


def count(corpus: Corpus, repositories: Path) -> Corpus:
    """Return a corpus with what is counted in it now."""
    git_directory = find_repository(corpus, repositories)
    with tempfile.TemporaryDirectory(prefix="evocode-corpus-") as scratch:
        root = Path(scratch, corpus.repository.rpartition("/")[2])
        (root / ".git").mkdir(parents=True)  # As in a clone.
        write_out(git_directory, corpus.commit, root)
        tasks = sum(1 for _ in _tasks(root))
        refused = _collect(root) if tasks else Counter()
    return replace(corpus, tasks=tasks, collect=tasks - refused.total(), refused=dict(sorted(refused.items())))


def find_repository(corpus: Corpus, repositories: Path) -> Path:
    """Return the directory of a repository that has the commit."""
    directory = repositories / corpus.repository.replace("/", "+")
    if not directory.exists():
        url = f"https://github.com/{corpus.repository}"
        subprocess.run(["git", "clone", "--quiet", "--bare", url, str(directory)], check=True)
    return directory


def _git(directory: Path, *arguments: str, given: bytes = b"") -> bytes:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout


def write_out(git_directory: Path, commit: str, root: Path) -> None:
    """Write the files of a commit, with those empty that the repository does not have at hand."""
    lines = _git(git_directory, "ls-tree", "-r", "-z", commit).decode("utf-8", "surrogateescape").split("\0")
    listed = [(*line.partition("\t")[0].split(), line.partition("\t")[2]) for line in lines if line]
    files = [(mode, name, path) for mode, kind, name, path in listed if kind == "blob"]
    answer = io.BytesIO(
        _git(git_directory, "cat-file", "--batch", given="".join(f"{name}\n" for _, name, _ in files).encode())
    )
    for mode, _, path in files:
        head = answer.readline().split()
        content = answer.read(int(head[2]) + 1)[:-1] if head[-1] != b"missing" else b""
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == _LINK:
            target.symlink_to(os.fsdecode(content))
        else:
            target.write_bytes(content)


def _tasks(directory: Path) -> Iterator[Path]:
    if is_task(directory):
        yield directory
        return
    for entry in sorted(directory.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and entry.name != ".git":
            yield from _tasks(entry)


class _Refused:
    """Counts why tasks do not collect, without where that is."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            first = str(report.longrepr).strip().splitlines()[0]
            self.reasons[_NAMED.sub("", _PLACE.sub("", first))] += 1


def _collect(root: Path) -> Counter[str]:
    """Have pytest collect all tasks of a corpus, as a user would, and return why it did not."""
    refused = _Refused()
    arguments = ["--collect-only", "-q", "-p", "no:cacheprovider", "--evocode-agent=oracle", str(root)]
    with contextlib.chdir(root.parent), contextlib.redirect_stdout(io.StringIO()) as shown:
        status = pytest.main(arguments, plugins=[refused])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"{root.name}: pytest ended with {status}:\n{shown.getvalue()[-2000:]}")
    return refused.reasons


def main() -> None:
    """Count all corpora again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=Path, default=Path("benchmark-corpora"), metavar="DIR")
    parser.add_argument("--add", action="append", default=[], metavar="OWNER/NAME@COMMIT")
    parser.add_argument("--write", action="store_true", help="write down what is counted")
    options = parser.parse_args()
    options.repositories.mkdir(parents=True, exist_ok=True)
    listed = read_manifest()
    known = {each.repository: each for each in listed}
    for name, _, commit in (each.partition("@") for each in options.add):
        known[name] = Corpus(name, commit)
    rows = [("", "tasks", "collect", "before")]
    counted = []
    for corpus in known.values():
        counted.append(now := count(corpus, options.repositories.resolve()))
        rows.append((now.repository, str(now.tasks), str(now.collect), "" if now == corpus else str(corpus.collect)))
    rows.append(("all", str(sum(each.tasks for each in counted)), str(sum(each.collect for each in counted)), ""))
    print("\n".join(aligned(rows, left=(0,))))
    for corpus in counted:
        for reason, number in corpus.refused.items():
            print(f"{corpus.repository}: {number} {reason}")
    if options.write:
        tables = [{key: value for key, value in vars(each).items() if value != {}} for each in counted]
        MANIFEST.write_text(_COMMENT + toml_text({"corpora": tables}))


if __name__ == "__main__":
    main()
