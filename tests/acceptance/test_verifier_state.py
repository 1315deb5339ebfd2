"""``verifier_state``: what suites keep for later ones, and no agent sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

STATE = 'verifier_state = ["/var/verifier"]\n'
#: Passes where each suite before has left its line there, in order, and nobody else anything.
TEST = """cd /var/verifier
for index in $(seq 1 $((EVOCODE_ROUND_INDEX - 1))); do echo $index; done > /tmp/expected
touch seen
if cmp -s seen /tmp/expected && [ ! -e planted ]; then reward=1; else reward=0; fi
ls -la; cat seen
echo $EVOCODE_ROUND_INDEX >> seen
echo $reward > /logs/verifier/reward.txt
"""
#: An agent that finds nothing of it, and plants something of its own.
SOLVE = "[ ! -e /var/verifier/seen ] && echo line >> log.txt && mkdir -p /var/verifier && touch /var/verifier/planted"
#: One for each round; those of earlier rounds run again, and look at nothing.
NATIVE = """import os
from pathlib import Path

ROUND = {}
SEEN = Path("/var/verifier/seen")


def test_what_earlier_suites_left(workspace):
    index = int(os.environ["EVOCODE_ROUND_INDEX"])
    if index != ROUND:
        return
    before = SEEN.read_text().split() if SEEN.exists() else []
    assert before == [str(each) for each in range(1, index)]
    assert not workspace.exists("/var/verifier/seen")
    with SEEN.open("a") as file:
        file.write(str(index) + "\\n")
"""


def write_stateful(write_task: WriteTask, name: str, evocode: str = "", toml: str = "") -> None:
    write_task(
        name,
        2,
        toml=f"{toml}[metadata.evocode]\n{STATE}{evocode}",
        solve=dict.fromkeys((1, 2), SOLVE),
        test=dict.fromkeys((1, 2), TEST),
    )


@pytest.mark.parametrize("env", ["sandbox"])
@pytest.mark.nightly
def test_it_is_carried_from_suite_to_suite_wherever_suites_run(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    write_stateful(write_task, "fork")
    write_stateful(write_task, "clean", 'verify_in = "clean"\n')
    write_stateful(write_task, "apart", toml='[verifier]\nenvironment_mode = "separate"\n')
    write_task(
        "native",
        2,
        toml=f'[metadata.evocode]\n{STATE}verify_in = "separate"\n',
        solve=dict.fromkeys((1, 2), SOLVE),
        native={index: NATIVE.format(index) for index in (1, 2)},
    )
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 8}, session.text
    assert not list(session.attempt("fork").glob("**/verifier-state"))


@pytest.mark.docker
@pytest.mark.nightly
def test_it_is_carried_in_docker_as_well(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_it_is_carried_from_suite_to_suite_wherever_suites_run(write_task, run_tasks, env="docker")


def test_rounds_that_begin_without_it_say_so(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_stateful(write_task, "a")
    session = run_tasks("tasks/a/task.toml", "--evocode-mode=single-round")
    verdicts = [round_.verdict for round_ in session.record().rounds]
    flags = [verdict.flags for verdict in verdicts if verdict is not None]
    assert flags[0] == ()
    (said,) = flags[1]
    assert said.startswith("verifier_state is empty: no suite of an earlier round has run in this attempt")


def test_what_cannot_be_is_refused_with_its_line(write_task: WriteTask, run_tasks: RunTasks) -> None:
    refused = {
        'verify_in = "in-place"\nverifier_state = ["/var/verifier"]': '*with verify_in = "in-place" suites find*',
        'state = ["/var/lib"]\nverifier_state = ["/var/lib/x"]': "*/var/lib/x and /var/lib, which agents leave*",
        'verifier_state = ["/logs/verifier"]': "*",
    }
    for index, toml in enumerate(refused):
        write_task(f"of-{index}", 1, toml=f"[metadata.evocode]\n{toml}\n")
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 3}
    session.has(*(f"*of-{index}/task.toml:*{message}" for index, message in enumerate(refused.values())))
