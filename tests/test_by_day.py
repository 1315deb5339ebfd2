"""A run by day: what marks leave to the night, and what brings it back."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path, PurePath

import pytest

from tests import by_day
from tests.by_day import Changes, changes

# Workers of the session inside import what stands here, which no installation brings along.
CONFTEST = f"""
import sys

sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from tests.by_day import ByDay


def pytest_addoption(parser):
    parser.addoption("--night", action="store_true")
    parser.addoption("--changed", action="store_true")


def pytest_configure(config):
    config.pluginmanager.register(ByDay(config), "by-day")
"""
INI = "[pytest]\nmarkers = nightly\n  matrix\n  guards\n  turns\naddopts = -p no:cacheprovider\n"
TESTS = """
import pytest

@pytest.mark.nightly
@pytest.mark.parametrize("n", range(3))
def test_costly(n): ...

@pytest.mark.matrix
@pytest.mark.parametrize("kind", [{kinds}])
def test_kinds(kind): ...

@pytest.mark.matrix("attack")
@pytest.mark.parametrize("place", ["here", "there", "elsewhere"])
@pytest.mark.parametrize("attack", ["x", "y"])
def test_attacks(attack, place): ...

def test_plain(): ...
"""


@pytest.fixture
def repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a commit on a branch that its remote has, and a conftest with the plugin."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "somebody@example.com")
    monkeypatch.delenv(by_day.BASE, raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # Where the tests themselves are run by one.
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".ini", pytest=INI)
    git(pytester.path, "init", "-q", "-b", "main")
    commit(pytester.path)
    git(pytester.path, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    return pytester.path


def git(directory: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def commit(directory: Path, *, message: str = "a change") -> None:
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", message)


def write(directory: Path, path: str, text: str) -> None:
    (directory / path).parent.mkdir(parents=True, exist_ok=True)
    (directory / path).write_text(text)


def ran(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    result = pytester.runpytest_inprocess("-v", *arguments)
    return [line.split()[0].partition("::")[2] for line in result.outlines if "PASSED" in line and "::" in line]


def test_first_parameter_sets_and_one_more_are_run_by_day_and_all_by_night(
    repository: Path, pytester: pytest.Pytester
) -> None:
    write(repository, "test_x.py", TESTS.format(kinds="'a', 'b', 'c', 'd'"))
    found = ran(pytester)
    first = {"test_kinds[a]", "test_attacks[x-here]", "test_attacks[y-here]", "test_plain"}
    assert first < {*found}
    assert len(found) == len(first) + 1
    assert len(ran(pytester, "--night")) == 14
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(
        ["tests: those of the day, by commit *", "left to the night: 3 nightly tests, 6 parameter sets"]
    )


def test_new_names_of_tests_and_parameters_move_nothing_to_the_day_or_the_night(
    repository: Path, pytester: pytest.Pytester
) -> None:
    write(repository, "test_x.py", TESTS.format(kinds="'a', 'b', 'c', 'd'"))
    before = ran(pytester)
    renamed = TESTS.replace("test_kinds", "test_sorts").replace("test_costly", "test_dear")
    write(repository, "test_x.py", renamed.format(kinds="'k', 'l', 'm', 'n'"))
    after = ran(pytester)
    assert len(after) == len(before)
    assert {"test_sorts[k]", "test_attacks[x-here]", "test_attacks[y-here]", "test_plain"} < {*after}


def test_what_is_named_is_run_by_day(repository: Path, pytester: pytest.Pytester) -> None:
    write(repository, "test_x.py", TESTS.format(kinds="'a', 'b', 'c', 'd'"))
    assert ran(pytester, "test_x.py::test_kinds") == [f"test_kinds[{kind}]" for kind in "abcd"]
    assert ran(pytester, "test_x.py::test_costly[1]") == ["test_costly[1]"]
    # What another option has left is what there is to choose from.
    assert ran(pytester, "-k", "test_kinds and (b or c)") == ["test_kinds[b]", "test_kinds[c]"]


def test_every_parameter_set_has_its_day(
    repository: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, "test_x.py", TESTS.format(kinds="'a', 'b', 'c'"))
    days = []
    for commit in "123456":
        monkeypatch.setattr(by_day, "changes", lambda root, since, commit=commit: Changes(commit, "since", [], []))
        days.append(ran(pytester, "-k", "test_kinds"))
    assert {len(day) for day in days} == {2}
    assert {kind for day in days for kind in day} == {"test_kinds[a]", "test_kinds[b]", "test_kinds[c]"}


TURNS = "import pytest\npytestmark = [pytest.mark.turns(3), pytest.mark.parametrize('n', range(2))]\n"
TURNS += "".join(f"def test_{letter}(n): ...\n" for letter in "abcdefg")


def test_of_functions_that_take_turns_each_has_its_day_with_all_its_parameter_sets(
    repository: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, "tests/trial/test_x.py", TURNS)
    assert len(ran(pytester, "--night")) == 14
    days = []
    for commit in "4567":
        monkeypatch.setattr(by_day, "changes", lambda root, since, commit=commit: Changes(commit, "since", [], []))
        days.append(ran(pytester))
    assert {name for day in days for name in day} == {f"test_{letter}[{n}]" for letter in "abcdefg" for n in (0, 1)}
    assert 0.15 < sum(map(len, days)) / len(days) / 14 < 0.5
    assert all(day == [f"{name.partition('[')[0]}[{n}]" for name in day[::2] for n in (0, 1)] for day in days)
    write(repository, "pytest_evocode/trial/other.py", "")
    changed = Changes("1", "since", ["pytest_evocode/trial/other.py"], [])
    monkeypatch.setattr(by_day, "changes", lambda root, since: changed)
    assert len(ran(pytester)) == len(ran(pytester, "--changed")) == 14


def test_functions_whose_lines_have_changed_do_not_wait_for_their_turn(
    repository: Path, pytester: pytest.Pytester
) -> None:
    text = "import pytest\npytestmark = pytest.mark.turns(10**12)\n"
    function = "@pytest.mark.skipif(False, reason='')\ndef test_{}():\n    assert True\n    assert 1\n"
    text += "".join(map(function.format, "abcdef"))
    for name in ("tests/trial/html/test_x.py", "tests/gone.py", "pytest_evocode/trial/other.py"):
        write(repository, name, text)
    (repository / "pytest_evocode/trial/html").mkdir()
    commit(repository)
    git(repository, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    lines = text.splitlines(keepends=True)
    lines[5] = "    assert 2\n"  # Of a.
    lines[10] = "@pytest.mark.skipif(not True, reason='')\n"  # Of c, and a mark.
    del lines[16]  # Of d.
    write(repository, "tests/trial/html/test_x.py", "import sys\n" + "".join(lines).replace("test_f", "test_g"))
    write(repository, "tests/trial/html/test_new.py", text)
    write(repository, "pytest_evocode/trial/other.py", "")  # Beside the package that the folder is named for.
    (repository / "tests/gone.py").unlink()
    commit(repository)
    assert ran(pytester, "tests/trial/html/test_x.py") == ["test_a", "test_d", "test_g"]
    assert len(ran(pytester, "tests/trial/html/test_new.py")) == 6


def test_workers_choose_what_one_process_does(repository: Path, pytester: pytest.Pytester) -> None:
    write(repository, "test_x.py", TESTS.format(kinds="'a', 'b', 'c', 'd'"))
    alone = ran(pytester)
    result = pytester.runpytest_inprocess("-v", "-n2")
    # The number of the worker and the outcome stand first.
    assert {line.split()[-1].partition("::")[2] for line in result.outlines if "PASSED" in line} == {*alone}
    result.stdout.fnmatch_lines(["left to the night: 3 nightly tests, 6 parameter sets"])


GUARDS = "import pytest\npytestmark = pytest.mark.guards('trial')\n"
GUARDS += "".join(f"def test_{letter}(): ...\n" for letter in "abcdef")


@pytest.mark.matrix("count")
@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ("docs/index.md", 2),
        ("pytest_evocode/report/markdown.py", 2),  # The trial knows nothing of reports.
        ("pytest_evocode/trial/trial.py", 6),
        ("pytest_evocode/results/records.py", 6),  # Imported by what the trial imports.
        ("pytest_evocode/verifier/in_container/no_module.sh", 6),
        ("guards/test_guards.py", 6),
        ("guards/agents.py", 6),  # Helps the tests beside it.
        ("guards/test_others.py", 2),
    ],
)
def test_guards_are_run_where_a_change_reaches_what_they_guard(
    repository: Path, pytester: pytest.Pytester, changed: str, count: int
) -> None:
    write(repository, "guards/test_guards.py", GUARDS)
    commit(repository)
    git(repository, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    write(repository, changed, (GUARDS if "test_guards" in changed else "") + "# changed\n")
    commit(repository)
    commit(repository, message="Another one on the branch.")
    assert len(ran(pytester, "guards/test_guards.py")) == count


def test_before_a_commit_the_tests_of_what_changed_are_run(repository: Path, pytester: pytest.Pytester) -> None:
    for name in (
        "tests/trial/test_a.py",
        "tests/report/test_b.py",
        "tests/acceptance/test_c.py",
        "tests/acceptance/test_d.py",
    ):
        write(repository, name, "def test_it(): ...\n")
    write(repository, "tests/test_tree.py", "def test_the_tree(): ...\n")
    commit(repository)
    assert ran(pytester, "--changed") == ["test_the_tree"]
    write(repository, "pytest_evocode/trial/trial.py", "")
    write(repository, "tests/acceptance/test_d.py", "def test_it(): ...\ndef test_more(): ...\n")
    result = pytester.runpytest_inprocess("-v", "--changed", "tests")
    assert sorted(line.split()[0] for line in result.outlines if "PASSED" in line) == [
        "tests/acceptance/test_d.py::test_it",
        "tests/acceptance/test_d.py::test_more",
        "tests/test_tree.py::test_the_tree",
        "tests/trial/test_a.py::test_it",
    ]


def test_on_the_remotes_branch_the_last_night_is_compared_with(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for when in ("2026-05-01T23:00:00Z", "2026-05-02T03:00:00Z", "2026-05-02T09:00:00Z"):
        monkeypatch.setenv("GIT_COMMITTER_DATE", when)
        commit(repository, message=when)
    git(repository, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    monkeypatch.setattr(by_day, "_last_night", lambda now: datetime(2026, 5, 2, 3, 17, tzinfo=UTC))
    assert git(repository, "log", "-1", "--format=%s", changes(repository).since) == "2026-05-02T03:00:00Z"


@pytest.mark.parametrize(("hour", "day"), [(2, 1), (4, 2)])
def test_the_last_night_is_the_newest_that_has_begun(hour: int, day: int) -> None:
    now = datetime(2026, 5, 2, hour, tzinfo=UTC)
    assert by_day._last_night(now) == datetime(2026, 5, day, 3, 17, tzinfo=UTC)


def test_without_a_commit_to_compare_with_everything_counts_as_changed(tmp_path: Path) -> None:
    assert changes(tmp_path).reach("trial", PurePath("tests/integrity/test_x.py"))
    assert not Changes("a", "b", ["README.md"], []).reach("trial", PurePath("tests/integrity/test_x.py"))
