"""From sub-metrics to pillars and from pillars to the RigorScore, over what was measured."""

from __future__ import annotations

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.process.evidence import measured, not_measured
from pytest_evocode.process.scores.rigor_score import PARTS, WEIGHTS, pillar, read_weights, rigor_score
from tests.process.trajectories import Recording, score


def test_the_weights_of_all_pillars_and_of_the_parts_of_each_make_one() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert all(sum(parts.values()) == pytest.approx(1) for parts in PARTS.values())


def test_the_score_is_over_what_was_measured() -> None:
    values = {"pf": 0.5, "vc": None, "re": 1.0, "aq": None, "ati": None, "tad": 0.4, "ee": 0.25}
    found = rigor_score(values)
    assert found is not None
    # (0.15 * 0.5 + 0.20 * 1 + 0.20 * 0.4 + 0.10 * 0.25) / 0.65 = 0.38 / 0.65
    assert [found.value, found.coverage] == pytest.approx([0.38 / 0.65, 0.65])


def test_nothing_measured_is_no_score() -> None:
    assert rigor_score(dict.fromkeys(WEIGHTS)) is None
    assert pillar("pf", {"PAC": not_measured("x"), "DQ": not_measured("x"), "PEA": not_measured("x")}).value is None


def test_a_missing_part_leaves_the_others_their_weight() -> None:
    parts = {"BH": not_measured("x"), "TS": measured(0.5), "CH": measured(1)}
    assert pillar("ati", parts).value == pytest.approx((0.40 * 0.5 + 0.20 * 1) / 0.60)


def test_a_round_without_an_edit_has_no_score() -> None:
    process = score(Recording().bash("cat ledger.py", "text").say("Done."))
    assert (process.edited, process.score()) == (False, None)
    assert all(pillar.value is None for pillar in process.pillars.values())


def test_weights_are_settings() -> None:
    assert read_weights(["pf=0.3", "ee=0"])["pf"] == 0.3
    changed = rigor_score({"pf": 1.0, "ee": 0.0}, read_weights(["ee=0"]))
    assert changed is not None
    assert [changed.value, changed.coverage] == pytest.approx([1, 0.15 / 0.9])


@pytest.mark.parametrize("text", ["pf", "pf=", "pf=-1", "pf=nan", "xy=1", "pf=inf"])
def test_a_weight_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"a weight is a pillar and a number from 0, such as pf=0\.3; the pillars are pf"
    ):
        read_weights([text])
