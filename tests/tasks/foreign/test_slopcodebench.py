"""Problems of SlopCodeBench as tasks: what is carried over, what is reported, what is refused."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.tasks.foreign.conftest import Imported, WriteFiles, refused
from tests.tasks.foreign.slopcodebench_problem import CONFIG, PROBLEM

WriteProblem = Callable[..., Path]


@pytest.fixture
def problem(write_files: WriteFiles) -> WriteProblem:
    """Write the small problem, with some files changed and texts of its config.yaml replaced."""

    def write(changed: Mapping[str, str | None] = {}, **replaced: str) -> Path:
        config = CONFIG
        for old, new in replaced.items():
            (line,) = re.findall(rf"^{old}: .*\n", CONFIG, re.MULTILINE)
            config = config.replace(line, f"{old}: {new}\n" if new else "")
        return write_files("problems/adder", PROBLEM, {"config.yaml": config, **changed})

    return write


def with_checkpoints(text: str) -> dict[str, str | None]:
    return {"config.yaml": f"{CONFIG.partition('checkpoints:')[0]}checkpoints:\n{text}"}


def test_checkpoints_become_rounds_in_their_order(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    assert [round_.name for round_ in imported.task.rounds] == ["round-1", "round-2"]
    assert "| round-1 | checkpoint_1 |\n| round-2 | checkpoint_2 |" in imported.text("IMPORT.md")
    assert all(round_.has_solution and not round_.has_script for round_ in imported.task.rounds)
    assert {round_.verify_in for round_ in imported.task.rounds} == {"clean"}


def test_requests_have_the_program_s_name_and_no_canary(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    assert imported.text("steps/round-1/instruction.md") == "# Add\n\nIn `calc.py`: `python3 calc.py` adds.\n"
    assert "<!-- mind the order -->" in imported.text("steps/round-2/instruction.md")
    assert imported.text("task.toml").startswith("#:schema ./task.schema.json\n# A CANARY\n")


def test_the_task_says_what_the_problem_says_of_itself(problem: WriteProblem) -> None:
    config = Imported("slopcodebench", problem()).task.config
    assert config.task is not None
    assert (config.source, config.task.name, config.task.version) == ("SlopCodeBench: adder", "slopcodebench/made", "3")
    assert (config.task.description, config.task.keywords) == ("A program that calculates.", ("cli", "numbers"))
    assert [author.name for author in config.task.authors] == ["Ada Example"]
    assert config.metadata.model_extra == {"difficulty": "easy", "category": "calculators"}


def test_tests_are_marked_by_checkpoint_and_kind(problem: WriteProblem) -> None:
    tests = Imported("slopcodebench", problem()).task.tests
    assert [(test.round, test.name, test.requirement, test.kind) for test in tests] == [
        ("round-1", "test_sums", "checkpoint_1", "core"),
        ("round-1", "test_no_number", "checkpoint_1", "error"),
        ("round-1", "test_units", "checkpoint_1", ""),
        ("round-2", "test_difference", "checkpoint_2", "core"),
    ]


def test_custom_markers_have_the_kind_of_their_group(problem: WriteProblem) -> None:
    config = CONFIG.replace("group: Functionality", "group: Error")
    tests = {
        "tests/test_checkpoint_2.py": "import pytest\npytestmark = [pytest.mark.slow]\n\n\ndef test_difference(): ...\n"
    }
    imported = Imported("slopcodebench", problem({"config.yaml": config, **tests}))
    assert [test.kind for test in imported.task.tests if test.round == "round-2"] == ["error"]


def test_timeouts_are_those_of_the_checkpoint_unless_a_test_has_its_own(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    first, second = (imported.text(f"steps/round-{number}/tests/test_checkpoint_{number}.py") for number in (1, 2))
    assert re.findall(r"mark\.timeout\((\d+)\)", first) == ["20", "20", "5"]
    assert re.findall(r"mark\.timeout\((\d+)\)", second) == ["30"]
    assert {round_.verifier_timeout for round_ in imported.task.rounds} == {600.0}


def test_suites_have_long_limits_where_their_tests_have(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem(timeout="300"))
    assert {round_.verifier_timeout for round_ in imported.task.rounds} == {1200.0}


def test_a_checkpoint_without_earlier_tests_retires_them(problem: WriteProblem) -> None:
    imported = Imported(
        "slopcodebench",
        problem(
            with_checkpoints("""\
  checkpoint_1: {version: 1, order: 1}
  checkpoint_2: {version: 1, order: 2, include_prior_tests: false}
