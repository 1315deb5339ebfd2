"""Whether the model of rounds is calibrated: its posteriors of data that were drawn from its prior.

Simulation-based calibration (Talts et al. 2018): parameters are drawn from the prior, data from these, and the rank of
each parameter among thinned draws of its posterior has to be uniform. Counted is how often intervals of 50, 80 and 95 %
hold the parameter; ``ecdf`` is the largest difference, in points, of the distribution of ranks and the uniform one, and
``limit`` what 95 of 100 uniform samples stay below (Kolmogorov and Smirnov). One of twenty parameters may be above, and
so a second limit is for all together. The figure, for the documentation, shows these differences over the ranks. Below,
seconds of one fit of as many rounds as EvoCode-Bench has with ten agents and four attempts.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.tables import Table
from pytest_evocode.metrics.round_model.outcomes import Outcomes, log_odds, played
from pytest_evocode.metrics.round_model.posterior import Posterior, fit
from pytest_evocode.metrics.round_model.sampling import PRIORS, sampled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pytest_evocode.metrics.round_model.outcomes import Floats

DESIGN = (4, 6, 2, 4)
"""Agents, tasks, attempts and rounds of the data sets; every second task has a round less."""
KEPT, THIN, WARMUP = 99, 4, 300
TOGETHER = 40
"""How many data sets are sampled side by side; one function is compiled for all."""
FIGURE = Path("docs/images/calibration.svg")
TYPICAL = {
    "intercept": 0.0, "depth": -0.1, "carried": -1.0, "sd_agent": 0.7, "sd_task": 0.8, "sd_discrimination": 0.3,
    "sd_interaction": 0.35, "sd_round": 0.55, "sd_attempt": 0.65,
}  # fmt: skip
"""The parameters of the data whose fit is timed."""
COLUMNS = ("in 50 %", "in 80 %", "in 95 %", "ecdf", "limit")


def design(agents: int, tasks: int, attempts: int, declared: NDArray[np.integer]) -> Outcomes:
    """Return outcomes of which nothing is passed; ``declared`` has the number of rounds of each task."""
    rounds = np.arange(int(declared.max())) < declared[:, None]
    counted = np.broadcast_to(rounds[None, :, None], (agents, tasks, attempts, rounds.shape[1])).copy()
    names = [f"agent{number}" for number in range(agents)], [f"task{number}" for number in range(tasks)]
    return Outcomes(*names, np.zeros_like(counted), counted)


def drawn(empty: Outcomes, random: np.random.Generator, **given: float) -> tuple[Outcomes, dict[str, Floats]]:
    """Draw parameters from the prior, but for those that are ``given``, and outcomes from these."""
    agents, tasks, attempts, rounds = empty.counted.shape
    truth = {name: np.full(1, given.get(name, scale * random.standard_normal())) for name, scale in PRIORS.items()}
    truth = {name: np.abs(value) if name.startswith("sd_") else value for name, value in truth.items()}
    shapes: dict[str, tuple[int, ...]] = {
        "agent": (agents,), "task": (tasks,), "discrimination": (tasks,), "interaction": (agents, tasks),
        "round": (tasks, rounds), "attempt": (agents, tasks, attempts),
    }  # fmt: skip
    for name, shape in shapes.items():
        truth[name] = truth[f"sd_{name}"][0] * random.standard_normal((1, *shape))
    truth["discrimination"] = np.exp(truth["discrimination"] - truth["sd_discrimination"][0] ** 2 / 2)
    odds = log_odds(truth, empty.depth)[0][:, :, None] + truth["attempt"][0][..., None]
    passed = played(odds, truth["carried"], empty.mode, random) & empty.counted
    return Outcomes(empty.agents, empty.tasks, passed, empty.counted, empty.mode), truth


def quantities(posterior: Posterior) -> dict[str, Floats]:
    """Return what is looked at, by draw: all that tasks share, and one of each other kind of number."""
    return {
        **{name: posterior.draws[name] for name in PRIORS},
        "difference of scores": posterior.scores[:, 0] - posterior.scores[:, 1],
        "difficulty": posterior.difficulties[:, 0],
        "discrimination": posterior.discriminations[:, 0],
    }


@dataclass
class Calibration(Table):
    """The table, with the ranks for the figure and the time of a fit."""

    ranks: dict[str, list[int]] = field(default_factory=dict)
    time: str = ""

    def text(self) -> str:
        """Return the table and the time."""
        return f"{super().text()}\n{self.time}"


def measure(runs: int) -> Table:
    """Per cent, over 40 data sets for each run; a figure is made with five runs or more."""
    random = np.random.default_rng(41)
    agents, tasks, attempts, rounds = DESIGN
    empty = design(agents, tasks, attempts, rounds - np.arange(tasks) % 2)
    made = [drawn(empty, random) for _ in range(TOGETHER * runs)]
    size = f"{len(made)} data sets of {empty.counted.sum()} rounds"
    title = f"simulation-based calibration of the model of rounds, {size}"
    table = Calibration(title, "%", COLUMNS)
    for place, (seen, truth) in enumerate(made):
        if place % TOGETHER == 0:
            batch = [seen for seen, _ in made[place : place + TOGETHER]]
            found = sampled(batch, KEPT, WARMUP, seed=place, thin=THIN, one_loop=True)
        draws = quantities(Posterior(seen, {name: value[place % TOGETHER] for name, value in found.items()}))
        for name, value in quantities(Posterior(seen, truth)).items():
            table.ranks.setdefault(name, []).append(int((draws[name] < value[0]).sum()))
    for name, ranks in table.ranks.items():
        shares = (np.array(ranks) + 0.5) / (KEPT + 1)
        for column, share in zip(COLUMNS, (0.5, 0.8, 0.95), strict=False):
            table.add(name, column, [100 * float((np.abs(shares - 0.5) < share / 2).mean())])
        table.add(name, "ecdf", [100 * float(np.abs(_differences(ranks)).max())])
        table.add(name, "limit", [100 * _limit(len(ranks), 1)])
    if runs >= 5:
        FIGURE.write_text(figure(table.ranks), encoding="utf-8")
    count = len(table.ranks)
    table.time = (
        f"of all {count} together 95 of 100 have none above {100 * _limit(len(made), count):.2f}\n{_timed(random)}"
    )
    return table


def _differences(ranks: list[int]) -> Floats:
    """Return the distribution of ranks less the uniform one, at each rank."""
    steps = np.arange(KEPT + 1)
    found: Floats = (np.array(ranks)[:, None] <= steps).mean(axis=0) - (steps + 1) / (KEPT + 1)
    return found


def _limit(data_sets: int, together: int) -> float:
    """Return what the differences of 95 of 100 uniform samples stay below, where so many samples have to.

    >>> round(_limit(400, 1), 4), round(_limit(400, 12), 4)
    (0.0679, 0.0877)
    """
    return math.sqrt(math.log(2 / (1 - 0.95 ** (1 / together))) / (2 * data_sets))


def _timed(random: np.random.Generator) -> str:
    declared = np.full(26, 9) - (np.arange(26) < 7)
    seen, _ = drawn(design(10, 26, 4, declared), random, **TYPICAL)
    start = perf_counter(), process_time()
    found = fit(seen).diagnostics
    wall, busy = perf_counter() - start[0], process_time() - start[1]
    return (
        f"one fit of {seen.counted.sum():,} rounds (10 agents, 26 tasks, 4 attempts): {wall:.0f} s, {busy:.0f} s of "
        f"processors (load {os.getloadavg()[0]:.0f} of {os.cpu_count()})\n"
        f"R-hat {found.r_hat:.3f}, {found.effective:.0f} effective of {found.draws:,} draws at worst, "
        f"{found.divergences} divergent"
    )


def figure(ranks: dict[str, list[int]]) -> str:
    """Return the differences of the distributions of ranks as SVG, a panel each, with the limit as a band."""
    width, height, across = 190, 110, 4
    panels = []
    for number, (name, found) in enumerate(ranks.items()):
        left, top = width * (number % across) + 8, height * (number // across) + 20
        limit = _limit(len(found), 1)
        heights = top + 40 - 200 * _differences(found)
        points = " ".join(f"{left + 174 * step / KEPT:.1f},{each:.1f}" for step, each in enumerate(heights))
        panels += [
            f'<text x="{left}" y="{top - 5}">{name}</text>',
            f'<rect x="{left}" y="{top + 40 - 200 * limit:.1f}" width="174" height="{400 * limit:.1f}" fill="#ddd"/>',
            f'<path d="M{left} {top + 40}h174" stroke="#888"/>',
            f'<polyline points="{points}" fill="none" stroke="#06c" stroke-width="1.5"/>',
        ]
    rows = -(-len(ranks) // across)
    style = 'font-family="sans-serif" font-size="12"'
    size = f'width="{width * across}" height="{height * rows}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, *panels, "</svg>\n"])
