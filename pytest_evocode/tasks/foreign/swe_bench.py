"""An instance of SWE-bench, a line of JSON, as a task of one round.

Read for this were swebench.com/SWE-bench/guides/datasets and ``swebench/harness`` of github.com/SWE-bench/SWE-bench. An
instance has ``repo`` on GitHub, ``base_commit``, ``problem_statement``, the reference solution ``patch``, and
``test_patch``, after which the tests in ``FAIL_TO_PASS`` and ``PASS_TO_PASS`` pass, lists or their JSON. How the
project is installed is known to SWE-bench's own code and images only.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.foreign.draft import Draft
from pytest_evocode.tasks.foreign.source import Source

_WORKDIR = "/testbed"
_GIT = f"git -c safe.directory={_WORKDIR}"
"""Whoever the files belong to."""
_DOCKERFILE = """\
# Written by evocode new --from. SWE-bench's own image has the versions of that time: {image}
FROM python:3.11
RUN git init -q {workdir} && cd {workdir} && git fetch -q --depth 1 https://github.com/{repo} {commit} \\
    && git checkout -q --detach FETCH_HEAD
WORKDIR {workdir}
RUN pip install --no-cache-dir pytest -e .
"""
_SUITE = """\
#!/bin/bash
# Written by evocode new --from: the tests as test_patch has them, of which all that are listed have to pass.
{restore}{git} apply -v /tests/test.patch
python -P -m pytest -rA --show-capture=no -p no:cacheprovider {modules} > /tmp/output 2>&1
cat /tmp/output
python /tests/listed.py /tests/listed.json /tmp/output
"""
_LISTED = '''\
"""Tell which of the listed tests pytest printed as passed; written by evocode new --from."""

import json
import pathlib
import sys

listed, output = (pathlib.Path(each).read_text(errors="replace") for each in sys.argv[1:])
words = [line.split() for line in output.splitlines() if line.startswith("PASSED ")]
passed = {each[1] for each in words if len(each) > 1}
reward = 1
for kind, tests in json.loads(listed).items():
    for test in tests:
        status = "success" if test in passed else "fail"
        reward *= status == "success"
        print(f"CASE_RESULT case_id={test} origin_step=round-1 requirement_ref={kind} case_type=core status={status}")
pathlib.Path("/logs/verifier/reward.txt").write_text(str(reward))
'''
_SOLUTION = f"#!/bin/bash\n# Written by evocode new --from.\n{_GIT} apply -v /solution/fix.patch\n"
_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CHANGED = re.compile(r"^diff --git a/(\S+) b/\S+$", re.MULTILINE)
_NODE_ID = re.compile(r"[\w./-]+\.py(::\S+)?")
_QUOTABLE = re.compile(r"[\w./-]+")
_ADDED = re.compile(r"^diff --git a/(\S+) b/\S+\nnew file mode ", re.MULTILINE)


def import_instance(file: Path, draft: Draft) -> None:
    """Write the task of the only instance in a file.

    Raises:
        TaskError: It has none or several, or one that cannot be verified by pytest.
    """
    _Instance(file, draft).write()


class _Instance:
    def __init__(self, file: Path, draft: Draft) -> None:
        self.file = file
        self.draft = draft
        lines = Source(file.parent).text(file.name, "").splitlines()
        numbers = [number for number, line in enumerate(lines, start=1) if line.strip()]
        if len(numbers) != 1:
            message = (
                f"has {len(numbers)} instances, and a task is made of one; "
                "put its line into a file of its own, such as by grep INSTANCE_ID"
            )
            raise TaskError(message, file)
        self.line = numbers[0]
        try:
            self.values: Any = json.loads(lines[self.line - 1])
        except ValueError as error:
            raise self._error(f"not valid JSON ({error}); correct it") from None
        if not isinstance(self.values, dict):
            raise self._error("must be an object; correct it")

    def write(self) -> None:
        """Write all files of the task."""
        repo = self._matching("repo", _REPOSITORY, "is no OWNER/NAME on GitHub")
        commit = self._matching("base_commit", _COMMIT, "is no commit, which has 40 digits")
        name, patch, test_patch = (self._text(key) for key in ("instance_id", "patch", "test_patch"))
        round_ = self.draft.add_round(name)
        listed = {key: self._tests(key) for key in _LISTS}
        if not listed[_LISTS[0]]:
            raise self._error(f"{_LISTS[0]} lists no test, so nothing would have to change")
        image = f"swebench/sweb.eval.x86_64.{name.lower().replace('__', '_1776_')}:latest"
        dockerfile = _DOCKERFILE.format(image=image, workdir=_WORKDIR, repo=repo, commit=commit)
        self.draft.write("environment/Dockerfile", dockerfile)
        self.draft.write(f"steps/{round_}/instruction.md", self._text("problem_statement").rstrip() + "\n")
        self.draft.write(f"steps/{round_}/solution/fix.patch", patch)
        self.draft.write(f"steps/{round_}/solution/solve.sh", _SOLUTION, executable=True)
        modules = sorted({test.partition("::")[0] for tests in listed.values() for test in tests})
        changed = sorted(set(_CHANGED.findall(test_patch)) - set(_ADDED.findall(test_patch)))
        if odd := next((each for each in (*modules, *changed) if not _QUOTABLE.fullmatch(each)), None):
            raise self._error(f"{odd!r} is no plain path; correct it")
        restore = f"{_GIT} checkout -q {commit} -- {' '.join(changed)}\n" if changed else ""
        suite = _SUITE.format(git=_GIT, restore=restore, modules=" ".join(modules))
        self.draft.write(f"steps/{round_}/tests/test.sh", suite, executable=True)
        self.draft.write(f"steps/{round_}/tests/listed.py", _LISTED)
        self.draft.write(f"steps/{round_}/tests/listed.json", json.dumps(listed, indent=1) + "\n")
        self.draft.write(f"steps/{round_}/tests/test.patch", test_patch)
        self.draft.write_configuration(
            {
                "schema_version": "1.4",
                "source": f"SWE-bench: {name}",
                "task": {"name": f"swe-bench/{self.draft.name}", "keywords": [repo]},
                "steps": [{"name": round_}],
                "metadata": {"repo": repo, "base_commit": commit, "created_at": str(self.values.get("created_at", ""))},
            }
        )
        self._note(
            "says nothing of how the project is installed: environment/Dockerfile takes today's versions",
            f"correct it, or have it begin with FROM {image}; the check oracle tells",
        )
        self._note("the suite runs with the project's conftest.py files and settings, which agents can change", "")
        if self.values.get("hints_text"):
            self._note("hints_text: agents do not see it in SWE-bench either", "")

    def _text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._error(f"{key} must be text; add it")
        return value

    def _matching(self, key: str, pattern: re.Pattern[str], why: str) -> str:
        value = self._text(key)
        if not pattern.fullmatch(value):
            raise self._error(f"{key}: {value!r} {why}; correct it")
        return value

    def _tests(self, key: str) -> list[str]:
        value = self.values.get(key, [])
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise self._error(f"{key}: not valid JSON ({error}); correct it") from None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._error(f"{key} must be a list of tests; correct it")
        if other := next((each for each in value if not _NODE_ID.fullmatch(each)), None):
            message = (
                f"{key}: {other!r} is no node id of pytest, so this project has a runner of its own, "
                "which is not known here; write the task by hand: evocode new"
            )
            raise self._error(message)
        return value

    def _note(self, what: str, do: str) -> None:
        self.draft.note(self.file, what, do, line=self.line)

    def _error(self, message: str) -> TaskError:
        return TaskError(message, self.file, self.line)
