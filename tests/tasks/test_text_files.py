"""Text files of tasks as editors and checkouts leave them: CRLF, byte order marks and other encodings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.text_files import read_instruction

WriteTask = Callable[..., Path]

SCRIPTS = ["steps/round-2/tests/test.sh", "steps/round-1/solution/solve.sh", "steps/round-2/workdir/setup.sh"]
SHARED = ["tests/test.sh", "solution/solve.sh"]


def refusal(directory: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    return caught.value


@pytest.mark.parametrize("place", [*SCRIPTS, *SHARED])
def test_a_script_that_was_saved_with_crlf_is_an_error(write_task: WriteTask, place: str) -> None:
    directory = write_task(files={place: "true\n"})
    assert load_task(directory)
    (directory / place).write_bytes(b"#!/bin/bash\r\n\r\ntrue\r\n")
    assert str(refusal(directory)).startswith(f"{directory}/{place}:1: ends its lines in CRLF, and bash takes the CR")


@pytest.mark.parametrize("place", [*SCRIPTS, *SHARED])
def test_a_script_that_writes_a_crlf_is_none(write_task: WriteTask, place: str) -> None:
    directory = write_task(files={place: "true\n"})
    (directory / place).write_bytes(b"cat > dos.txt <<E\na\r\nb\r\nE\n")
    assert load_task(directory)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_configuration_and_instruction_may_have_a_byte_order_mark_and_crlf(write_task: WriteTask, mark: bytes) -> None:
    directory = write_task()
    for place in ("task.toml", "steps/round-1/instruction.md"):
        text = (directory / place).read_bytes().replace(b"\n", b"\r\n")
        (directory / place).write_bytes(mark + text)
    task = load_task(directory)
    assert [round_.name for round_ in task.rounds] == ["round-1", "round-2"]
    assert read_instruction(task.rounds[0].instruction) == "Write the program.\n"


@pytest.mark.parametrize("line", [1, 3])
def test_a_byte_order_mark_that_is_not_the_first_is_named(write_task: WriteTask, line: int) -> None:
    directory = write_task()
    lines = [*"##", *(directory / "task.toml").read_text().splitlines()]
    lines[line - 1] = f"\ufeff{lines[line - 1]}"
    (directory / "task.toml").write_text("\n".join(lines), encoding="utf-8-sig")
    assert str(refusal(directory)) == (
        f"{directory}/task.toml:{line}: not valid TOML: column 1 has a byte order mark, which editors hide; "
        "remove it, and save the file as UTF-8 without one"
    )


def test_an_instruction_of_nothing_but_a_byte_order_mark_is_empty(write_task: WriteTask) -> None:
    assert "instruction.md is empty" in str(refusal(write_task(files={"steps/round-1/instruction.md": "\ufeff\n"})))


@pytest.mark.parametrize("place", ["task.toml", "steps/round-2/instruction.md"])
@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        ("# one\n# zwei \xfc\n".encode("latin-1"), 2, "byte 0xfc"),
        ("\ufeff# one".encode("utf-16-le"), 1, "byte 0xff begins the byte order mark of UTF-16"),
        ("\ufeff# one".encode("utf-16-be"), 1, "byte 0xfe begins the byte order mark of UTF-16"),
    ],
)
def test_text_in_another_encoding_is_an_error_of_its_line(
    write_task: WriteTask, place: str, content: bytes, line: int, why: str
) -> None:
    directory = write_task()
    (directory / place).write_bytes(content)
    error = f"{directory}/{place}:{line}: not UTF-8 ({why}); save the file as UTF-8"
    assert str(refusal(directory)) == error
    with pytest.raises(TaskError, match="not UTF-8"):
        read_instruction(directory / place)


@pytest.mark.parametrize("place", [*SCRIPTS, *SHARED])
def test_a_script_in_another_encoding_is_an_error_of_its_line(write_task: WriteTask, place: str) -> None:
    directory = write_task(files={place: "true\n"})
    (directory / place).write_bytes("#!/bin/bash\n# zwölf\n".encode("latin-1"))
    assert str(refusal(directory)) == f"{directory}/{place}:2: not UTF-8 (byte 0xf6); save the file as UTF-8"


@pytest.mark.parametrize("place", ["steps/round-1/tests/test_a.py", "tests/conftest.py"])
@pytest.mark.parametrize("line", ["# zwölf", "twelve = 'zwölf'", '"""Zwölf."""'])
def test_a_native_suite_in_another_encoding_is_an_error_of_its_line(
    write_task: WriteTask, place: str, line: str
) -> None:
    test = "def test_a(): ...\n"
    scripts = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
    directory = write_task(files={"steps/round-1/tests/test_a.py": test, place: test}, without=scripts)
    for content in (f"{test}\n{line}\n", f"\n\n{line}"):
        (directory / place).write_bytes(content.encode("latin-1"))
        assert str(refusal(directory)) == f"{directory}/{place}:3: not UTF-8 (byte 0xf6); save the file as UTF-8"
    (directory / place).write_bytes(f"# coding: latin-1\n{test}\n{line}\n".encode("latin-1"))
    assert load_task(directory)


def test_all_files_in_another_encoding_are_named_at_once(write_task: WriteTask) -> None:
    directory = write_task(files=dict.fromkeys(SCRIPTS, "true\n"))
    for place in (*SCRIPTS, "steps/round-1/instruction.md"):
        (directory / place).write_bytes(b"\xff")
    assert len(str(refusal(directory)).splitlines()) == len(SCRIPTS) + 1


def test_a_key_that_is_given_twice_is_an_error_of_the_second(write_task: WriteTask) -> None:
    error = refusal(write_task("[agent]\ntimeout_sec = 1\ntimeout_sec = 2\n", steps=()))
    assert error.line == 3
    assert "not valid TOML" in str(error)
