"""``evocode diff``: what changes from round to round, for people and for ``patch``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evocode.cli.new_task import Form, write_task
from tests.cli.conftest import Evocode
from tests.environments.image_files import layout, tiny_system, write_directory
from tests.terminals import HANGS, Person

EVOCODE = [sys.executable, "-c", "from pytest_evocode.cli import main; main()"]


def make(directory: Path, rounds: int = 3, form: Form = "native") -> Path:
    write_task(directory / "parcels", rounds=rounds, form=form)
    return directory / "parcels"


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of three rounds, the workspaces of which are made once."""
    return make(tmp_path_factory.mktemp("tasks"))


@pytest.fixture
def _shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path_factory.getbasetemp() / "diff-cache"
    cache.mkdir(exist_ok=True)
    monkeypatch.setenv("EVOCODE_CACHE", str(cache))


@pytest.mark.usefixtures("_shared_cache")
def test_the_workspace_of_a_round_against_that_of_the_round_before(
    evocode: Evocode, parcels: Path, tmp_path: Path
) -> None:
    first = evocode("diff", parcels, "round-1", "--env=sandbox")
    assert first.status == 1
    assert "playing the solution of round-1" in first.err
    assert "diff --git a/postage.py b/postage.py\nnew file mode 100644\n--- /dev/null\n" in first.out
    second = evocode("diff", parcels, "round-2", "--env=sandbox")
    assert second.err == "playing the solution of round-2\n"
    # Together they are the change from the beginning, and files that have it have no difference.
    for patch in (first.out, second.out):
        subprocess.run(["patch", "-p1", "-s"], cwd=tmp_path, input=patch, text=True, check=True)
    made = (tmp_path / "postage.py").read_text()
    assert made == (parcels / "steps/round-2/solution/postage.py").read_text()
    both = evocode("diff", parcels / "task.toml", "starter", "round-2", "--env=sandbox")
    assert (both.status, both.err) == (1, "")
    assert sum(line.startswith("+") for line in both.out.splitlines()) > len(made.splitlines())
    same = evocode("diff", parcels, "round-2", "round-2", "--env=sandbox")
    assert (same.status, same.out, same.err) == (0, "", "")


@pytest.mark.usefixtures("_shared_cache")
def test_an_image_that_is_given(evocode: Evocode, tmp_path: Path) -> None:
    task = make(tmp_path, 1)
    (task / "steps/round-1/solution/solve.sh").write_text("#!/bin/bash\ncat /etc/os-release > which\n")
    (task / "environment/Dockerfile").write_text("FROM tiny\nWORKDIR /work\n")
    write_directory(layout([((tiny_system(),), {}, None)]), tmp_path / "layout")
    found = evocode("diff", task, "round-1", "--env=sandbox", f"--image=tiny={tmp_path}/layout")
    assert found.out.endswith("+++ b/which\n@@ -0,0 +1 @@\n+ID=tiny\n"), found.err
    wrong = evocode("diff", task, "round-1", "--env=sandbox", "--image=tiny")
    assert "'tiny': write it as NAME=PATH" in wrong.err


@pytest.mark.usefixtures("_shared_cache")
def test_a_solution_that_fails_is_told_and_shown(evocode: Evocode, tmp_path: Path) -> None:
    task = make(tmp_path, 2)
    with (task / "steps/round-1/solution/solve.sh").open("a") as script:
        script.write("\necho oh no; exit 3\n")
    ran = evocode("diff", task, "round-1", "--env=sandbox")
    assert ran.status == 1
    assert "+++ b/postage.py" in ran.out
    assert "the reference solution ended with exit code 3" in ran.err
    assert evocode("diff", task, "round-2", "--env=sandbox").status == 2


def test_solutions(evocode: Evocode, parcels: Path) -> None:
    ran = evocode("diff", parcels, "round-2", "--solution")
    assert ran.status == 1
    assert "--- a/postage.py\n+++ b/postage.py\n" in ran.out
    assert "diff --git a/zones.csv b/zones.csv\nnew file mode 100644" in ran.out
    assert "--- /dev/null\n+++ b/solve.sh\n" in evocode("diff", parcels, "round-1", "--solution").out


