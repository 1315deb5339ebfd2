"""Sessions in sandboxes of an image that the user gives: the options, what is told, and what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from tests.environments.image_files import description, digest, layer, layout, tiny_system, write_directory

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

NAME = "python:3.11-slim-bookworm"
ON_IT = "[[ $(< /etc/os-release) == ID=tiny ]] && echo 1 > /logs/verifier/reward.txt"


@pytest.fixture
def image(pytester: pytest.Pytester) -> str:
    """A layout with the image, by a path from the directory of the session."""
    write_directory(layout([((tiny_system(),), {}, None)]), pytester.path / "layout")
    return digest(description([tiny_system()], {}))


@pytest.mark.parametrize("way", ["option", "setting", "workers"])
def test_a_session_runs_on_it_and_records_its_identity(
    way: str, image: str, pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, solve={1: "true"}, test={1: ON_IT})
    given = f"docker.io/library/{NAME}=layout"
    if way == "setting":
        pytester.makeini(f"[pytest]\nevocode_images =\n    {given}\n    unused=layout")
    arguments = (
        ["tasks"] if way == "setting" else [f"--evocode-image={given}", "--evocode-image=unused=layout", "tasks"]
    )
    session = run_tasks(*arguments, *(["-n1"] if way == "workers" else []), subprocess=way == "workers")
    assert session.exit_status == 0, session.text
    session.has(
        "evocode: environment sandbox (*2 images are given, and the host's * stands in for every other FROM image*)",
        "evocode: no task here is built on unused, which --evocode-image gives",
    )
    assert session.text.count("stands in") == session.text.count("no task here") == 1
    assert session.run.versions[f"image docker.io/library/{NAME}"] == (image,)


@pytest.mark.usefixtures("image")
def test_rounds_are_verified_again_on_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, solve={1: "true"}, test={1: ON_IT})
    assert run_tasks("--evocode-snapshots", f"--evocode-image={NAME}=layout", "tasks").exit_status == 0
    again = CliRunner().invoke(main, ["regrade", f"--image={NAME}=layout"])
    assert (again.exit_code, again.output.startswith("verified 1 ")) == (0, True)
    without = CliRunner().invoke(main, ["regrade"])
    assert (without.exit_code, "is another one now, which its rounds were not left in" in without.output) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--evocode-image=python"], "--evocode-image: 'python': write it as NAME=PATH, such as *"),
        (["-o", "evocode_images=python"], "-o evocode_images: 'python': write it as NAME=PATH, such as *"),
        (["--evocode-image=python=/no/such"], "the image python=/no/such cannot be used: No such file or directory; *"),
        (
            ["--evocode-image=a=b", "--evocode-cluster=ray"],
            "--evocode-cluster makes attempts on other machines, where *",
        ),
    ],
)
def test_what_is_no_image_is_a_usage_error(
    arguments: list[str], message: str, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    session = run_tasks(*arguments, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_an_image_of_another_machine_is_one_error(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_directory(layout([((layer(),), {}, "sparc")]), pytester.path / "layout")
    write_task("a", 1)
    session = run_tasks(f"--evocode-image={NAME}=layout", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert session.text.count("it is for linux/sparc, and this machine is linux/") == 1


@pytest.mark.parametrize("what", ["--evocode-check", "--evocode-agent=oracle", "--evocode-warm"])
def test_what_cannot_be_built_is_said_once(what: str, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, dockerfile="FROM scratch\nONBUILD RUN x\n")
    session = run_tasks(what, "tasks", agent=None)
    assert session.text.count("this task needs Docker: ONBUILD is not replayed") == 1, session.text
    assert session.text.count("stands in for every FROM image") == 1
