"""Kaplan-Meier's estimate against published data, and against the truth where some is lost from sight."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest

from pytest_evocode.metrics.statistics.survival import LifeTableRow, Survival, added, kaplan_meier

#: Weeks to relapse under 6-mercaptopurine (Freireich et al. 1963); those lost from sight before a relapse apart.
RELAPSES = (6, 6, 6, 7, 10, 13, 16, 22, 23)
LOST = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)


def test_shares_and_intervals_are_those_that_stata_prints() -> None:
    steps = {
        week: LifeTableRow(sum(each >= week for each in (*RELAPSES, *LOST)), RELAPSES.count(week))
        for week in {*RELAPSES}
    }
    found = kaplan_meier(steps)
    assert {
        week: tuple(round(end, 4) for end in (each.share, each.low or 0, each.high or 0))
        for week, each in found.items()
    } == {
        6: (0.8571, 0.6197, 0.9516),
        7: (0.8067, 0.5631, 0.9228),
        10: (0.7529, 0.5032, 0.8894),
        13: (0.6902, 0.4316, 0.8491),
        16: (0.6275, 0.3675, 0.8049),
        22: (0.5378, 0.2678, 0.7468),
        23: (0.4482, 0.1881, 0.6801),
    }


def test_who_is_lost_from_sight_makes_no_share_smaller() -> None:
    random, shares = Random(4), []
    for _ in range(300):
        tables = []
        for _ in range(40):
            for index in (1, 2, 3):
                if random.random() < 0.3:
                    tables.append({index: LifeTableRow(censored=1)})
                    break
                failed = random.random() < 0.2
                tables.append({index: LifeTableRow(1, failed=float(failed))})
                if failed:
                    break
        shares.append(kaplan_meier(added(tables))[3].share)
    assert fmean(shares) == pytest.approx(0.8**3, abs=0.02)


def test_the_ends_have_no_interval_and_nothing_is_said_behind_what_is_known() -> None:
    assert kaplan_meier({1: LifeTableRow(3), 2: LifeTableRow(3, failed=3), 3: LifeTableRow(2)}) == {
        1: Survival(1.0, None, None),
        2: Survival(0.0, None, None),
    }
    assert kaplan_meier({1: LifeTableRow(2), 2: LifeTableRow(0, censored=2), 3: LifeTableRow(1)}) == {
        1: Survival(1.0, None, None)
    }
    assert kaplan_meier({}) == {}
