"""Instances of SWE-bench as tasks of one round."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.foreign.conftest import Imported, refused
from tests.tasks.foreign.other_tasks import INSTANCE

NODE_ID = "tests/test_price.py::test_cents"


def written(*instances: dict[str, Any] | str) -> Path:
    """A file of JSON lines."""
    path = Path("instance.jsonl")
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in instances) + "\n\n")
    return path


def test_an_instance_is_one_round() -> None:
    imported = Imported("swe-bench", written(INSTANCE))
    assert imported.files() == {
        *("IMPORT.md", "task.toml", "task.schema.json", "environment/Dockerfile", "steps/round-1/instruction.md"),
        *("steps/round-1/solution/solve.sh", "steps/round-1/solution/fix.patch", "steps/round-1/tests/test.sh"),
        *(f"steps/round-1/tests/{name}" for name in ("listed.py", "listed.json", "test.patch")),
    }
    assert imported.text("steps/round-1/instruction.md") == "Prices are cut off.\n"
    dockerfile = imported.text("environment/Dockerfile")
    assert f"fetch -q --depth 1 https://github.com/acme/prices {INSTANCE['base_commit']} \\\n" in dockerfile
    assert "swebench/sweb.eval.x86_64.acme_1776_prices-12:latest" in dockerfile
    suite = imported.text("steps/round-1/tests/test.sh")
    assert f" checkout -q {INSTANCE['base_commit']} -- tests/test_price.py\n" in suite
    assert "-rA --show-capture=no -p no:cacheprovider tests/test_price.py >" in suite
    assert json.loads(imported.text("steps/round-1/tests/listed.json")) == {
        "FAIL_TO_PASS": [NODE_ID],
        "PASS_TO_PASS": ["tests/test_price.py::test_signs[-1]"],
    }
    assert imported.task.config.source == "SWE-bench: acme__prices-12"
    assert imported.notes[0].startswith("instance.jsonl:1: says nothing of how the project is installed")


def test_nothing_is_restored_where_the_tests_are_new() -> None:
    patch = "diff --git a/tests/new.py b/tests/new.py\nnew file mode 100644\n"
    suite = Imported("swe-bench", written({**INSTANCE, "test_patch": patch})).text("steps/round-1/tests/test.sh")
    assert "checkout" not in suite


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"patch": None}, "instance.jsonl:1: patch must be text; add it"),
        ({"base_commit": "main"}, "instance.jsonl:1: base_commit: 'main' is no commit"),
        ({"repo": "a/b/c"}, "instance.jsonl:1: repo: 'a/b/c' is no OWNER/NAME"),
        ({"FAIL_TO_PASS": "[]"}, "instance.jsonl:1: FAIL_TO_PASS lists no test"),
        ({"FAIL_TO_PASS": "["}, "instance.jsonl:1: FAIL_TO_PASS: not valid JSON"),
        (
            {"PASS_TO_PASS": ["test_x (admin.tests.Case)"]},
            "instance.jsonl:1: PASS_TO_PASS: 'test_x (admin.tests.Case)' is no node id of pytest",
        ),
        (
            {"test_patch": "diff --git a/$(x) b/$(x)\n"},
            "instance.jsonl:1: '$(x)' is no plain path; correct it",
        ),
    ],
)
def test_what_cannot_be_verified_is_refused(changed: dict[str, Any], message: str) -> None:
    assert refused("swe-bench", written({**INSTANCE, **changed})).startswith(message)


def test_a_file_has_one_instance() -> None:
    assert refused("swe-bench", written(INSTANCE, INSTANCE)).startswith(
        "instance.jsonl: has 2 instances, and a task is"
    )
    assert refused("swe-bench", written("{")).startswith("instance.jsonl:1: not valid JSON")
    assert refused("swe-bench", written("[]")).startswith("instance.jsonl:1: must be an object")


def test_all_listed_tests_have_to_be_printed_as_passed(tmp_path: Path) -> None:
    imported = Imported("swe-bench", written(INSTANCE))
    program = imported.text("steps/round-1/tests/listed.py").replace("/logs/verifier/", f"{tmp_path}/")
    (tmp_path / "listed.json").write_text(imported.text("steps/round-1/tests/listed.json"))
    for output, reward in (
        (f"PASSED {NODE_ID}\nPASSED tests/test_price.py::test_signs[-1] - why\n", "1"),
        (f"PASSED {NODE_ID}\nFAILED tests/test_price.py::test_signs[-1]\n", "0"),
        ("", "0"),
    ):
        (tmp_path / "output").write_text(output)
        subprocess.run([sys.executable, "-c", program, tmp_path / "listed.json", tmp_path / "output"], check=True)
        assert (tmp_path / "reward.txt").read_text() == reward
