"""Which commands are runs of builds, tests and the program, and how they ended."""

from __future__ import annotations

import json

import pytest

from pytest_evocode.environments import ExecResult
from pytest_evocode.process.execution.states import CommandResult
from pytest_evocode.process.trajectory.outputs import in_short_lines, without_wrapper
from tests.process.trajectories import Recording, activity_of


def last_run(command: str, output: str, exit_code: int | None) -> tuple[str, bool | None] | None:
    recording = Recording()
    recording.bash(command, output, exit_code)
    runs = activity_of(recording).runs
    return (runs[-1].purpose, runs[-1].passed) if runs else None


def test_tests_behind_a_build_that_failed_were_not_run() -> None:
    output = "/app/a.cpp:3:1: error: 'foo' does not name a type\ngmake: *** [Makefile:136: all] Error 2"
    assert last_run("cmake --build build && ctest --test-dir build", output, 2) == ("build", False)


def test_a_program_whose_output_another_takes_has_passed_if_it_printed_something() -> None:
    assert last_run("./report.sh shop.db | head -2", "tea,3\n", 0) == ("program", True)
    assert last_run("./report.sh shop.db | head -2", "", 0) == ("program", None)


@pytest.mark.parametrize(
    "output",
    [
        "Output: 2 passed in 0.1s\nError: (none)\nExit Code: 0",
        "<returncode>0</returncode>\n<output>\n2 passed in 0.1s\n</output>",
        "Exit code: 0\nWall time: 2.1 seconds\nOutput:\n2 passed in 0.1s",
        "2 passed in 0.1s\n[The command completed with exit code 0.]",
        "Chunk ID: 1\nWall time: 2.1 seconds\nProcess exited with code 0\nOutput:\n2 passed in 0.1s",
        "2 passed in 0.1s\n\n<system-reminder>\n<total_tokens>15000 tokens left</total_tokens>\n</system-reminder>",
    ],
)
def test_what_a_cli_prints_around_an_output_is_none_of_it(output: str) -> None:
    assert last_run("pytest; ls", output, None) == ("test", True)
    assert without_wrapper(output).strip() == "2 passed in 0.1s"


@pytest.mark.parametrize(
    "output",
    [
        "Page: <output>3</output>\n1 failed in 0.1s",
        "<returncode>1</returncode>\n<output>\n<output>3</output>\n1 failed in 0.1s\n</output>",
    ],
)
def test_a_tag_that_the_product_prints_ends_no_output(output: str) -> None:
    assert "<output>3</output>" in without_wrapper(output)
    assert last_run("pytest; ls", output, None) == ("test", False)


@pytest.mark.parametrize("text", ["\n" * 80_000, "'" * 80_000, "=" * 80_000])
def test_an_output_of_one_sign_is_a_run_that_failed(text: str) -> None:
    """Patterns would be searched for in it for hours if it were not shortened."""
    assert last_run("pytest", text, 1) == ("test", False)
    executed = CommandResult.of(ExecResult(1, f"{text}\n1 failed in 0.1s", False, 0.1))
    assert (executed.ran_tests, executed.ok) == (True, False)


def test_an_output_is_shortened_in_gaps_and_long_lines() -> None:
    assert in_short_lines("a" + "\n" * 30 + "b\n\nc") == "a\n\nb\n\nc"
    assert in_short_lines("a" * 5000 + "b") == "a" * 1000 + " ... " + "a" * 999 + "b"


def test_a_program_that_the_project_has_installed_is_its_own() -> None:
    crash = 'Traceback (most recent call last):\n  File "/app/src/ledger/cli.py", line 3, in main\nKeyError: 1'
    assert last_run("uv run ledger list", crash, 1) == ("program", False)
    assert last_run("uv run ruff check .", "Found 1 error.", 1) is None


def test_an_installation_is_a_run_where_it_stops_the_work() -> None:
    refused = "npm error code ENOTFOUND"
    assert last_run("npm ci", "added 3 packages", 0) is None
    assert last_run("npm ci", refused, 1) == ("build", False)
    assert last_run("npm ci && npm test", "Tests: 1 failed, 1 total", 1) == ("test", False)
    assert last_run("npm install left-pad", refused, 1) is None


def test_what_a_program_is_given_is_no_script_of_its_own() -> None:
    recording = Recording()
    recording.bash("./pack.sh /srv/data", "mkdir: cannot create directory '/srv/data/x': Permission denied", 1)
    assert activity_of(recording).runs[-1].failure == "environment"


def test_a_scratch_script_is_known_by_its_whole_name() -> None:
    recording = Recording()
    frames = '  File "/tmp/check_db.py", line 5, in <module>\n  File "/app/a/db.py", line 12, in insert\n'
    recording.bash("python /tmp/check_db.py", f"Traceback (most recent call last):\n{frames}KeyError: 1", 1)
    assert activity_of(recording).runs[-1].failure == "product"


