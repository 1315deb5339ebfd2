"""Shell lines as agents write them: which programs run, on which files, and what the line's exit code says of each."""

from __future__ import annotations

import pytest

from pytest_evocode.process.trajectory.shell.commands import parse_line
from pytest_evocode.process.trajectory.shell.files import touched_by
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes

Words = list[tuple[str | None, ...]]


def words(line: str) -> Words:
    return [command.words for command in parse_line(line).commands]


def reads(line: str) -> list[str]:
    return [path for command in parse_line(line).commands for path in touched_by(command).reads]


def writes(line: str) -> list[str]:
    return [change.path for command in parse_line(line).commands for change in touched_by(command).changes]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cd /app && python -m pytest 'a b.py' 2>&1 | tail -3", ["cd", "python", "tail"]),
        ("timeout -k 2 20 env A=b pytest -q", ["pytest"]),
        ("bash -lc 'cd src && make'", ["cd", "make"]),
        ("uv run pytest; poetry run pytest", ["pytest", "pytest"]),
        ("if [ -f a ]; then cat a; fi", ["[", "cat"]),
        ("x=$(cat a) && [[ -n $x && $x == b* ]] && echo $((1+2))", ["cat", "[", "echo"]),
        ("case $x in a) make;; *) true;; esac", ["make", "true"]),
        ("diff <(sort a) <(sort b)", ["sort", "sort", "diff"]),
        ("cat <<'EOF' | python3 -\nprint(1)\nEOF\nls", ["cat", "python3", "ls"]),
        ("while read -r l; do echo $l; done < in.txt", ["read", "echo"]),
        ("# nothing", []),
        ("", []),
    ],
)
def test_the_programs_of_a_line(line: str, expected: list[str]) -> None:
    assert [command.program for command in parse_line(line).commands] == expected


def test_a_function_of_the_line_is_no_program_whatever_its_name() -> None:
    assert words("pytest() { true; }; pytest -q; make") == [("true",), (None, "-q"), ("make",)]


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("pytest", "test"),
        ("pytest --co -q", None),
        ("pytest --setup-plan", None),
        ("python3 -m unittest -h", None),
        ("pytest() { true; }; pytest", None),
        ("make", "build"),
        ("make -j4 -n", None),
        ("python3 -V", None),
        ("node --version", None),
        ("python3 -W error app.py", "program"),
    ],
)
def test_what_only_lists_or_explains_runs_nothing(line: str, purpose: str | None) -> None:
    assert CommandPurposes().of(parse_line(line).commands[-1]) == purpose


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("cargo run -- list", "program"),
        ("cargo run -- check a.txt", "program"),
        ("go run . test", "program"),
        ("dotnet run -- build", "program"),
        ("node app.js -v", "program"),
        ("php bin/load.php -i a.txt", "program"),
        ("cargo nextest list", None),
        ("cargo new test", None),
        ("go mod verify", None),
        ("rails generate model test", None),
        ("composer run test", "test"),
        ("npm run text", None),
    ],
)
def test_what_a_program_is_given_says_nothing_of_its_purpose(line: str, purpose: str | None) -> None:
    assert CommandPurposes().of(parse_line(line).commands[-1]) == purpose


def test_what_is_known_only_at_run_time_is_no_word() -> None:
    assert words('cat "$HOME/a" b$(date) c') == [("date",), ("cat", None, None, "c")]


def test_variables_and_loops_are_followed_as_far_as_the_line_tells() -> None:
    assert reads('F=a.py; cat "$F"; for f in b.py c.py; do head -n 5 $f; done') == ["a.py", "b.py", "c.py"]


def test_a_here_document_is_what_a_program_is_given() -> None:
    (command,) = parse_line("cat > a.py <<'EOF'\nx = '$y'\nEOF").commands
    assert command.stdin == "x = '$y'\n"
    assert touched_by(command).changes[0].content == "x = '$y'\n"


def test_a_line_that_no_shell_could_read_is_still_looked_at() -> None:
    line = parse_line("cat a.py; echo 'unterminated")
    assert line.broken
    assert line.commands[0].words == ("cat", "a.py")


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("cat a.py b.py", ["a.py", "b.py"]),
        ("head -n 20 a.py | grep -n def", ["a.py"]),
        ("sed -n '1,20p' a.py", ["a.py"]),
        ("grep -rn 'def main' src/a.py b.py", ["src/a.py", "b.py"]),
        ("grep -e one -e two a.py", ["a.py"]),
        ("awk -F, '{print $1}' a.csv", ["a.csv"]),
        ("cd src && cat a.py && cd .. && cat b.py", ["src/a.py", "b.py"]),
        ("(cd src && cat a.py); cat b.py", ["src/a.py", "b.py"]),
        ("python x.py < in.txt", ["in.txt"]),
        ("git show HEAD~1:a.py; git blame b.py", ["a.py", "b.py"]),
        ("diff a.py b.py; wc -l c.py", ["a.py", "b.py", "c.py"]),
        ("cat /dev/null - a.py", ["a.py"]),
        ("ls src; git status; echo a.py", []),
        ("cp a.py b.py", ["a.py"]),
        ("sed -i s/a/b/ a.py", []),
    ],
)
def test_the_files_that_are_read(line: str, paths: list[str]) -> None:
    assert reads(line) == paths


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("echo x > a.py; echo y >> b.py", ["a.py", "b.py"]),
        ("sed -i -e 's/a/b/' a.py b.py", ["a.py", "b.py"]),
        ("sed -ibak s/a/b/ a.py", ["a.py"]),
        ("perl -pi -e 's/a/b/' a.py", ["a.py"]),
        ("make 2>&1 | tee log.txt", ["log.txt"]),
        ("make > /dev/null 2>&1", []),
        ("cp a.py b.py; cp a.py c.py dir/", ["b.py", "dir/a.py", "dir/c.py"]),
        ("mv a.py b.py", ["a.py", "b.py"]),
        ("rm -rf a.py", ["a.py"]),
        ("cd src && touch a.py", ["src/a.py"]),
        ("git checkout -- a.py; git restore b.py; git rm c.py", ["a.py", "b.py", "c.py"]),
        ("git checkout main", []),
        ("patch -p1 <<'E'\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\nE", ["x.py"]),
        ("apply_patch <<'E'\n*** Begin Patch\n*** Update File: x.py\n@@\n-a\n+b\n*** End Patch\nE", ["x.py"]),
        ("cat a.py", []),
    ],
)
def test_the_files_that_are_written(line: str, paths: list[str]) -> None:
    assert writes(line) == paths


@pytest.mark.parametrize(
    ("line", "index", "exit_code", "own"),
    [
        ("pytest", 0, 1, 1),
        ("cd a && pytest", 1, 1, 1),
        ("cd a && pytest", 0, 0, 0),
        ("cd a && pytest", 0, 1, None),
        ("pytest | tail", 0, 0, None),
        ("set -o pipefail; pytest | tail", 1, 0, 0),
        ("set -e; pytest; ls", 1, 0, 0),
        ("pytest; ls", 0, 0, None),
        ("pytest || true", 0, 0, None),
        ("! pytest", 0, 0, None),
        ("echo $(pytest)", 0, 0, None),
        ("pytest", 0, None, None),
    ],
)
def test_what_the_lines_exit_code_says_of_a_command(
    line: str, index: int, exit_code: int | None, own: int | None
) -> None:
    assert parse_line(line).exit_code_of(index, exit_code) == own
