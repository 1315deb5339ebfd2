"""Harbor's ``environment_mode = "separate"``: which image a suite has for itself, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import SuiteEnvironment, load_task

WriteTask = Callable[..., Path]
SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
OWN = '[verifier.environment]\ndocker_image = "own"\n'
STEPS = '[[steps]]\nname = "round-1"\n{}\n[[steps]]\nname = "round-2"\n{}\n'
NATIVE = "def test_it(workspace):\n    pass\n"
NO_SUITES = ("steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh")


def of_rounds(directory: Path) -> list[SuiteEnvironment | None]:
    """The environments that the suites of a task have for themselves."""
    task = load_task(directory)
    assert {each.verify_in for each in task.rounds} == {"clean"}
    return [round_.suite_environment for round_ in task.rounds]


@pytest.mark.parametrize(
    ("task", "first", "second", "expected"),
    [
        (SEPARATE, "", "", [True, True]),
        (OWN, "", "", [True, True]),
        ("", "", "", [False, False]),
        ("", 'verifier.environment_mode = "separate"', "", [True, False]),
        (SEPARATE, 'verifier.environment_mode = "shared"', "", [False, True]),
        (OWN, 'verifier.environment_mode = "shared"', "", [False, True]),
        ("", '[steps.verifier.environment]\ndocker_image = "x"', "verifier.timeout_sec = 5", [True, False]),
    ],
)
def test_a_step_decides_else_the_task_and_an_environment_says_separate(
    write_task: WriteTask, task: str, first: str, second: str, expected: list[bool]
) -> None:
    assert [each is not None for each in of_rounds(write_task(task + STEPS.format(first, second)))] == expected


def test_a_task_without_steps_may_be_separate(write_task: WriteTask) -> None:
    (own,) = of_rounds(write_task(SEPARATE, steps=()))
    assert own is not None
    assert not own.brings_tests


def test_the_image_is_the_steps_then_the_tasks_and_then_the_agents(write_task: WriteTask) -> None:
    of_step = '[steps.verifier.environment]\ndocker_image = "of-step"'
    toml = '[environment]\ndocker_image = "of-agent"\n'
    directory = write_task(toml + SEPARATE + STEPS.format(of_step, ""))
    first, second = of_rounds(directory)
    assert first is not None
    assert second is not None
    assert (first.config.docker_image, first.brings_tests) == ("of-step", True)
    assert (second.config.docker_image, second.brings_tests, second.context) == ("of-agent", False, None)
    write_task(toml + OWN + STEPS.format(of_step, ""))
    assert [each and each.config.docker_image for each in of_rounds(directory)] == ["of-step", "own"]
    write_task(toml + OWN + STEPS.format("", ""), files={"steps/round-1/tests/Dockerfile": "FROM scratch\n"})
    first, second = of_rounds(directory)
    assert first is not None
    assert (first.config.docker_image, first.context) == (None, directory / "steps/round-1/tests")
    assert load_task(directory).with_environment_of(first).dockerfile == directory / "steps/round-1/tests/Dockerfile"
    (directory / "tests").mkdir()
    (directory / "tests/Dockerfile").touch()
    assert [each and each.config.docker_image for each in of_rounds(directory)] == [None, "own"]
    write_task(toml + SEPARATE + STEPS.format("", ""))
    (directory / "steps/round-1/tests/Dockerfile").unlink()
    assert [each and each.context for each in of_rounds(directory)] == [directory / "tests"] * 2


def test_settings_are_of_the_nearest_section_and_the_network_is_its(write_task: WriteTask) -> None:
    toml = """
[environment]
build_timeout_sec = 7
network_mode = "no-network"
env = { A = "agent" }
[verifier]
[verifier.environment]
network_mode = "public"
cpus = 2
"""
    steps = STEPS.format('verifier.network_mode = "no-network"', "[steps.verifier.environment]\ncpus = 3")
    task = load_task(write_task(toml + steps))
    first, second = (round_.suite_environment for round_ in task.rounds)
    assert first is not None
    assert second is not None
    assert (first.config.cpus, first.config.build_timeout_sec, dict(first.config.env)) == (2, 7, {})
    assert second.config.cpus == 3
    assert [round_.verifier_network for round_ in task.rounds] == ["no-network", None]
    assert [round_.agent_network for round_ in task.rounds] == ["no-network", "no-network"]


def test_an_image_of_the_verifiers_may_have_the_only_tests(write_task: WriteTask) -> None:
    task = load_task(write_task(OWN + STEPS.format("", ""), without=NO_SUITES))
    assert all(round_.has_script and round_.tests == () for round_ in task.rounds)
    directory = write_task(SEPARATE + STEPS.format("", ""), without=NO_SUITES, name="without")
    with pytest.raises(TaskError, match="nothing verifies the round"):
        load_task(directory)


def test_an_image_for_native_suites_is_theirs_as_before(write_task: WriteTask) -> None:
    files = {"steps/round-1/tests/test_it.py": NATIVE}
    task = load_task(write_task(OWN + STEPS.format("", ""), without=NO_SUITES[:1], files=files))
    assert [(each.verify_in, each.has_script) for each in task.rounds] == [("separate", False), ("clean", True)]


def test_collect_commands_of_the_task_come_before_those_of_the_step(write_task: WriteTask) -> None:
    toml = '[[verifier.collect]]\ncommand = "one"\n'
    step = '[[steps.verifier.collect]]\ncommand = "two"\ntimeout_sec = 5\nuser = "nobody"'
    first, second = load_task(write_task(toml + STEPS.format(step, ""))).rounds
    assert [(each.command, each.timeout_sec, each.user) for each in first.collect] == [
        ("one", 60.0, None),
        ("two", 5.0, "nobody"),
    ]
    assert [each.command for each in second.collect] == ["one"]


@pytest.mark.parametrize(
    ("toml", "line", "message"),
    [
        ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]', 2, "has no environment of its own; remove"),
        (
            f'{SEPARATE}[metadata.evocode]\nverify_in = "in-place"',
            4,
            '"in-place" contradicts environment_mode = "separate"',
        ),
        (f'artifacts = [\n"/app", "/proc/1"]\n{SEPARATE}', 2, "/proc/1 cannot be put into the environment"),
        ('[verifier.environment]\nallowed_hosts = ["a.org"]', 2, "verifier.environment.allowed_hosts: only means"),
        (
            '[[verifier.collect]]\ncommand = "x"\nservice = "db"',
            3,
            'verifier.collect[#1].service: no service is called "db"; there is no compose file, only main',
        ),
        ('[[verifier.collect]]\nservice = "main"', 1, "command"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(write_task: WriteTask, toml: str, line: int, message: str) -> None:
    directory = write_task(toml, steps=())
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    assert caught.value.line == line
    assert message in str(caught.value)


def test_another_place_may_be_named_for_the_rounds_that_are_not_separate(write_task: WriteTask) -> None:
    steps = STEPS.format('verifier.environment_mode = "separate"', "")
    task = load_task(write_task(f'[metadata.evocode]\nverify_in = "clean"\n{steps}'))
    assert [round_.verify_in for round_ in task.rounds] == ["clean", "clean"]


def test_services_of_a_verifier_are_refused(write_task: WriteTask) -> None:
    files = {"tests/docker-compose.yaml": "services: {}\n", "tests/Dockerfile": "FROM scratch\n"}
    directory = write_task(SEPARATE, steps=(), files=files)
    with pytest.raises(TaskError, match=r"not supported yet: tests/docker-compose\.yaml: write a Dockerfile"):
        load_task(directory)
