"""``pytest --evocode-check``: ``starter-clean`` finds what agents could look up before they are asked for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.checks.leaks import LIMITS
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

SOLVE = "cp /solution/tally.py . && echo line-2 >> log.txt"
TALLY = "".join(f"def item_{number}(table): return table[{number}] * {number}\n" for number in range(8))
REMEDY = "and agents see it before round 1; take it out of the image and the build context"


@pytest.mark.parametrize(
    ("place", "env"),
    [
        ("/opt/answers", "sandbox"),
        ("/usr/local/share", "sandbox"),
        pytest.param("/opt/answers", "docker", marks=pytest.mark.docker),
    ],
)
@pytest.mark.matrix
def test_a_solution_left_in_the_image_outside_of_the_workspace(
    write_task: WriteTask, check_tasks: CheckTasks, place: str, env: str
) -> None:
    write_task(
        "a",
        2,
        solve={2: SOLVE},
        dockerfile=f"{DOCKERFILE}RUN mkdir -p {place} && cd {place} && echo up_to,cents,70,99 > short && "
        f"python3 -c '{in_python(TALLY)}' > kept\n",
        files={"steps/round-2/solution/tally.py": TALLY, "steps/round-2/solution/rates.csv": "up_to,cents,70,99\n"},
    )
    (message,) = check_tasks("-kstarter", env=env).messages.values()
    assert set(message.splitlines()) == {
        f"{place}/kept: is the same file as steps/round-2/solution/tally.py, {REMEDY}",
        f"{place}/short: is the same file as steps/round-2/solution/rates.csv, {REMEDY}",
        LIMITS,
    }


@pytest.mark.nightly
def test_solutions_and_tests_in_the_build_context_the_workspace_and_an_earlier_workdir(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    solution = {"steps/round-2/solution/tally.py": TALLY}
    write_task("context", 2, solve={2: SOLVE}, files={**solution, "environment/old/tally.py": TALLY})
    lines = f"RUN python3 -c '{in_python(TALLY.replace('item_7', 'other'))}' > notes.txt\n"
    write_task("lines", 2, solve={2: SOLVE}, dockerfile=DOCKERFILE + lines, files=solution)
    tests = write_task("tests", 2, dockerfile=f"{DOCKERFILE}COPY . .\n", files={"tests/data.txt": "x" * 100})
    for source in (tests / "steps/round-2/tests/test.sh", tests / "tests/data.txt"):
        Path(tests, "environment", source.name).write_bytes(source.read_bytes())
    write_task("workdir", 2, solve={2: SOLVE}, workdir={1: {"next/tally.py": TALLY}}, files=solution)
    # As an image that has neither find nor sha256sum.
    bare = "ENV PATH=/usr/local/bin\nRUN /bin/ln -s /bin/bash /bin/rm /usr/local/bin\n"
    write_task("bare", 1, dockerfile=DOCKERFILE + bare)
    checked = check_tasks("-kstarter", "tasks")
    tasks = {test["nodeid"].split("/")[1]: test for test in checked.session.json_report()["tests"]}
    assert {task: test["call"]["longrepr"] for task, test in tasks.items() if test["outcome"] == "failed"} == {
        "context": f"environment/old/tally.py: is the same file as steps/round-2/solution/tally.py, {REMEDY}\n{LIMITS}",
        "lines": "/app/notes.txt:1: has 7 lines in a row that the solution of round-2 adds to tally.py "
        "(steps/round-2/solution/tally.py:1), and agents see them before round 1; "
        f"take it out of the image and the build context\n{LIMITS}",
        "tests": f"environment/data.txt: is the same file as tests/data.txt, {REMEDY}\n"
        f"environment/test.sh: is the same file as steps/round-2/tests/test.sh, {REMEDY}\n{LIMITS}",
        "workdir": "steps/round-1/workdir/next/tally.py: is the same file as steps/round-2/solution/tally.py, "
        f"and agents see it from round-1 on; take it out of the workdir of round-1\n{LIMITS}",
    }
    assert tasks["bare"]["outcome"] == "passed"
    assert checked.warnings == [
        "the image has no find or no sha256sum, so only its workspace and the build context were looked at"
    ]


def test_what_a_distribution_installs_is_no_leak(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    licence = Path("/usr/share/common-licenses/BSD")
    if not licence.is_file():
        pytest.skip(f"there is no {licence}")
    files = {"steps/round-2/solution/terms.txt": licence.read_text()}
    write_task("a", 2, solve={2: f"cp /solution/terms.txt . && {SOLVE.partition('&& ')[2]}"}, files=files)
    assert check_tasks("-kstarter").outcomes == {"starter-clean": "passed"}


def in_python(text: str) -> str:
    """A program that prints a text, and does not hold it in full."""
    return f'print(bytes.fromhex("{text.encode().hex()}").decode(), end="")'
