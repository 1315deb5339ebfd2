"""RigorBench's tasks: a description in YAML and a repository, which make one round.

Read for this was github.com/MeherBhaskar/RigorBench: ``benchmark/rigorbench/task.py`` and tasks at 411814f, those of
``benchmark/scripts/scaffold_30_tasks.py`` at 1fbb14d. A task is a directory with task.yaml (``id``, ``category``,
``description``; ``name``, ``difficulty``, ``requirements`` in some, ``entrypoint`` in others), repo/, which is what the
agent finds, and rubric.yaml. There is no suite that the agent does not see, and no reference solution; ``repo_*`` are
what agents made of repo/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_evocode.tasks.foreign.draft import Draft
from pytest_evocode.tasks.foreign.source import Source, YamlTable, read_yaml

_DOCKERFILE = """\
# Written by evocode new --from; install here what repo/ needs.
FROM python:3.12-slim
WORKDIR /workspace
"""
_CATEGORIES = {
    "planning": "plan-then-build",
    "verification": "verify-or-die",
    "recovery": "doom-loop",
    "abstention": "know-when-to-fold",
    "atomic": "dont-break-the-build",
}
_KNOWN = ("id", "name", "category", "description", "difficulty", "requirements", "entrypoint")
_OWN_TESTS = '''\
"""The one thing that RigorBench says of the outcome: the project's own tests pass. The agent can change them."""

import pytest


@pytest.mark.requirement("own-tests")
def test_own_tests(workspace):
    """The project's own tests pass."""
    assert workspace.run({command!r}).exit_code == 0
'''
_TO_WRITE = '''\
"""RigorBench has no tests for these requirements; write them."""

import pytest
'''
_ONE_TO_WRITE = """

@pytest.mark.requirement("{id}")
def test_{number}(workspace):
    {docstring}
    pytest.fail("RigorBench has no test of this: write it")
"""


def import_task(file: Path, draft: Draft) -> None:
    """Write the task of a task.yaml.

    Raises:
        TaskError: It is not in RigorBench's format.
    """
    source = Source(file.parent)
    config = read_yaml(source, file.name, "a task of RigorBench has one")
    requirements = [(f"R{number}", text) for number, text in enumerate(config.texts("requirements"), start=1)]
    round_ = draft.add_round(file.name)
    _write_environment(source, config, draft)
    _write_request(config, requirements, draft, round_)
    _write_suite(config, requirements, draft, round_)
    _write_configuration(config, requirements, draft, round_)
    _note_the_rest(source, config, draft, round_)


def _write_environment(source: Source, config: YamlTable, draft: Draft) -> None:
    repository = source.path("repo")
    if repository.is_dir():
        draft.copy(repository, "environment/repo")
        draft.write("environment/Dockerfile", _DOCKERFILE + "COPY repo/ ./\n")
        if (repository / "requirements.txt").is_file():
            do = "install it in environment/Dockerfile, unless that is the agent's task"
            draft.note(repository / "requirements.txt", "is not installed in the image", do)
    else:
        draft.write("environment/Dockerfile", _DOCKERFILE)
        draft.note(repository, "is not there, so the agent begins in an empty directory", "add what it is to find")


def _write_request(config: YamlTable, requirements: list[tuple[str, str]], draft: Draft, round_: str) -> None:
    name = config.text("name", "")
    lines = [f"# {name}\n"] if name else []
    lines.append(config.text("description").strip() + "\n")
    if requirements:
        lines.append("Requirements:\n\n" + "".join(f"- {text}\n" for _, text in requirements))
    draft.write(f"steps/{round_}/instruction.md", "\n".join(lines))


def _write_suite(config: YamlTable, requirements: list[tuple[str, str]], draft: Draft, round_: str) -> None:
    command = config.text("entrypoint", "")
    if command:
        draft.write(f"steps/{round_}/tests/test_own_tests.py", _OWN_TESTS.format(command=command))
        what = "the suite is this command alone, and the agent can change what it runs"
        draft.note_key(config, "entrypoint", what, f"write tests of the outcome in steps/{round_}/tests/")
        return
    described = requirements or [("R1", config.text("description").strip())]
    tests = (
        _ONE_TO_WRITE.format(id=id, number=number, docstring=_docstring(text))
        for number, (id, text) in enumerate(described, start=1)
    )
    draft.write(f"steps/{round_}/tests/test_requirements.py", _TO_WRITE + "".join(tests))
    what = "RigorBench verifies no outcome: there is a test for each requirement, which fails until it is written"
    do = f"write steps/{round_}/tests/test_requirements.py"
    draft.note(config.path, what, do, line=config.line("requirements"))


def _docstring(text: str) -> str:
    r"""Return a text as a docstring of one line, whatever is in it.

    >>> print(_docstring('Say "hello"'))
    "Say \"hello\""
    """
    line = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{line}"'


def _write_configuration(config: YamlTable, requirements: list[tuple[str, str]], draft: Draft, round_: str) -> None:
    process: dict[str, Any] = {}
    category = config.text("category")
    if category in _CATEGORIES:
        process["category"] = _CATEGORIES[category]
    else:
        known = ", ".join(_CATEGORIES)
        draft.note_key(config, "category", f"{category} is none of RigorBench's ({known})", "set category in task.toml")
    if command := config.text("entrypoint", ""):
        process["test"] = command
    if requirements:
        process["requirements"] = [{"id": id, "text": text} for id, text in requirements]
    draft.write_configuration(
        {
            "schema_version": "1.4",
            "source": f"RigorBench: {config.text('id')}",
            "task": {
                "name": f"rigorbench/{draft.name}",
                "description": config.text("name", config.text("description").strip()),
            },
            "steps": [{"name": round_}],
            "metadata": {
                "difficulty": config.text("difficulty", "medium"),
                "category": category,
                "evocode": {"process": process},
            },
        }
    )


def _note_the_rest(source: Source, config: YamlTable, draft: Draft, round_: str) -> None:
    if config.text("category") == "abstention":
        what = "RigorBench does not say whether the request is impossible or ambiguous"
        do = 'set abstain = "impossible" or "ambiguous" in [metadata.evocode.process], or AQ is not measured'
        draft.note_key(config, "category", what, do)
    draft.note_others(config, _KNOWN)
    if source.path("rubric.yaml").is_file():
        what = "weights and expectations of the rubric have no place in a task"
        draft.note(source.root / "rubric.yaml", what, "give weights to evocode process by --weight")
    draft.note(config.path, "RigorBench has no reference solutions", f"write steps/{round_}/solution/solve.sh")
