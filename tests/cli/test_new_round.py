"""``evocode new-round``: a round behind the last one, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_evocode.checks.lint import lint
from pytest_evocode.cli.new_task import Form, write_task
from pytest_evocode.tasks import load_task
from tests.cli.conftest import Evocode
from tests.cli.test_new import contents, is_executable

KV = Path("kv")


@pytest.fixture
def kv(evocode: Evocode) -> Path:
    """A task of two rounds that price parcels, in the current directory."""
    write_task(KV, rounds=2, form="native")
    return KV


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def fill_in(round_: Path, request: str = "One thing more.\n") -> None:
    write(round_ / "instruction.md", request)


@pytest.mark.filterwarnings("default::pytest_evocode.TaskWarning")
def test_it_makes_what_a_round_has_and_says_what_is_next(evocode: Evocode, kv: Path) -> None:
    made = evocode("new", "kv", "--round")
    assert made.status == 0, made.err
    assert made.out.splitlines() == [
        "made kv/steps/round-3, and its entry in kv/task.toml; fill in:",
        "  kv/steps/round-3/instruction.md  the user's request, word for word",
        "  kv/steps/round-3/solution/       starts as the last one: change postage.py, zones.csv",
        "  kv/steps/round-3/tests/          what the round adds to the suite",
        "  kv/task.toml                     its change_types, where it is no extension",
        "next:",
        "  pytest --evocode-agent=oracle kv -k round-3",
    ]
    assert evocode("show", "kv").err.endswith(
        "kv/steps/round-3/instruction.md is empty; write the request to the agent\n"
    )
    fill_in(kv / "steps/round-3")
    task = load_task(kv)
    assert [(round_.name, round_.change_types) for round_ in task.rounds][2:] == [("round-3", ("extension",))]
    assert task.rounds[2].has_solution
    assert lint(task) == ["kv/steps/round-3/tests: has no test: write what the request asks for"]
    (module,) = (kv / "steps/round-3/tests").glob("test_*.py")
    write(module, module.read_text() + '\n\n@pytest.mark.requirement("more")\ndef test_more(workspace): ...\n')
    assert lint(load_task(kv)) == []


def test_comments_and_everything_else_in_the_file_stay(evocode: Evocode, kv: Path) -> None:
    before = (kv / "task.toml").read_text()
    evocode("new-round", "kv")
    steps = '[[steps]]\nname = "round-2"\n'
    chain = 'step = "round-2"\nchange_types = ["conflict", "extension"]\n'
    after = before.replace(steps, f'{steps}\n[[steps]]\nname = "round-3"\n').replace(
        chain, f'{chain}\n[[metadata.requirement_chain.steps]]\nstep = "round-3"\nchange_types = ["extension"]\n'
    )
    assert (kv / "task.toml").read_text() == after


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_windows_files_and_links_stay_what_they_are(evocode: Evocode, kv: Path, mark: bytes) -> None:
    file = Path("shared.toml")
    (kv / "task.toml").rename(file)
    file.write_bytes(mark + file.read_bytes().replace(b"\n", b"\r\n"))
    file.chmod(0o640)
    (kv / "task.toml").symlink_to("../shared.toml")
    assert evocode("new-round", "kv").status == 0
    written = file.read_bytes()
    assert (kv / "task.toml").is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert written.startswith(mark + b"#:schema")
    assert written.count(b"\r\n") == written.count(b"\n")
    assert b'name = "round-3"\r\n' in written


@pytest.mark.parametrize(
    "toml",
    [
        '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"',
        'steps = [{ name = "round-1" }, { name = "round-2" }]\n',
        'steps = [\n  { name = "round-1" },\n  { name = "round-2" }, # the last\n]\n[metadata]\ndifficulty = "easy"\n',
    ],
)
def test_a_task_needs_no_metadata_and_no_requirements(evocode: Evocode, kv: Path, toml: str) -> None:
    write(kv / "task.toml", toml)
    for number in (1, 2):
        shutil.rmtree(kv / f"steps/round-{number}/tests")
        write(
            kv / f"steps/round-{number}/tests/test_{number}.py", "def test_it(workspace):\n    workspace.run('true')\n"
        )
    for name in ("round-3", "round-4"):
        assert evocode("new-round", "kv").status == 0
        fill_in(kv / "steps" / name)
    assert [round_.name for round_ in load_task(kv).rounds] == ["round-1", "round-2", "round-3", "round-4"]
    assert "requirement" not in (kv / "steps/round-3/tests/test_round_3.py").read_text()


def test_requirements_are_named_where_the_task_names_them(evocode: Evocode, kv: Path) -> None:
    evocode("new", "kv", "--round", "add-zones")
    suite = (kv / "steps/add-zones/tests/test_add_zones.py").read_text()
    assert '@pytest.mark.requirement("id", kind="core")' in suite
    # What is copied names a round of the task.
    assert re.findall(r'retired="(.*?)"', suite) == ["add-zones"]


@pytest.mark.parametrize(
    ("script", "same"),
    [
        ('cp -R "$(dirname "$0")/project/." .\n', True),
        ("mkdir -p src\ncp /solution/a.py \\\n  src/\n", True),
        ("cat > kv.py <<'EOF'\nimport os; os.remove('x')\nEOF\n", True),
        ("cp /solution/a.py .\nrm old.py\n", False),
        ("sed -i s/a/b/ kv.py\n", False),
        ("python3 - <<'PY'\nedit()\nPY\n", False),
    ],
)
def test_a_solution_that_only_puts_files_in_place_is_taken_over(
    evocode: Evocode, kv: Path, script: str, same: bool
) -> None:
    solution = kv / "steps/round-2/solution"
    write(solution / "solve.sh", f"#!/bin/bash\n# Of round 2.\n# And more.\nset -euo pipefail\n{script}")
    write(solution / "project/kv.py", "print()\n")
    evocode("new-round", "kv")
    new = kv / "steps/round-3/solution"
    text = (new / "solve.sh").read_text()
    assert is_executable(new / "solve.sh")
    assert text.startswith("#!/bin/bash\n# The reference solution of round-3")
    assert "Of round 2." not in text
    assert (text.endswith(script), (new / "project/kv.py").exists()) == (same, same)
    subprocess.run(["bash", "-n", new / "solve.sh"], check=True)
    assert ("def swap" in text) == ("python3" in script)


def test_a_solution_that_edits_is_followed_by_one_that_changes_nothing_yet(evocode: Evocode, kv: Path) -> None:
    write(kv / "steps/round-2/solution/solve.sh", "python3 - <<'PY'\nPY\n")
    evocode("new-round", "kv")
    place = Path("workspace")
    place.mkdir()
    subprocess.run(["bash", Path("kv/steps/round-3/solution/solve.sh").absolute()], cwd=place, check=True)
    assert [*place.iterdir()] == []


@pytest.mark.parametrize("shared", [True, False])
def test_a_round_after_a_script_has_a_script(evocode: Evocode, shared: bool) -> None:
    write_task(KV, rounds=2, form="script")
    before = KV / "steps/round-2/tests"
    if not shared:
        for number in (1, 2):
            shutil.copy(KV / "tests/test.sh", KV / f"steps/round-{number}/tests/test.sh")
        (KV / "tests/test.sh").unlink()
    assert evocode("new-round", "kv").status == 0
    fill_in(KV / "steps/round-3")
    assert contents(KV / "steps/round-3/tests") == contents(before)
    assert load_task(KV).rounds[2].has_script


def test_a_task_without_solutions_gets_none(evocode: Evocode, kv: Path) -> None:
    for number in (1, 2):
        shutil.rmtree(kv / f"steps/round-{number}/solution")
    assert "solution" not in evocode("new-round", "kv").out
    assert not (kv / "steps/round-3/solution").exists()


@pytest.mark.parametrize(
    ("name", "makes", "said"),
    [
        ("round-2", "", "kv/task.toml has a round round-2 already; choose another name"),
        ("round-3", "kv/steps/round-3/x", "kv/steps/round-3 exists already; add it to kv/task.toml by hand"),
        ("data", "kv/tests/data/x", "kv/tests/data is where the round's tests are put; rename it"),
        ("a b", "", "no round can be called 'a b'; use letters"),
        ("../x", "", "no round can be called '../x'; use letters"),
        (".x", "", "no round can be called '.x'; use letters"),
        ("", "", "no round can be called ''; use letters"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    evocode: Evocode, kv: Path, name: str, makes: str, said: str
) -> None:
    if makes:
        write(Path(makes), "")
    before = contents(kv)
    refused = evocode("new-round", "kv", name)
    assert refused.status == 2
    assert said in refused.err
    assert contents(kv) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--round=",), "no round can be called ''; use letters"),
        (("--round", "--script"), "a round that is added is verified as the one before it; leave out --script"),
        (("--round", "--native"), "a round that is added is verified as the one before it; leave out --native"),
        (("--round", "--rounds=2"), "--round adds one round to a task that there is; leave out --rounds"),
    ],
)
def test_what_says_nothing_or_contradicts_itself_is_refused(
    evocode: Evocode, kv: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = contents(kv)
    refused = evocode("new", "kv", *arguments)
    assert refused.status == 2
    assert said in refused.err
    assert contents(kv) == before


def test_a_single_step_task_says_how_to_get_steps(evocode: Evocode) -> None:
    write(KV / "task.toml", "")
    refused = evocode("new-round", "kv")
    assert refused.status == 2
    assert (
        'move instruction.md, solution and tests to steps/round-1/, and add [[steps]] with name = "round-1"'
        in refused.err
    )


@pytest.mark.parametrize("toml", ["[[steps]]\nname = 5\n", "[[steps]\n"])
def test_a_task_that_is_wrong_is_one_message(evocode: Evocode, toml: str) -> None:
    write(KV / "task.toml", toml)
    refused = evocode("new-round", "kv")
    assert refused.status == 1
    assert refused.err.startswith("Error: kv/task.toml:")


@pytest.mark.parametrize("fails", ["rename", "replace"])
@pytest.mark.parametrize("form", ["native", "script"])
def test_a_failure_half_way_leaves_the_task_as_it_was(
    evocode: Evocode, monkeypatch: pytest.MonkeyPatch, fails: str, form: Form
) -> None:
    write_task(KV, rounds=2, form=form)
    before = contents(KV)
    works = os.rename

    def disk_full(source: Path, target: Path) -> None:
        if fails == "replace" and Path(target).name != "task.toml":
            return works(source, target)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, fails, disk_full)
    refused = evocode("new-round", "kv")
    assert (refused.status, refused.err) == (
        1,
        "Error: kv cannot be written, and is as it was: No space left on device\n",
    )
    assert contents(KV) == before
    assert sorted(path.name for path in (KV / "steps").iterdir()) == ["round-1", "round-2"]


def test_the_first_round_of_an_empty_task_speaks_of_none_before_it(evocode: Evocode, tmp_path: Path) -> None:
    assert evocode("new", "begun", "--empty", "--rounds", 2).status == 0
    first, second = (next((tmp_path / f"begun/steps/round-{number}/tests").glob("test_*.py")) for number in (1, 2))
    assert "earlier round" not in first.read_text()
    assert 'retired="round-2"' in second.read_text()
