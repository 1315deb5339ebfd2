"""``verify_in`` says where the suites of a task run, and ``state`` what belongs to the work outside the workdir."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Verify, load_task

WriteTask = Callable[..., Path]

STEPS = '[[steps]]\nname = "script"\n[[steps]]\nname = "native"\n'
NATIVE = {"steps/native/tests/test_it.py": "def test_it() -> None: ..."}


def write_both(write_task: WriteTask, toml: str) -> Path:
    """Write a task whose first round is verified by a script and whose second round by a native suite."""
    steps = ("script", "native")
    return write_task(toml + STEPS, steps=steps, files=NATIVE, without=("steps/native/tests/test.sh",))


@pytest.mark.parametrize(
    ("said", "script", "native"),
    [
        ("", "clean", "separate"),
        ('verify_in = "separate"', "clean", "separate"),
        ('verify_in = "clean"', "clean", "clean"),
        ('verify_in = "in-place"', "in-place", "in-place"),
        # The words of earlier versions.
        ('verify_in = "' + 'fork"', "clean", "clean"),
        ('verify_in = "' + 'place"', "in-place", "in-place"),
    ],
)
def test_what_holds_for_a_round_depends_on_its_suite_where_the_task_says_nothing(
    write_task: WriteTask, said: str, script: str, native: str
) -> None:
    task = load_task(write_both(write_task, f"[metadata.evocode]\n{said}\n"))
    assert [round_.verify_in for round_ in task.rounds] == [script, native]
    assert task.in_place == ("place" in said)


@pytest.mark.parametrize(
    ("said", "asked", "found"),
    [
        ("", None, "clean"),
        ("", "in-place", "in-place"),
        ("", "clean", "clean"),
        ('verify_in = "in-place"', "clean", "clean"),
        ('verify_in = "in-place"', None, "in-place"),
    ],
)
def test_a_session_may_ask_for_another_way_to_judge(
    write_task: WriteTask, said: str, asked: Verify | None, found: str
) -> None:
    task = load_task(write_task(f"[metadata.evocode]\n{said}\n", steps=())).judged(asked)
    assert ([round_.verify_in for round_ in task.rounds], task.verify) == ([found], asked)


def test_no_native_suite_is_put_where_the_agent_works(write_task: WriteTask) -> None:
    task = load_task(write_both(write_task, "")).judged("in-place")
    assert [round_.verify_in for round_ in task.rounds] == ["clean", "separate"]


def test_scripts_alone_cannot_be_verified_separately(write_task: WriteTask) -> None:
    directory = write_task('\n[metadata.evocode]\nverify_in = "separate"\n', steps=())
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    assert str(caught.value) == (
        f'{directory}/task.toml:3: metadata.evocode.verify_in: "separate" is for native suites, and every round '
        'here is verified by a test.sh; use "clean", environment_mode = "separate" of [verifier], '
        "or write the suites for pytest"
    )


def test_state_is_a_list_of_paths(write_task: WriteTask) -> None:
    toml = '[metadata.evocode]\nstate = ["/var/lib/shop/", "/home/dev//.config"]\n'
    assert load_task(write_task(toml, steps=())).state == ("/var/lib/shop", "/home/dev/.config")
    assert load_task(write_task("", steps=(), name="other")).state == ()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/", "state[#1]: must be an absolute path in the container without '..', and not / itself, not"),
        ("var", "state[#1]: must be an absolute path in the container"),
        ("/var/../etc", "state[#1]: must be an absolute path in the container without '..'"),
        ("//", "state[#1]: must be an absolute path in the container"),
        ("/tests/data", "state[#1]: /tests is never part of what an agent leaves behind; remove it"),
        ("/logs", "state[#1]: /logs is never part of what an agent leaves behind; remove it"),
        ("/dev/shm", "state[#1]: /dev is never part of what an agent leaves behind; remove it"),
        ("/app/data", "state[#1]: /app/data is in the working directory /app, which is always carried over; remove it"),
    ],
)
def test_paths_that_cannot_be_state_are_refused_with_their_line(write_task: WriteTask, path: str, message: str) -> None:
    toml = f'[environment]\nworkdir = "/app"\n[metadata.evocode]\nstate = ["{path}"]\n'
    with pytest.raises(TaskError) as caught:
        load_task(write_task(toml, steps=()))
    assert caught.value.line == 4
    assert f"metadata.evocode.{message}" in str(caught.value)
