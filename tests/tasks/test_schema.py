"""The JSON Schema of task.toml: it is that of the models, and says something about every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomli
from pydantic import ValidationError

from pytest_evocode.cli.new_task import write_task
from pytest_evocode.tasks.model import TaskConfig
from pytest_evocode.tasks.schema import SCHEMA_FILE, as_text

pytestmark = pytest.mark.every_python

EXAMPLES = Path(__file__).parents[2] / "example_tasks"
TASKS = sorted(EXAMPLES.rglob("task.toml"))
SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)

#: Every key that is accepted, in each of the forms that its value may have.
ALL_KEYS = """
version = "1.3"
source = "harbor"
multi_step_reward_strategy = "final"
artifacts = ["/app/out", { source = "/app/log", destination = "logs", exclude = ["*.tmp"], service = "main" }]
[task]
name = "org/task"
version = "1"
description = ""
authors = [{ name = "A", email = "a@b" }]
keywords = []
[agent]
timeout_sec = 5
user = 1000
network_mode = "allowlist"
allowed_hosts = ["host"]
[verifier]
timeout_sec = 1.5
env = { A = "${B:-c}" }
user = "root"
environment_mode = "separate"
collect = [{ command = "x", service = "db", timeout_sec = 1, user = 0 }]
[verifier.environment]
docker_image = "python"
[environment]
build_timeout_sec = 1
docker_image = "x"
os = "Linux"
cpus = 1.5
memory_mb = 1024
storage_mb = 1536
gpus = 0
gpu_types = []
workdir = "/app"
allow_internet = false
memory = "1G"
storage = "1.5 g"
mcp_servers = [{ name = "m", transport = "http", args = ["x"], url = "http://m", headers = { A = "b" } }]
tpu = { type = "v6e", topology = "2x4" }
skills_dir = "x"
env = {}
[environment.healthcheck]
command = "true"
interval_sec = 0
timeout_sec = 1
start_period_sec = 0
start_interval_sec = 0
retries = 1
[solution.env]
A = "b"
[[steps]]
name = "a"
min_reward = 0.5
[[steps]]
name = "b"
min_reward = { correctness = 1 }
agent = { timeout_sec = 1 }
verifier = { timeout_sec = 1 }
healthcheck = { command = "true" }
artifacts = ["/x"]
inherit_prior_session = false
[metadata]
anything = { goes = "here" }
[metadata.requirement_chain]
more = 1
steps = [{ step = "a", change_types = "extension" }, { step = "b", change_types = ["conflict"], why = "x" }]
[metadata.evocode]
verify_in = "clean"
state = ["/var/lib/shop"]
caches = ["/root/.m2"]
verifier_state = ["/var/verifier"]
warm_caches = "unless-strict"
keep_processes = true
safe_path = true
reward_key = "x"
sidecars = { db = "image" }
case_reports = ["/tmp/ctrf.json"]
[metadata.evocode.users.a]
model = "openai/gpt-5-mini"
notes = "The total is in cents."
persona = "You are in a hurry."
answers = 2
[metadata.evocode.process]
category = "doom-loop"
requirements = [{ id = "a", text = "b", round = "a" }]
build = "make"
test = "make test"
source = "src"
tests = ["tests/**"]
abstain = { a = "ambiguous" }
"""


def keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for choice in (
        schema,
        *schema.get("anyOf", ()),
        schema.get("items", {}),
        *schema.get("items", {}).get("anyOf", ()),
    ):
        for name, value in choice.get("properties", {}).items():
            yield f"{path}.{name}".lstrip("."), value
            yield from keys(value, f"{path}.{name}")


def test_it_is_up_to_date() -> None:
    assert json.loads(as_text()) == SCHEMA, "run: python -m pytest_evocode.tasks.schema"


def test_it_is_one_and_refers_to_nothing() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert "$ref" not in SCHEMA_FILE.read_text(encoding="utf-8")


def test_every_key_is_described_with_its_unit_and_default() -> None:
    described = {path: value.get("description", "") for path, value in keys(SCHEMA)}
    assert len(described) > 100
    assert [path for path, text in described.items() if not text.endswith(".")] == []
    assert [path for path, text in described.items() if path.endswith("_sec") and "Seconds" not in text] == []
    timeout = dict(keys(SCHEMA))["verifier.timeout_sec"]
    assert (timeout["type"], timeout["default"], timeout["description"]) == (
        "number",
        600,
        "Seconds that a suite may take.",
    )


def test_all_that_the_format_has_follows_it() -> None:
    for text in (ALL_KEYS, 'schema_version = "1.4"\n[metadata.evocode.process]\nabstain = "impossible"'):
        TaskConfig.model_validate(tomli.loads(text))
        VALIDATOR.validate(tomli.loads(text))
    last = {path.rpartition(".")[2] for path, _ in keys(SCHEMA)}
    assert [key for key in sorted(last) if not re.search(rf"\b{key}\b", ALL_KEYS)] == ["schema_version"]


@pytest.mark.parametrize(
    "wrong",
    [
        "[agent]\ntimeout = 5",
        "[agent]\nuser = true",
        "[[steps]]\nmin_reward = 1",
        "[[steps]]\nname = 'a@b'",
        "[verifier]\ntimeout_sec = '5'",
        "[task]\nname = 'task'",
        "artifacts = ['out']",
        "[metadata.evocode]\nverify_in = 'elsewhere'",
        "[environment]\nmemory = 'lots'",
    ],
)
def test_mistakes_do_not_follow_it(wrong: str) -> None:
    with pytest.raises(ValidationError):
        TaskConfig.model_validate(tomli.loads(wrong))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(tomli.loads(wrong))


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.parent.name)
def test_example_tasks_follow_it_and_say_where_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    VALIDATOR.validate(tomli.loads(text))
    named = text.splitlines()[0].removeprefix("#:schema ")
    assert (path.parent / named).read_bytes() == SCHEMA_FILE.read_bytes()


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("form", ["native", "script"])
def test_new_tasks_follow_it_and_bring_it(tmp_path: Path, form: Any, empty: bool) -> None:
    write_task(tmp_path / "kv", rounds=3, form=form, empty=empty)
    text = (tmp_path / "kv/task.toml").read_text(encoding="utf-8")
    VALIDATOR.validate(tomli.loads(text))
    named = text.splitlines()[0].removeprefix("#:schema ")
    assert (tmp_path / "kv" / named).read_bytes() == SCHEMA_FILE.read_bytes()