""")
        ),
    )
    assert {(test.round, test.retired) for test in imported.task.tests} == {("round-1", "round-2"), ("round-2", "")}
    assert not any("include_prior_tests" in note for note in imported.notes)


def test_earlier_tests_that_come_back_are_reported(problem: WriteProblem) -> None:
    changed = with_checkpoints("""\
  checkpoint_1: {version: 1}
  checkpoint_2:
    version: 1
    include_prior_tests: false
  checkpoint_3: {version: 1}
""")
    more = {"checkpoint_3.md": "More.\n", "tests/test_checkpoint_3.py": "def test_more(): ...\n"}
    imported = Imported("slopcodebench", problem(changed | more))
    line = 1 + (changed["config.yaml"] or "").splitlines().index("    include_prior_tests: false")
    (note,) = (note for note in imported.notes if "include_prior_tests" in note)
    assert note.startswith(f"problems/adder/config.yaml:{line}: include_prior_tests: earlier tests are left out of")


def test_what_tests_share_is_shared_and_what_nobody_runs_is_reported(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    shared = {place for place in imported.files() if place.startswith("tests/")}
    assert shared == {"tests/conftest.py", "tests/calling.py", "tests/data/sums.json"}
    assert any(
        note.startswith("problems/adder/tests/test_draft.py: belongs to no checkpoint") for note in imported.notes
    )


def test_assets_are_in_the_workspace_and_beside_the_tests(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    assert imported.text("environment/assets/data/units.txt") == "apples\n"
    dockerfile = imported.text("environment/Dockerfile")
    assert "COPY assets/ /workspace/\n" in dockerfile
    assert 'COPY ["assets/data/units.txt", "/opt/slopcodebench/assets/units"]\n' in dockerfile
    assert os.readlink(imported.directory / "tests/assets/units") == "/opt/slopcodebench/assets/units"
    env = imported.task.rounds[0].verifier_env
    assert env == {"SCBENCH_ASSETS_DIR": "/tests/assets", "SCBENCH_ASSET_UNITS": "/tests/assets/units"}
    assert imported.task.rounds[1].verifier_env == {**env, "MODE": "strict"}


def test_assets_that_the_tests_bring_stay_as_they_are(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem({"tests/assets/units/more.txt": "pears\n"}))
    assert imported.text("tests/assets/units/more.txt") == "pears\n"
    assert any("tests/assets/units is there already" in note for note in imported.notes)


def test_packages_of_tests_and_solutions_are_in_the_image(problem: WriteProblem) -> None:
    tests = PROBLEM["tests/test_checkpoint_2.py"].replace("import os", "import os\nimport deepdiff, yaml")
    changed: dict[str, str | None] = {
        "tests/test_checkpoint_2.py": tests,
        "solutions/checkpoint_1/requirements.txt": "# fast\nrich>=13,<15  # colours\n-e .\n",
        "config.yaml": CONFIG + "test_dependencies:\n  - pyyaml\n  - httpx[http2]==0.28\n",
    }
    imported = Imported("slopcodebench", problem(changed))
    (run,) = re.findall("^RUN .*", imported.text("environment/Dockerfile"), re.MULTILINE)
    installed = "'deepdiff' 'pyyaml' 'httpx[http2]==0.28' 'rich>=13,<15'"
    assert run == f"RUN python3 -m pip install --no-cache-dir {installed}"
    path = "problems/adder/solutions/checkpoint_1/requirements.txt"
    assert any(note.startswith(f"{path}:3: -e . was not installed") for note in imported.notes)
    assert any(note.startswith("problems/adder/config.yaml:32: test_dependencies: ") for note in imported.notes)


def test_nothing_is_installed_that_nobody_uses(problem: WriteProblem) -> None:
    assert "RUN" not in Imported("slopcodebench", problem()).text("environment/Dockerfile")


def play_solutions(imported: Imported, workspace: Path) -> list[set[str]]:
    """Play the reference solutions where there is no container, and return the files after each."""
    workspace.mkdir()
    states = []
    for number, _ in enumerate(imported.task.rounds, start=1):
        script = imported.text(f"steps/round-{number}/solution/solve.sh")
        own = script.replace("/solution", str(imported.directory / f"steps/round-{number}/solution"))
        subprocess.run(["bash", "-c", own], cwd=workspace, check=True)
        states.append({path.relative_to(workspace).as_posix() for path in workspace.rglob("*") if path.is_file()})
    return states


def test_solutions_put_one_workspace_in_place_of_the_one_before(problem: WriteProblem, tmp_path: Path) -> None:
    imported = Imported("slopcodebench", problem({"solutions/checkpoint_1/it's/old.py": "1\n"}))
    assert play_solutions(imported, tmp_path / "workspace") == [{"calc.py", "adding.py", "it's/old.py"}, {"calc.py"}]
    assert (tmp_path / "workspace/calc.py").read_text() == PROBLEM["solutions/checkpoint_2/calc.py"]
    assert os.access(imported.directory / "steps/round-1/solution/solve.sh", os.X_OK)


def test_one_solution_for_all_checkpoints_is_there_from_the_first_round(problem: WriteProblem, tmp_path: Path) -> None:
    without = dict.fromkeys((place for place in PROBLEM if place.startswith("solutions/")), None)
    imported = Imported("slopcodebench", problem({**without, "solution/calc.py": "print()\n"}))
    assert play_solutions(imported, tmp_path / "workspace") == [{"calc.py"}, {"calc.py"}]
    assert any(note.startswith("problems/adder/solution: is one solution for all") for note in imported.notes)


def test_a_missing_solution_is_reported(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem({"solutions/checkpoint_2/calc.py": None}))
    assert [round_.has_solution for round_ in imported.task.rounds] == [True, False]
    path = "problems/adder/solutions/checkpoint_2"
    assert any(note.startswith(f"{path}: there is no reference solution of checkpoint_2") for note in imported.notes)


def test_files_that_nobody_names_are_reported(problem: WriteProblem) -> None:
    more = {"pytest.ini": "[pytest]\n", "solution/plan.md": "Plan.\n", "checkpoint_3.md": "Later.\n"}
    notes = Imported("slopcodebench", problem(more)).notes
    left_out = [note for note in notes if "was left out" in note]
    assert left_out == [
        f"problems/adder/{place}: was left out: config.yaml has no use for it"
        for place in ("checkpoint_3.md", "pytest.ini", "solution")
    ]


def test_modules_beside_the_tests_are_imported_from_above(problem: WriteProblem) -> None:
    tests = "from . import calling, more\nif True:\n    from .calling import call\n\ndef test_difference(): ...\n"
    imported = Imported("slopcodebench", problem({"tests/test_checkpoint_2.py": tests}))
    text = imported.text("steps/round-2/tests/test_checkpoint_2.py")
    assert "\nimport calling, more\nif True:\n    from calling import call\n" in text


def test_unknown_keys_are_reported_with_their_lines(problem: WriteProblem) -> None:
    imported = Imported("slopcodebench", problem())
    assert "problems/adder/config.yaml:12: inspiration: has no counterpart here" in imported.notes
    assert "| adder/config.yaml:12 | inspiration: has no counterpart here | - |" in imported.text("IMPORT.md")


def test_modules_that_import_each_other_are_reported(problem: WriteProblem) -> None:
    tests = "from test_checkpoint_1 import SUMS\n" + PROBLEM["tests/test_checkpoint_2.py"]
    imported = Imported("slopcodebench", problem({"tests/test_checkpoint_2.py": tests}))
    assert any("imports test_checkpoint_1, which lies in another directory" in note for note in imported.notes)


def test_nothing_of_a_problem_is_run(problem: WriteProblem, tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w')\n"
    traps = {
        place: trap + text for place, text in PROBLEM.items() if place.endswith(".py") and "__future__" not in text
    }
    Imported("slopcodebench", problem(traps))
    assert len(traps) > 3
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"config.yaml": "name: [\n"}, "config.yaml:2: not valid YAML: "),
        ({"config.yaml": CONFIG.replace("entry_file", "entry")}, "config.yaml:2: entry_file: is missing; add it"),
        ({"config.yaml": CONFIG.replace("calc\n", "../calc\n")}, "config.yaml:9: entry_file: must be a file's path in"),
        ({"config.yaml": CONFIG.replace("calc\n", "'a; b'\n")}, "config.yaml:9: entry_file: must be a file's path in"),
        (
            {"config.yaml": CONFIG.replace("timeout: 20", "timeout: soon")},
            "config.yaml:10: timeout: must be a positive",
        ),
        ({"config.yaml": CONFIG.replace("strict", "'${HOME}'")}, "env.MODE: ${...} would be filled in from the host's"),
        (with_checkpoints("  checkpoint_1: 5\n"), "config.yaml:25: checkpoints.checkpoint_1: must be a mapping"),
        (with_checkpoints("  ../up: {order: 1}\n"), "a checkpoint's name is made of letters"),
        (with_checkpoints("  - checkpoint_1\n"), "config.yaml:24: checkpoints: must be a mapping"),
        ({"checkpoint_2.md": None}, "checkpoint_2.md: there is no such file; it is the request of checkpoint_2"),
        (
            {"tests/test_checkpoint_2.py": None},
            "test_checkpoint_2.py: there is no such file; checkpoint_2 needs its tests",
        ),
        ({"tests/test_checkpoint_2.py": "x = 1\n"}, "test_checkpoint_2.py: has no test function"),
        ({"tests/test_checkpoint_2.py": "\ndef test(:\n"}, "test_checkpoint_2.py:2: this Python cannot parse it"),
        (
            {"tests/conftest.py": None},
            "conftest.py: there is no such file; SlopCodeBench's tests have their entrypoint",
        ),
        (
            {"config.yaml": CONFIG + "test_dependencies: ['a; rm -rf /']\n"},
            "config.yaml:32: test_dependencies.0: a; rm",
        ),
    ],
)
def test_mistakes_are_refused_with_file_and_line(
    problem: WriteProblem, changed: dict[str, str | None], message: str
) -> None:
    assert message in refused("slopcodebench", problem(changed))


def test_the_form_of_before_is_refused(write_files: WriteFiles) -> None:
    files = {place: text for place, text in PROBLEM.items() if not place.startswith("tests/")}
    assert "SlopCodeBench's form from before December 2025" in refused(
        "slopcodebench", write_files("problems/adder", files)
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("path: files/units.txt", "path: ../secret.txt", "config.yaml:16: ../secret.txt is outside of problems/adder"),
        ("path: files/units.txt", "path: /etc/hostname", "config.yaml:16: /etc/hostname is outside of problems/adder"),
        (
            "path: files/units.txt",
            "path: .",
            "config.yaml:16: static_assets.units.path: must be a file or directory in",
        ),
        ("save_path: data/units.txt", "save_path: ../tests/x", "static_assets.units: must be in the workspace"),
        ("save_path: data/units.txt", "save_path: /etc/x", "static_assets.units: must be in the workspace"),
        ("  units:", "  ../units:", "must be in the workspace"),
        ("  units:", "  ..:", "must be in the workspace"),
    ],
)
def test_assets_cannot_leave_the_problem_or_the_workspace(
    problem: WriteProblem, tmp_path: Path, old: str, new: str, message: str
) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems/secret.txt").write_text("secret\n")
    assert message in refused("slopcodebench", problem({"config.yaml": CONFIG.replace(old, new, 1)}))


@pytest.mark.parametrize(
    "place", ["checkpoint_1.md", "tests/calling.py", "tests/data", "solutions/checkpoint_2", "tests/conftest.py"]
)
def test_links_that_lead_out_of_the_problem_are_refused(problem: WriteProblem, tmp_path: Path, place: str) -> None:
    directory = problem()
    (directory / place).rename(tmp_path / "outside")
    (directory / place).symlink_to(tmp_path / "outside")
    assert "outside" in refused("slopcodebench", directory)


def test_links_that_lead_to_each_other_are_refused(problem: WriteProblem) -> None:
    directory = problem()
    for one, two in (("a", "b"), ("b", "a")):
        (directory / "tests" / one).symlink_to(two)
    assert "tests/a is outside of problems/adder" in refused("slopcodebench", directory)


def test_links_within_a_directory_stay_links(problem: WriteProblem) -> None:
    directory = problem()
    (directory / "solutions/checkpoint_2/also.py").symlink_to("calc.py")
    copied = Imported("slopcodebench", directory).directory / "steps/round-2/solution/files/also.py"
    assert os.readlink(copied) == "calc.py"


def test_what_is_neither_file_nor_directory_is_refused(problem: WriteProblem) -> None:
    directory = problem()
    os.mkfifo(directory / "tests/data/pipe")
    assert "tests/data/pipe: is neither a file nor a directory" in refused("slopcodebench", directory)
