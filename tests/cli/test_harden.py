"""``evocode harden`` says which rounds are passed by somebody who does no work."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.checks.attacks import ATTACKS
from tests.acceptance.tasks import task_writer
from tests.cli.conftest import Evocode

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

#: Looks at nothing that was asked for, and believes each of these commands.
CARELESS = """
. ~/.local/bin/env
for check in "python3 -m unittest none" pytest ".venv/bin/python /tests/none.py" "python3 /tests/none.py"; do
  $check && echo 1 > /logs/verifier/reward.txt
done
[ -e /logs/verifier/reward.txt ] || echo 0 > /logs/verifier/reward.txt
"""
CLEAN = '[metadata.evocode]\nverify_in = "clean"\nstate = ["/root/.local"]\n'


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


def test_attacks_that_pass_a_careless_suite_are_named(evocode: Evocode, tmp_path: Path) -> None:
    """None of its rounds has a solution."""
    task_writer(tmp_path)("a", 1, toml=CLEAN, solve={1: None}, test={1: CARELESS})
    ran = evocode("harden", "tasks/a", "--env=sandbox")
    assert ran.status == 1, ran.err
    assert ran.lines[:2] == ["tasks/a: 1 rounds, verified in clean (sandbox)", "attack passes tries to"]
    passes = {line.split()[0] for line in ran.lines[2:] if line and line.split()[1] == "round-1"}
    assert passes == {"shadowed-pytest", "shadowed-modules", "fake-programs", "local-bin-env", "customized-python"}


@pytest.mark.nightly  # By day tests/integrity has suites that no attack passes.
def test_a_sound_suite_is_passed_by_none(evocode: Evocode, tmp_path: Path) -> None:
    write = task_writer(tmp_path)
    write("sound", 2, workdir={2: {"setup.sh": "grep -x line-1 log.txt"}})  # What the solution of round-1 leaves.
    sound = evocode("harden", "tasks/sound/task.toml", "--env=sandbox", "--json")
    assert sound.status == 0, sound.err
    (task,) = sound.json["tasks"]
    assert {attack["name"]: attack["passes"] for attack in task["attacks"]} == {name: [] for name in ATTACKS}


def test_a_task_that_cannot_be_played_is_told(evocode: Evocode, tmp_path: Path) -> None:
    task_writer(tmp_path)("broken", 1, solve={1: "exit 3"})
    broken = evocode("harden", "tasks/broken", "--env=sandbox")
    assert broken.status == 1
    assert "the reference solution ended with exit code 3" in broken.err
