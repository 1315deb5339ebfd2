"""The compose file of a task, as far as it is read without ``docker compose``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import BuildError, TaskError
from pytest_evocode.tasks import load_task

WriteTask = Callable[..., Path]
FILE = "environment/docker-compose.yaml"
TWO = "services:\n  main: {depends_on: [db]}\n  db:\n    image: db:1\n"


def test_the_services_are_those_that_the_file_lists_and_main(write_task: WriteTask) -> None:
    task = load_task(write_task(files={FILE: "services:\n  db: {image: db}\n  web: {image: web}\n"}))
    assert task.compose is not None
    assert task.compose.services == ("main", "db", "web")
    assert task.compose.line("services", "web", "image") == 3
    assert task.compose.line("services", "web", "cap_add", 0) == 3
    assert task.alone().compose is None


@pytest.mark.parametrize("name", ["docker-compose.yaml", "docker-compose.yml"])
def test_a_compose_file_says_what_main_is_made_from(write_task: WriteTask, name: str) -> None:
    without = ["environment/Dockerfile"]
    image = "services: {main: {image: python}}"
    task = load_task(write_task(files={f"environment/{name}": image}, without=without))
    assert task.config.environment.docker_image == "python"
    files = {f"environment/{name}": TWO}
    task = load_task(write_task(files=files, without=without), unknown_keys="ignore")
    with pytest.raises(BuildError, match="no environment to run in"):
        task.dockerfile_to_build()


def test_main_is_built_as_the_compose_file_says(write_task: WriteTask) -> None:
    build = "{context: ./app, dockerfile: d/File, target: last, args: {A: 1}}"
    files = {FILE: f"services: {{main: {{build: {build}}}}}", "environment/app/d/File": "FROM scratch\n"}
    task = load_task(write_task(files=files, without=["environment/Dockerfile"]))
    context = task.directory / "environment/app"
    assert (task.environment_directory, task.dockerfile) == (context, context / "d/File")
    assert task.main_build is not None
    assert task.main_build.options == ("--build-arg", "A=1", "--target", "last")


def test_a_build_argument_of_main_has_a_value(write_task: WriteTask) -> None:
    text = "services:\n  main:\n    build:\n      args:\n        A:\n"
    with pytest.raises(TaskError, match="A: write the value out") as caught:
        load_task(write_task(files={FILE: text}))
    assert caught.value.line == 4


def test_harbors_own_words_for_main_mean_the_task(write_task: WriteTask) -> None:
    text = 'services: {main: {build: {context: "${CONTEXT_DIR}"}, image: "${MAIN_IMAGE_NAME}"}}'
    task = load_task(write_task(files={FILE: text}))
    assert task.dockerfile == task.directory / "environment/Dockerfile"
    assert task.config.environment.docker_image is None


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("services: [", 1, "not valid YAML"),
        ("services:\n  - db\n", 1, "services: must be a table of services"),
        ("include:\n  - ../other.yaml\n", 2, "is outside of"),
        ("include:\n  - https://example.org/x.yaml\n", 2, "must be the path of a file in"),
        ("include: [{project_directory: ..}]\n", 1, "must be the path of a file in"),
        ("services:\n  a:\n    extends: {file: /etc/x.yaml, service: a}\n", 3, "is outside of"),
        ("services:\n  a:\n    extends:\n      file: ${X}\n", 4, "must be the path of a file in"),
        ("services:\n  main:\n    build: ..\n", 3, "must be a path in"),
        ("services:\n  main:\n    build:\n      ssh: [default]\n", 4, "not supported of main"),
        ("services:\n  main:\n    build:\n      args: [A=$B]\n", 4, "write the value out"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(write_task: WriteTask, text: str, line: int, message: str) -> None:
    directory = write_task(files={FILE: text})
    with pytest.raises(TaskError, match=message) as caught:
        load_task(directory)
    assert str(caught.value).startswith(f"{directory}/{FILE}:{line}: ")


def test_files_within_the_environment_may_be_included_and_are_looked_into(write_task: WriteTask) -> None:
    files = {FILE: "include: [more.yaml]\n", "environment/more.yaml": "services: {db: {image: db}}\n"}
    task = load_task(write_task(files=files))
    assert task.compose is not None
    assert not task.compose.lists_all
    files["environment/more.yaml"] = "include: [../../more.yaml]\n"
    with pytest.raises(TaskError, match="is outside of"):
        load_task(write_task(files=files))


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('artifacts = [{ source = "/x", service = "dbs" }]', 'no service is called "dbs"; the services are main, db'),
        ('[[verifier.collect]]\ncommand = "x"\nservice = "dbs"', 'no service is called "dbs"'),
        ('[metadata.evocode.sidecars]\ndbs = "image"', 'no service is called "dbs"'),
        ('[metadata.evocode.sidecars]\nmain = "image"', "every fork has the files of main"),
        ('[metadata.evocode.sidecars]\ndb = "copy"', "metadata.evocode.sidecars.db: must be"),
        (
            'artifacts = [{ source = "/x", service = "db" }]\n[metadata.evocode.sidecars]\ndb = "image"',
            'something is collected from db, and "image" keeps nothing of it',
        ),
    ],
)
def test_services_that_a_task_names_have_to_be_there(write_task: WriteTask, toml: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        load_task(write_task(toml, files={FILE: TWO}, steps=()))


def test_two_compose_files_are_one_too_many(write_task: WriteTask) -> None:
    files = {FILE: TWO, "environment/docker-compose.yml": TWO}
    with pytest.raises(TaskError, match="keep one of them"):
        load_task(write_task(files=files))
