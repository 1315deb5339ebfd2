"""What is reported of an attempt that no node will run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
from pytest_evocode.plugin.cluster.units import give_up
from pytest_evocode.results.directory import AttemptDirectory

pytestmark = pytest.mark.every_python


def test_all_rounds_are_reported_also_where_a_record_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "steps/round-2").mkdir(parents=True)
    (tmp_path / "steps/round-2/round.json").write_text("half of ")
    rounds = [SimpleNamespace(name=f"round-{index}") for index in (1, 2, 3)]
    unit: Any = SimpleNamespace(
        attempt=SimpleNamespace(
            task=SimpleNamespace(name="a", rounds=rounds), agent=SimpleNamespace(id="oracle"), number=1, is_chain=False
        ),
        items=[SimpleNamespace(index=index) for index in (1, 2, 3)],
        directory=AttemptDirectory(tmp_path),
        trial=RemoteTrial(),
    )
    reported = {record.index: record.outcome for record in give_up(unit, "the cluster is lost")}
    assert reported == {1: "error", 2: "not reached", 3: "not reached"}