HIDDEN = "=== 1 failed, 3 passed in 0.12s ==="


@pytest.mark.parametrize(
    "command",
    [
        "python -m coverage run -m pytest", "bin/test", "npm run ci", "yarn ci", "make ci", "tools/ci.sh", "pnpm check",
        "sh tools/verify", "npm run test:unit -- --ci", "python setup.py test",
    ],
)  # fmt: skip
def test_tests_are_known_by_the_program_where_nothing_is_printed(command: str) -> None:
    assert last_run(command, "", 1) == ("test", False)


@pytest.mark.parametrize(
    "command",
    [
        "dev/all", "./go", "invoke all", "earthly +all", "$RUNNER", "make", "python everything.py",
        "watchexec -1 pytest",
        "ls src; dev/all 2>&1 | tail -5", "cd sub && dev/all; echo done", "dev/all > out.log 2>&1; tail -3 out.log",
        "python - <<'EOF'\nimport subprocess\nsubprocess.run(['py' + 'test'])\nEOF", "cat a.py && dev/all",
        "docker compose up app", "source all.sh",
    ],
)  # fmt: skip
def test_a_summary_makes_a_test_run_of_any_program(command: str) -> None:
    assert last_run(command, HIDDEN, None) == ("test", False)


@pytest.mark.parametrize(
    "command",
    [
        "cat old.log", "tail -n 3 run.log | grep passed", "git show HEAD:run.log", "docker logs app", "less < old.log",
        f"echo '{HIDDEN}'", f"printf '%s\\n' '{HIDDEN}'", f"cat <<'EOF'\n{HIDDEN}\nEOF",
        f"dev/all >/dev/null; echo '{HIDDEN}'",
        "python -c \"print(open('old.log').read())\"",
        'dev/all >/dev/null; n=3; echo "=== 1 failed, $n passed in 0.1s ==="',
        "cargo test -- --list", "pytest --collect-only -q", "npm ci", "grep -rn passed . ; ls", "gh run view 3 --log",
    ],
)  # fmt: skip
def test_a_summary_that_is_only_shown_or_printed_is_no_run(command: str) -> None:
    assert last_run(command, HIDDEN, None) is None or last_run(command, HIDDEN, None) == ("program", None)


def test_what_the_agent_has_written_before_is_no_summary() -> None:
    recording = Recording().write("tools/show.py", "print('=' * 3, 3, 'passed', 'in', '0.1s')\n")
    recording.bash("python tools/show.py", "=== 3 passed in 0.1s", 0)
    recording.write("tools/show", "#!/bin/sh\ncat old.log\n").bash("sh tools/show", HIDDEN, 0)
    recording.call("Write", {"file_path": "/app/old.log", "content": HIDDEN}).bash("dev/all", HIDDEN, 0)
    assert not [run for run in activity_of(recording).runs if run.purpose == "test"]


def test_a_printed_summary_tells_nothing_of_the_tests_beside_it() -> None:
    assert last_run("pytest -q >/dev/null; echo '3 passed in 0.1s'", "3 passed in 0.1s", 0) == ("test", None)


def test_a_log_that_is_shown_later_tells_how_the_tests_ended() -> None:
    recording = Recording().bash("dev/all > /tmp/out.log 2>&1; true", "", 0).bash("tail -3 /tmp/out.log", HIDDEN, 0)
    recording.bash("cat /tmp/out.log", HIDDEN, 0)
    assert [(run.key, run.passed) for run in activity_of(recording).runs if run.purpose == "test"] == [("all", False)]


@pytest.mark.parametrize(
    ("path", "text", "command"),
    [
        ("check-all", "#!/bin/sh\nset -e\npython -m unittest -q >/dev/null 2>&1\n", "./check-all"),
        ("package.json", '{"scripts": {"all": "jest --silent"}}', "npm run all"),
        ("Makefile", "all:\n\t@pytest -q >/dev/null\n", "make all"),
    ],
)
def test_a_script_is_for_what_its_commands_are_for(path: str, text: str, command: str) -> None:
    recording = Recording().write(path, text).bash(command, "", 1)
    assert [(run.purpose, run.passed) for run in activity_of(recording).runs] == [("test", False)]


def test_a_tool_of_the_harness_can_run_tests() -> None:
    assert [run.purpose for run in activity_of(Recording().call("mcp__ide__runTests", {}, HIDDEN)).runs] == ["test"]
    assert not activity_of(Recording().call("WebFetch", {"url": "x"}, HIDDEN)).runs


@pytest.mark.parametrize("script", ["true", "echo '3 passed in 0.1s'", "cat old.log && exit 0"])
def test_a_script_called_test_that_runs_nothing_is_no_test_run(script: str) -> None:
    recording = Recording().write("package.json", json.dumps({"scripts": {"test": script}}))
    assert not activity_of(recording.bash("npm test", "3 passed in 0.1s")).runs
