"""Lines below pytest's output: whatever happens, that output is what it would be without them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pytest
from _pytest._io import TerminalWriter
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_evocode.plugin.live import LiveBlock
from tests.screens import Screen
from tests.terminals import Person

pytestmark = pytest.mark.every_python

LINES, COLUMNS = 24, 80
#: What is done to a block: something is written below which it is, or so many lines are shown.
STEPS = st.lists(
    st.one_of(
        st.text("ab \n", max_size=200),
        st.just("\n" * (LINES - 4)),
        st.builds("\r{:79}".format, st.text("xy", max_size=10)),  # As pytest writes a line anew, and then ends it.
        st.integers(0, LINES // 2),
    ),
    max_size=30,
)


def _cooked(text: str) -> str:
    """What a terminal makes of a program's output, whoever in it wrote a newline."""
    return text.replace("\n", "\r\n")


class Written:
    """A writer whose terminal is a file, of which a screen can be made at any time."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "terminal"
        self.file = self._path.open("w", encoding="utf-8")
        self.writer = TerminalWriter(self.file)
        self.writer.hasmarkup = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    @property
    def screen(self) -> Screen:
        """What is seen now."""
        self.file.flush()
        screen = Screen(LINES, COLUMNS)
        screen.print(_cooked(self._path.read_bytes().decode()))
        return screen


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    """See :class:`Written`."""
    with Written(tmp_path) as terminal:
        yield terminal


@pytest.fixture
def block(written: Written) -> Iterator[LiveBlock]:
    """What comes between the two."""
    block = LiveBlock(written.writer)
    yield block
    block.close()


def show(block: LiveBlock, *lines: str) -> None:
    """Show lines that fit any screen."""
    block.show(lambda size: lines)


def test_lines_are_below_and_the_cursor_stays(written: Written, block: LiveBlock) -> None:
    written.writer.write("first\nsecond ..")
    show(block, "one", "two")
    assert written.screen.shown == ["first", "second ..", "one", "two"]
    assert written.screen.cursor == (1, 9)


def test_what_is_written_goes_on_where_it_was(written: Written, block: LiveBlock) -> None:
    written.writer.write("first\nsecond ..")
    show(block, "one", "two")
    written.writer.write("F\nthird")
    assert written.screen.shown == ["first", "second ..F", "third"]


def test_lines_that_change_replace_one_another(written: Written, block: LiveBlock) -> None:
    written.writer.write("first")
    show(block, "one, and long", "two", "three")
    show(block, "1", "2")
    assert written.screen.shown == ["first", "1", "2"]


def test_at_the_end_of_the_screen_room_is_made(written: Written, block: LiveBlock) -> None:
    text = [str(number) for number in range(30)]
    written.writer.write("\n".join(text))
    show(block, "one", "two")
    screen = written.screen
    assert screen.shown == [*text[-22:], "one", "two"]
    assert screen.all == [*text, "one", "two"]


def test_no_line_is_left_when_it_is_closed(written: Written, block: LiveBlock) -> None:
    written.writer.write("first")
    show(block, "one", "two")
    block.close()
    show(block, "late")
    written.writer.write(" and last")
    assert written.screen.all == ["first and last"]


def test_a_line_that_is_too_wide_is_clipped(written: Written, block: LiveBlock) -> None:
    written.writer.write("first")
    show(block, "漢" * COLUMNS, "two")
    shown = written.screen.shown
    assert len(shown) == 3
    assert shown[2] == "two"


def test_colours_go_on_after_lines_that_have_none(written: Written, block: LiveBlock) -> None:
    write = getattr(written.writer, "write_raw", written.writer.write)  # pytest 9.2 shows escapes that it did not make.
    write("\x1b[31mred")
    show(block, "one")
    assert written.screen.colours(1, 3) == {"default"}
    write(" still\x1b[0m")
    assert written.screen.colours(0, 9) == {"red"}


def test_nothing_is_shown_below_a_line_that_fills_its_row(written: Written, block: LiveBlock) -> None:
    written.writer.write("x" * COLUMNS)
    show(block, "one")
    assert written.screen.shown == ["x" * COLUMNS]
    written.writer.write("y")
    show(block, "one")
    assert written.screen.shown == ["x" * COLUMNS, "y", "one"]


def test_a_line_that_somebody_typed_below_is_cleared_away(written: Written, block: LiveBlock) -> None:
    written.writer.write("first")
    show(block, "one", "two")
    print(file=written.file, flush=True)  # As the terminal does for the key.
    show(block, "one", "two, changed")
    assert written.screen.shown == ["first", "", "one", "two, changed"]


def test_the_size_is_that_of_the_window() -> None:
    with Person() as person, open(person.terminal, "w", closefd=False) as file:
        block = LiveBlock(TerminalWriter(file))
        for lines, columns in ((10, 40), (24, 100)):
            person.resize(lines, columns)
            block.show(lambda size: [f"{size.lines} x {size.columns}"])
            person.sees(f"{lines} x {columns}")
        block.close()


def test_a_terminal_that_is_closed_is_no_error() -> None:
    person = Person()
    with open(person.terminal, "w", closefd=False) as file:
        block = LiveBlock(TerminalWriter(file))
        with person:
            show(block, "one")
            person.sees("one")
            person.leave()
            show(block, "two")
            block.close()


@settings(database=None, deadline=None, derandomize=True, max_examples=60)
@given(steps=STEPS)
def test_when_it_is_closed_everything_is_as_if_it_had_not_been(steps: list[str | int]) -> None:
    with TemporaryDirectory() as directory, Written(Path(directory)) as written:
        block = LiveBlock(written.writer)
        plain = Screen(LINES, COLUMNS)
        anew = False
        for step in steps:
            if isinstance(step, int):
                show(block, *(f"status {index}" for index in range(step)))
                continue
            text = f"\n{step}" if anew and not step.startswith("\r") else step
            anew = step.startswith("\r")
            written.writer.write(text)
            plain.print(_cooked(text))
        block.close()
        assert written.screen.all == plain.all


def test_writing_and_showing_at_once_mix_nothing_up(written: Written, block: LiveBlock) -> None:
    over = threading.Event()

    def keep_showing() -> None:
        while not over.is_set():
            show(block, "one", "two")
            show(block, "three")

    thread = threading.Thread(target=keep_showing)
    thread.start()
    for number in range(500):
        written.writer.write(f"{number}")
        written.writer.write(" passed\n")
    over.set()
    thread.join()
    block.close()
    assert written.screen.all == [f"{number} passed" for number in range(500)]
