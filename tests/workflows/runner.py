"""Plays a workflow here, job by job and step by step, as GitHub's runner does.

Steps with ``run`` are run; actions of others have stand-ins. What no workflow of ours uses is not understood.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
#: The words of an expression: texts stay, names are looked up, and operators become Python's.
_WORDS = re.compile(r"'[^']*'|[A-Za-z_][\w-]*(?:\.[\w-]+)+|&&|\|\||!(?!=)")
_OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}


@dataclass
class Job:
    """What came of a job."""

    result: str = "success"
    outputs: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    """What all steps printed."""
    summary: str = ""


@dataclass
class Runner:
    """A machine of GitHub's, with a clone of somebody's tasks in ``workspace``."""

    root: Path
    source: Path = ROOT
    """Where the package is checked out from."""
    programs: Path | None = None
    """A directory of programs that come before all others."""
    artifacts: Path = field(init=False)

    def __post_init__(self) -> None:
        self.artifacts = self.root / "artifacts"
        self.artifacts.mkdir(parents=True)

    def play(self, workflow: Path, inputs: Mapping[str, Any]) -> dict[str, list[Job]]:
        """Play the jobs in the order of the file; each has one entry, or one for each of its matrix."""
        content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
        declared = content[True]["workflow_call"]["inputs"]  # YAML 1.1 reads "on" as true.
        inputs = {name: each["default"] for name, each in declared.items()} | dict(inputs)
        played: dict[str, list[Job]] = {}
        for name, job in content["jobs"].items():
            needs = {each: vars(jobs[-1]) | {"result": result_of(jobs)} for each, jobs in played.items()}
            contexts: dict[str, Any] = {"inputs": inputs, "needs": needs}
            if not holds(job.get("if", "success()"), contexts):
                played[name] = [Job("skipped")]
                continue
            matrix = fill(job["strategy"]["matrix"], contexts)["include"] if "strategy" in job else [{}]
            played[name] = []
            for index, values in enumerate(matrix):
                its = {"matrix": values, "strategy": {"job-index": index}, "steps": {}}
                played[name].append(self._job(job, {**contexts, **its}))
        return played

    def _job(self, job: Mapping[str, Any], contexts: dict[str, Any]) -> Job:
        workspace = self.root / "workspace"
        done = Job()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI"))}
        first = [str(self.programs)] if self.programs else []
        environment["PATH"] = ":".join([*first, str(Path(sys.executable).parent), environment["PATH"]])
        environment |= {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace)}
        for left in ("results", "merged", "report", ".evocode"):
            path = workspace / left
            path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)
        self._steps(job["steps"], contexts, environment, done)
        done.outputs = {name: fill(each, contexts) for name, each in job.get("outputs", {}).items()}
        return done

    def _steps(self, steps: Any, contexts: dict[str, Any], environment: dict[str, str], done: Job) -> None:
        for step in steps:
            contexts["failed"] = done.result == "failure"
            if not holds(step.get("if", "success()"), contexts):
                continue
            given = {**environment, **{name: fill(each, contexts) for name, each in step.get("env", {}).items()}}
            if "run" in step:
                outputs = self._run(step, given, environment, done)
            elif step["uses"].startswith("$/"):
                action = self.root / "workspace" / ".evocode" / step["uses"].removeprefix("$/")
                content = yaml.safe_load((action / "action.yml").read_text(encoding="utf-8"))
                inputs = {name: each["default"] for name, each in content["inputs"].items()}
                inputs |= {name: fill(each, contexts) for name, each in step.get("with", {}).items()}
                inner = {"inputs": inputs, "github": {"action_path": str(action)}, "steps": {}}
                self._steps(content["runs"]["steps"], inner, given, done)
                continue
            else:
                action, values = step["uses"].partition("@")[0], fill(step.get("with", {}), contexts)
                try:
                    outputs = self._stand_in(action.removeprefix("actions/"), values)
                except FileNotFoundError as error:
                    done.log, done.result, outputs = f"{done.log}{error}\n", "failure", {}
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": outputs}

    def _run(self, step: Mapping[str, Any], given: dict[str, str], kept: dict[str, str], done: Job) -> dict[str, str]:
        """Run a script; what it adds to the path or the environment holds for the steps after it."""
        files = {name: self.root / name for name in ("OUTPUT", "STEP_SUMMARY", "PATH", "ENV")}
        for path in files.values():
            path.write_text("")
        script = self.root / "step.sh"
        script.write_text(step["run"])
        told = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.root / "workspace",
            env={**given, **{f"GITHUB_{name}": str(path) for name, path in files.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        done.log += told.stdout
        done.summary += files["STEP_SUMMARY"].read_text(encoding="utf-8")
        if told.returncode:
            done.result = "failure"
        for line in files["PATH"].read_text().splitlines():
            kept["PATH"] = f"{line}:{kept['PATH']}"
        kept |= dict(line.split("=", 1) for line in files["ENV"].read_text().splitlines())
        return dict(line.split("=", 1) for line in files["OUTPUT"].read_text().splitlines())

    def _stand_in(self, action: str, values: Mapping[str, Any]) -> dict[str, str]:
        """Do what an action of GitHub's does, as far as our steps see it; nothing is found in a cache."""
        workspace = self.root / "workspace"
        if action == "checkout" and "path" in values:
            (workspace / values["path"]).symlink_to(self.source)
        elif action == "upload-artifact":
            return self._upload(workspace, values)
        elif action == "download-artifact":
            for artifact in self.artifacts.glob(values.get("name") or values["pattern"]):
                into = workspace / values["path"] / ("" if "name" in values else artifact.name)
                shutil.copytree(artifact, into, dirs_exist_ok=True)
        elif action == "attest":
            (workspace / values["subject-path"]).stat()
        return {}

    def _upload(self, workspace: Path, values: Mapping[str, Any]) -> dict[str, str]:
        paths = [workspace / line for line in values["path"].split()]
        artifact = self.artifacts / values.get("name", paths[0].name)
        artifact.mkdir()
        for path in paths:
            if path.is_dir():
                shutil.copytree(path, artifact, dirs_exist_ok=True)
            elif path.exists() or values.get("if-no-files-found") != "ignore":
                shutil.copy(path, artifact)
        return {"artifact-url": f"https://artifacts.example/{artifact.name}"}


