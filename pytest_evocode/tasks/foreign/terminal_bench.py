"""Terminal-Bench's tasks of version 1, whose directory has a task.yaml, as tasks of one round.

Read for this were tbench.ai/docs and tasks of github.com/harbor-framework/terminal-bench. A task is a directory::

    task.yaml              instruction, author_name, difficulty, category, tags, parser_name, max_agent_timeout_sec, ...
    Dockerfile             built with the directory as its context
    docker-compose.yaml    the service client, in which the agent works, and others beside it
    solution.sh            or solution.yaml, with what is typed into the agent's terminal
    run-tests.sh           run with tests/ beside it; what it prints of pytest decides
    tests/

Tasks of version 2 are Harbor's, and run as they are.
"""

from __future__ import annotations

import os
import re
from typing import Any

import yaml

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.compose_file import COMPOSE_FILES, MAIN
from pytest_evocode.tasks.config_text import read_mapping
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.tasks.foreign.draft import Draft
from pytest_evocode.tasks.foreign.harbor import note_fetches
from pytest_evocode.tasks.foreign.source import Source, YamlTable, read_yaml

CONFIG = "task.yaml"
SUITE = "run-tests.sh"
"""The script that a task is judged by."""
_CLIENT = "client"
_VARIABLE = re.compile(r"\$\{?T_BENCH_\w+")
"""What its runner fills in."""
_LEFT_OUT = re.compile(rf"{_VARIABLE.pattern}|^\./(tests|run-tests\.sh|solution\.(sh|yaml))\b")
_GIVEN = ("container_name", "image", "command", "environment", "volumes")
"""What a compose file says for the runner's sake, with its variables, or with files that no agent may see."""
_NOT_FOR_THE_IMAGE = (CONFIG, "solution.sh", "solution.yaml", "run-tests.sh", "tests", *COMPOSE_FILES)
_TAKES_TESTS = re.compile(
    r"^[ \t]*(?:COPY|ADD)\b.*[ /](tests|run-tests\.sh|solution\.(?:sh|yaml))\b", re.IGNORECASE | re.M
)
_KNOWN = (
    *("instruction", "descriptions", "author_name", "author_email", "difficulty", "category", "tags", "parser_name"),
    *("max_agent_timeout_sec", "max_test_timeout_sec", "run_tests_in_same_shell", "disable_asciinema"),
    *("estimated_duration_sec", "expert_time_estimate_min", "junior_time_estimate_min"),
)
_SUITE = """\
#!/bin/bash
# Written by evocode new --from: the round is passed if run-tests.sh ends well.
export TEST_DIR=/tests PYTEST_ADDOPTS="--junit-xml=/logs/verifier/junit.xml"
reward=0
bash /tests/run-tests.sh && reward=1
echo $reward > /logs/verifier/reward.txt
"""


def import_task(source: Source, draft: Draft) -> None:
    """Write the task of a directory.

    Raises:
        TaskError: It is not in Terminal-Bench's format.
    """
    config = read_yaml(source, CONFIG, "a task of Terminal-Bench has one")
    round_ = draft.add_round(CONFIG)
    _write_environment(source, draft)
    draft.write(f"steps/{round_}/instruction.md", _instruction(config).rstrip("\n") + "\n")
    _write_solution(source, draft, round_)
    _write_suite(source, draft, round_)
    _write_configuration(config, draft, round_)
    _note_the_rest(config, draft)


def _instruction(config: YamlTable) -> str:
    described = config.values.get("descriptions")
    if "instruction" in config.values or not isinstance(described, list) or not described:
        return config.text("instruction")
    first = YamlTable(config.source, config.name, described[0], config.lines, ("descriptions", 0))
    if len(described) > 1:
        raise config.error("has several requests, and a round has one; leave the one that is meant", "descriptions")
    return first.text("description")


def _write_environment(source: Source, draft: Draft) -> None:
    for entry in sorted(os.listdir(source.root)):
        if entry not in _NOT_FOR_THE_IMAGE and not is_dropping(entry):
            draft.copy(source.path(entry), f"environment/{entry}")
    compose = next((name for name in COMPOSE_FILES if source.path(name).is_file()), None)
    main, services = _services(read_yaml(source, compose, "")) if compose is not None else ({}, {})
    if main or services:
        draft.write("environment/docker-compose.yaml", yaml.safe_dump({"services": {MAIN: main, **services}}))
        draft.note(
            source.root / str(compose),
            f"the agent's service is called {MAIN} here, and what Terminal-Bench's runner fills in was left out",
            "look whether services find each other",
        )
    if "build" not in main and "image" not in main:
        text = source.text("Dockerfile", "the agent's environment is built from it")
        for found in _TAKES_TESTS.finditer(text):
            draft.note(
                source.root / "Dockerfile",
                f"takes {found[1]} into the image, where agents would see it, and it is not in environment/",
                "remove the line",
                line=text.count("\n", 0, found.start(1)) + 1,
            )


