"""What a cluster is given: manifests that Kubernetes accepts, and scripts that bash and Slurm understand."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
SCHEMA = json.loads((Path(__file__).parent / "kubernetes-1.37.schema.json").read_text(encoding="utf-8"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
SCRIPTS = sorted([*DEPLOY.rglob("*.sh"), *DEPLOY.rglob("*.sbatch")])


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def problems(document: dict[str, Any]) -> list[str]:
    schema = {**SCHEMA, "$ref": f"#/$defs/{document['kind']}"}
    return [each.message for each in jsonschema.Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_kubernetes_accepts_the_manifests(path: Path) -> None:
    assert [problem for document in documents(path) for problem in problems(document)] == []


def test_the_schema_knows_what_is_wrong() -> None:
    (job,) = documents(DEPLOY / "kubernetes" / "sandbox.yaml")
    job["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    job["spec"]["completions"] = "eight"
    assert len(problems(job)) == 2


@pytest.mark.parametrize("name", ["sandbox.yaml", "docker.yaml"])
def test_an_indexed_job_has_as_many_indexes_as_shards(name: str) -> None:
    (job,) = documents(DEPLOY / "kubernetes" / name)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    shards = next(each["value"] for each in container["env"] if each["name"] == "EVOCODE_SHARDS")
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == int(shards)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_what_is_mounted_is_a_volume(path: Path) -> None:
    for document in documents(path):
        if document["kind"] == "Job":
            pod = document["spec"]["template"]["spec"]
            containers = [*pod["containers"], *pod.get("initContainers", [])]
            mounted = {mount["name"] for each in containers for mount in each["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_bash_understands_the_scripts(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((DEPLOY / "slurm").glob("*.sbatch")), ids=lambda path: path.name)
def test_directives_come_before_the_first_command(path: Path) -> None:
    # sbatch reads no directive after it.
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    directives = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert max(directives) < first
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", lines[number]) for number in directives)