def result_of(jobs: list[Job]) -> str:
    """Return how the jobs of a matrix ended together."""
    results = {job.result for job in jobs}
    return "failure" if "failure" in results else results.pop()


def fill(value: Any, contexts: Mapping[str, Any]) -> Any:
    """Return a value of a workflow with its expressions replaced."""
    if isinstance(value, dict):
        return {key: fill(each, contexts) for key, each in value.items()}
    whole = re.fullmatch(r"\$\{\{(.*)\}\}", str(value))
    if whole and value.count("${{") == 1:
        found = evaluate(whole[1], contexts)
        return found if isinstance(found, dict) else _text(found)
    return re.sub(r"\$\{\{(.*?)\}\}", lambda each: _text(evaluate(each[1], contexts)), _text(value))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def evaluate(expression: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of an expression, which is empty text for what there is not.

    >>> evaluate("!cancelled() && steps.one.made-of == 'it'", {"steps": {"one": {"made-of": "it"}}})
    True
    """

    def python(word: re.Match[str]) -> str:
        if word[0] in _OPERATORS or word[0].startswith("'"):
            return _OPERATORS.get(word[0], word[0])
        value: Any = contexts
        for name in word[0].split("."):
            value = value.get(name, "") if isinstance(value, Mapping) else ""
        return repr(value)

    text = _WORDS.sub(python, expression.strip().removeprefix("${{").removesuffix("}}")).strip()
    functions = {
        "always": lambda: True,
        "cancelled": lambda: False,
        "success": lambda: not contexts.get("failed"),
        "format": str.format,
        "hashFiles": lambda pattern: f"hash-of-{pattern}",
        "fromJSON": json.loads,
    }
    return eval(text, {"__builtins__": {}}, functions)


def holds(condition: str, contexts: Mapping[str, Any]) -> bool:
    """Return whether a job or a step is run: after a failure only what asks how those before it ended."""
    asks = re.search(r"\b(always|cancelled|success)\(", condition) is not None
    return bool(evaluate(condition, contexts)) and (asks or not contexts.get("failed"))