def _services(compose: YamlTable) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what is said of the agent's service, and the others by their names.

    What only Terminal-Bench's runner can fill in, or gives in its own way, is left out.
    """
    table = compose.table("services")
    client = _CLIENT if _CLIENT in table.values or len(table.values) != 1 else next(iter(table.values))
    if client not in table.values:
        raise table.error(f"has no {_CLIENT}, in which Terminal-Bench's agents work; add it")
    found = {name: _without_variables(table.table(name)) for name in table.values}
    main = found.pop(client)
    main.pop("command", None)  # It keeps the container alive, as is done here anyway.
    if "build" in main:
        main.pop("image", None)  # What the built one is called.
    if main.get("build") in (".", {"dockerfile": "Dockerfile"}, {"context": ".", "dockerfile": "Dockerfile"}):
        del main["build"]
    for service in found.values():
        needed = service.get("depends_on")
        if isinstance(needed, list):
            service["depends_on"] = [MAIN if each == client else each for each in needed]
        elif isinstance(needed, dict):
            service["depends_on"] = {MAIN if name == client else name: each for name, each in needed.items()}
    return main, found


def _without_variables(service: YamlTable) -> dict[str, Any]:
    values = {}
    for key, value in service.values.items():
        if key not in _GIVEN:
            values[key] = value
        elif isinstance(value, dict):
            values[key] = {name: each for name, each in value.items() if not _LEFT_OUT.search(str(each))}
        elif isinstance(value, list):
            values[key] = [each for each in value if not _LEFT_OUT.search(str(each))]
        elif not _LEFT_OUT.search(str(value)):
            values[key] = value
    values.pop("container_name", None)
    if rest := _VARIABLE.search(str(values)):
        raise service.error(f"{rest[0]} is filled in by Terminal-Bench's runner only; write the value out")
    return {key: value for key, value in values.items() if value not in (None, [], {})}


def _write_solution(source: Source, draft: Draft, round_: str) -> None:
    place = f"steps/{round_}/solution/solve.sh"
    if source.path("solution.sh").is_file():
        draft.copy(source.path("solution.sh"), place, executable=True)
        return
    path = source.path("solution.yaml")
    if not path.is_file():
        draft.note(source.root, "there is no solution.sh and no solution.yaml", f"write {place}")
        return
    # A list is read as that of a key, in whose line the file has none.
    values, lines = read_mapping("commands:\n" + source.text("solution.yaml", ""), path, "reference solution")
    script = ["#!/bin/bash", "# Written by evocode new --from, of the commands in solution.yaml."]
    for number, each in enumerate(values["commands"] or []):
        line = lines.get(("commands", number), 2) - 1
        if not isinstance(each, dict) or not isinstance(each.get("command"), str):
            raise TaskError("must be a list of commands, each with a command that is text", path, line)
        if each.get("append_enter") is False or each.get("block") is False:
            draft.note(path, "types into a program that is running, which no script does", f"write {place}", line=line)
            return
        script.append(each["command"])
    draft.write(place, "\n".join(script) + "\n", executable=True)


def _write_suite(source: Source, draft: Draft, round_: str) -> None:
    note_fetches(draft, source.path(SUITE), source.text(SUITE, "it runs the tests of such a task"))
    if source.path("tests").is_dir():
        draft.copy(source.path("tests"), f"steps/{round_}/tests")
    draft.copy(source.path(SUITE), f"steps/{round_}/tests/{SUITE}", executable=True)
    draft.write(f"steps/{round_}/tests/test.sh", _SUITE, executable=True)


def _write_configuration(config: YamlTable, draft: Draft, round_: str) -> None:
    task: dict[str, Any] = {"name": f"terminal-bench/{draft.name}", "keywords": config.texts("tags")}
    if author := config.text("author_name", ""):
        address = config.text("author_email", "")
        task["authors"] = [{"name": author, **({"email": address} if "@" in address else {})}]
    agent, suite = (config.number(f"max_{who}_timeout_sec") for who in ("agent", "test"))
    draft.write_configuration(
        {
            "schema_version": "1.4",
            "source": "Terminal-Bench",
            "task": task,
            **({"agent": {"timeout_sec": agent}} if agent else {}),
            **({"verifier": {"timeout_sec": suite}} if suite else {}),
            "steps": [{"name": round_}],
            "metadata": {
                "difficulty": config.text("difficulty", "unknown"),
                "category": config.text("category", "unknown"),
            },
        },
        config.source.comment(CONFIG),
    )


def _note_the_rest(config: YamlTable, draft: Draft) -> None:
    draft.note_others(config, _KNOWN)
    if (parser := config.text("parser_name", "pytest")) != "pytest":
        what = f"what {parser} reads from the output is not read; the exit status of run-tests.sh decides"
        draft.note_key(config, "parser_name", what, "have run-tests.sh end with 0 if all is as it is to be")
    if config.flag("run_tests_in_same_shell", False):
        draft.note_key(config, "run_tests_in_same_shell", "the suite is run in a shell of its own")
    draft.note(
        config.source.root / SUITE,
        "ran where the agent worked, and runs in the image as it was built, with the working directory carried over",
        "declare other paths that it looks at as state in [metadata.evocode]; the check oracle tells",
    )
