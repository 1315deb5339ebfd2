"""What lint says of cheats that would not be played."""

from __future__ import annotations

import pytest

from tests.checks.conftest import SCRIPT, LintTask


def test_cheats_for_a_round_that_is_none_are_lost(lint_task: LintTask) -> None:
    files = {f"cheat/{place}.sh": SCRIPT for place in ("mine", "round-2/mine", "round-3/mine")}
    assert lint_task({**files, "cheat/files/books.txt": "1\n"}) == [
        "cheat/round-3: no round is called so, and its cheats are not played; "
        "name it like one of round-1, round-2, or move them up"
    ]


CHEAT_PATHS = ["cheat/mine.sh", "cheat/round-2/mine.sh", "cheat/round-2/lib/common.sh"]


@pytest.mark.parametrize("path", CHEAT_PATHS)
def test_cheats_with_carriage_returns_cannot_be_played(lint_task: LintTask, path: str) -> None:
    files = {"cheat/mine.sh": SCRIPT, path: "#!/bin/bash\ntrue\r\ntrue\r\n"}
    assert lint_task(files) == [
        f"{path}:2: ends its lines in CRLF, and bash takes the CR for a part of each command; save it with LF"
    ]


@pytest.mark.parametrize("path", CHEAT_PATHS)
def test_cheats_are_utf8(lint_task: LintTask, path: str) -> None:
    files = {"cheat/mine.sh": SCRIPT, path: "# one\n# zw\udcf6lf\n"}
    assert lint_task(files) == [f"{path}:2: not UTF-8 (byte 0xf6); save the file as UTF-8"]


def test_cheats_are_run_by_bash_and_bring_what_they_like(lint_task: LintTask) -> None:
    files = {"cheat/mine.sh": SCRIPT, "cheat/other.sh": "true\n", "cheat/books.csv": "a\r\n\udcf6\r\n"}
    assert lint_task(files, plain=["cheat/mine.sh"]) == []