def test_secrets_are_named_and_not_shown(evocode: Evocode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    task = make(tmp_path, 1)
    (task / "steps/round-1/solution/config").write_text("key = sk-0123456789\n")
    assert "+key = [OPENAI_API_KEY]\n" in evocode("diff", task, "round-1", "--solution").out


def test_instructions(evocode: Evocode, parcels: Path) -> None:
    ran = evocode("diff", parcels, "round-1", "round-3", "--instruction")
    assert ran.status == 1
    assert ran.out.startswith("diff --git a/instruction.md b/instruction.md\n--- a/instruction.md\n")


def test_two_kinds_of_diff_at_once_are_refused(evocode: Evocode, parcels: Path) -> None:
    ran = evocode("diff", parcels, "round-2", "--suite", "--solution")
    assert ran.status == 2
    assert "--suite and --solution are two diffs; ask for one at a time" in ran.err


def test_suites_are_told_test_by_test_and_file_by_file(evocode: Evocode, parcels: Path) -> None:
    ran = evocode("diff", parcels, "round-1", "round-2", "--suite")
    assert ran.status == 1
    assert "retired price round-1/test_price.py::test_price" in ran.lines
    assert "new price-in-euros round-2/test_zones.py::test_price_in_euros" in ran.lines
    assert "--- /dev/null\n+++ b/round-2/test_zones.py\n" in ran.out
    assert "test_price.py b/" not in ran.out  # Which is as it was.
    assert evocode("diff", parcels, "round-1", "round-1", "--suite").status == 0


def test_suites_that_are_scripts_are_compared_as_files(evocode: Evocode, tmp_path: Path) -> None:
    ran = evocode("diff", make(tmp_path, 2, "script"), "round-1", "round-2", "--suite")
    assert ran.out == (
        "diff --git a/through.txt b/through.txt\n--- a/through.txt\n+++ b/through.txt\n"
        "@@ -1 +1 @@\n-round-1\n+round-2\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["round-7"],
            "there is no round 'round-7'; did you mean round-3? There are starter, round-1, round-2, round-3",
        ),
        (["round-1", "round-2", "round-3"], "name one round or two, not 3"),
        (["starter"], "there is nothing before the starter; name a round after it"),
        ([], "Missing argument 'ROUND [ROUND]"),
    ],
)
def test_what_cannot_be_compared_is_trouble(
    evocode: Evocode, parcels: Path, arguments: list[str], message: str
) -> None:
    ran = evocode("diff", parcels, *arguments)
    assert ran.status == 2
    assert message in ran.err


def test_a_task_that_is_wrong_is_trouble(evocode: Evocode) -> None:
    ran = evocode("diff", "nowhere", "round-1")
    assert ran.status == 2
    assert "nowhere: there is no such directory" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("unwanted", "colours"), [("", {"green", "red", "cyan"}), ("1", {"default"})])
@pytest.mark.matrix
def test_there_are_colours_on_a_terminal_unless_nobody_wants_them(
    parcels: Path, monkeypatch: pytest.MonkeyPatch, unwanted: str, colours: set[str]
) -> None:
    argv = [*EVOCODE, "diff", str(parcels), "round-2", "--solution"]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", unwanted)
    with Person() as person:
        person.resize(200, 120)
        assert person.start(argv).wait(HANGS) == 1
        person.seen()
        screen = person.screen
        signs = {"+": "green", "-": "red", "@": "cyan"}
        lines = [(line, screen.colours(number, 1)) for number, line in enumerate(screen.shown) if line[:1] in signs]
        body = [(line, shown) for line, shown in lines if not line.startswith(("---", "+++"))]
        assert {colour for _, shown in body for colour in shown} == colours
        assert all(unwanted or shown == {signs[line[0]]} for line, shown in body)


@pytest.mark.filterwarnings("default::pytest_evocode.TaskWarning")
def test_a_round_without_a_request_keeps_no_other_from_being_shown(evocode: Evocode, tmp_path: Path) -> None:
    task = make(tmp_path)
    (task / "steps/round-3/instruction.md").unlink()
    shown = evocode("diff", task, "round-2", "--instruction")
    assert (shown.status, shown.err.count("the round has no instruction")) == (1, 1)
    assert "+++ b/instruction.md" in shown.out
    gone = evocode("diff", task, "round-3", "--instruction")
    assert (gone.status, "deleted file mode" in gone.out) == (1, True)


def test_show_of_a_round_is_the_same_diff(evocode: Evocode, tmp_path: Path) -> None:
    task = make(tmp_path)
    for options in (["round-2", "--suite"], ["round-1", "round-3", "--solution"], ["starter", "starter", "--suite"]):
        earlier, shown = evocode("diff", task, *options), evocode("show", task, *options)
        assert (shown.status, shown.out, shown.err) == (earlier.status, earlier.out, earlier.err)
    assert shown.status == 0
    assert evocode("show", task, "round-9").status == 2
    lost = evocode("show", task, "--suite")
    assert (lost.status, "--suite is about what a round changes; name the round" in lost.err) == (2, True)
