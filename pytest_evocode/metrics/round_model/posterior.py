"""Sample the model of rounds, and say of the draws what is asked: differences, ranks, groups, tasks, variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import TYPE_CHECKING

from pytest_evocode.errors import NotConverged
from pytest_evocode.metrics.round_model.outcomes import Outcomes, log_odds, played, probability
from pytest_evocode.metrics.round_model.sampling import sampled
from pytest_evocode.metrics.statistics.intervals import t_quantile
from pytest_evocode.metrics.statistics.significance import smallest_p_value

if TYPE_CHECKING:
    from pytest_evocode.metrics.round_model.outcomes import Flags, Floats

CHAINS = 4
WORST_R_HAT, FEWEST_EFFECTIVE, MOST_DIVERGENT = 1.05, 100.0, 0.005
TOLD_APART = 0.975
"""From which probability to be better on two agents are told apart."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How far the draws can be trusted, by the worst of the numbers that are printed."""

    r_hat: float
    """How much the halves of chains differ (Gelman et al. 2013, section 11.4); 1 is not at all."""
    effective: float
    """How many independent draws they are worth (Geyer 1992)."""
    draws: int
    divergences: int
    """At how many draws the sampler left the posterior, so that parts of it may be missing (Betancourt 2017)."""

    @property
    def why_not(self) -> str:
        """Why the draws are not to be used; empty where they are."""
        bad = [f"R-hat {self.r_hat:.2f} is above {WORST_R_HAT}"] if not self.r_hat <= WORST_R_HAT else []
        if not self.effective >= FEWEST_EFFECTIVE:
            bad.append(f"{self.effective:.0f} effective draws are fewer than {FEWEST_EFFECTIVE:.0f}")
        if self.divergences > MOST_DIVERGENT * self.draws:
            bad.append(f"{self.divergences} of {self.draws:,} draws diverged")
        return ", ".join(bad)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of the posterior: its mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(draws: Floats) -> Estimate:
    """Return the mean and the 2.5th and 97.5th percentile of draws."""
    import numpy as np

    low, high = np.percentile(draws, (2.5, 97.5))
    return Estimate(float(draws.mean()), float(low), float(high))


@dataclass(frozen=True)
class Posterior:
    """Draws of all parameters, by name; those of the chains are behind each other."""

    seen: Outcomes
    draws: Mapping[str, Floats]

    @cached_property
    def log_odds(self) -> Floats:
        """By draw, agent, task and round."""
        return log_odds(self.draws, self.seen.depth)

    @cached_property
    def scores(self) -> Floats:
        """The expected score of new attempts at these tasks, 0 to 100, by draw and agent.

        It is the Dataset Score, or SR by task of single rounds: what varies from attempt to attempt is integrated out
        by Gauss and Hermite's rule, and what is carried from round to round goes from each to the next.
        """
        import numpy as np

        nodes, weights = np.polynomial.hermite_e.hermegauss(9 if self.seen.has_attempts else 1)
        total = np.zeros(self.log_odds.shape[:3], dtype=np.float32)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            total += weight * self._passed(node)
        shares: Floats = 100 * (total / self.seen.declared.sum(axis=1)).mean(axis=2)
        return shares

    def _passed(self, node: float) -> Floats:
        """Return how many rounds are passed in attempts whose effect is so many standard deviations."""
        import numpy as np

        shift = node * self.draws["sd_attempt"][:, None, None] if self.seen.has_attempts else 0.0
        carried = self.draws["carried"][:, None, None] if self.seen.carries else 0.0
        total: Floats = np.zeros(self.log_odds.shape[:3], dtype=np.float32)
        before: Floats = np.ones_like(total)
        for index, exists in enumerate(self.seen.declared.T):
            odds = self.log_odds[..., index] + shift
            chance = probability(odds)
            if self.seen.carries:
                chance = before * chance + (1 - before) * probability(odds + carried)
            elif self.seen.mode == "fail-stop":
                chance = before * chance
            total += chance * exists
            before = np.where(exists, chance, before)
        return total

    @cached_property
    def order(self) -> list[int]:
        """The places of the agents, the best first."""
        return [int(place) for place in (-self.scores.mean(axis=0)).argsort(kind="stable")]

    @property
    def ranks(self) -> Floats:
        """The rank of each agent, by draw; 1 is the best."""
        found: Floats = 1.0 + (-self.scores).argsort(axis=1).argsort(axis=1)
        return found

    def better(self, first: int, second: int) -> float:
        """Return the probability that the first agent's score is the higher one."""
        return float((self.scores[:, first] > self.scores[:, second]).mean())

    @cached_property
    def groups(self) -> list[list[int]]:
        """Agents next to each other in order of which no two are told apart, each group as large as can be."""
        found: list[list[int]] = []
        for start in range(len(self.order)):
            group = self.order[start : start + 1]
            for agent in self.order[start + 1 :]:
                if any(self.better(each, agent) >= TOLD_APART for each in group):
                    break
                group = [*group, agent]
            if not found or group[-1] != found[-1][-1]:
                found.append(group)
        return found

    @property
    def difficulties(self) -> Floats:
        """The log-odds that the mean of these agents fails a middle round of a task, by draw and task."""
        ability = self.draws["discrimination"] * self.draws["agent"].mean(axis=1)[:, None]
        found: Floats = self.draws["task"] - self.draws["intercept"][:, None] - ability
        return found

    @property
    def discriminations(self) -> Floats:
        """How much more abilities matter at each task than at a typical one, by draw and task."""
        return self.draws["discrimination"]

    @property
    def effects(self) -> dict[str, Floats]:
        """What a further round, and a failed one before, add to the log-odds of a round."""
        return {name: self.draws[name] for name in ("depth", "carried") if name in self.draws}

    @property
    def variance_shares(self) -> dict[str, Floats]:
        """The share of the variance of one round on the scale of log-odds, by what it comes from.

        Chance is the variance of the logistic distribution (Snijders and Bosker 2012, chapter 17). Where abilities
        matter more at some tasks than at others, that is interaction: a log-normal discrimination whose mean is 1 has
        the variance exp(sd²) - 1.
        """
        import numpy as np

        agent = self.draws["sd_agent"] ** 2
        parts = {
            "agent": agent,
            "task": self.draws["sd_task"] ** 2,
            "interaction": self.draws["sd_interaction"] ** 2 + agent * np.expm1(self.draws["sd_discrimination"] ** 2),
            "round": self.draws["sd_round"] ** 2,
            **({"attempt": self.draws["sd_attempt"] ** 2} if self.seen.has_attempts else {}),
            "chance": np.full(len(agent), pi**2 / 3),
        }
        total = sum(parts.values())
        return {name: part / total for name, part in parts.items()}

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """The worst of all that is printed."""
        import numpy as np
        from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

        printed = (
            self.scores, self.difficulties, self.discriminations, *self.effects.values(),
            *(value for name, value in self.variance_shares.items() if name != "chance"),
        )  # fmt: skip
        values = np.concatenate([each.reshape(len(each), -1) for each in printed], axis=1).astype(float)
        chains = values.reshape(CHAINS, -1, values.shape[1])
        r_hat, effective = split_gelman_rubin(chains).max(), effective_sample_size(chains).min()
        return Diagnostics(float(r_hat), float(effective), len(values), int(self.draws["diverging"].sum()))

    def assurance(self, tasks: Sequence[int], attempts: Sequence[int], alpha: float, seed: int = 0) -> Floats:
        """Return the probability that so many new tasks and attempts show the difference of the first two agents.

        It is over what is not known, too: for each draw tasks and attempts are drawn, and the difference counts as
        seen where Student's t-test finds it, as :mod:`~pytest_evocode.metrics.statistics.variance` says
        (O'Hagan, Stevens and Campbell 2005, Assurance in clinical trial design).

        Returns:
            By number of tasks and number of attempts, the one in ``tasks`` and ``attempts``.
        """
        import numpy as np

        most, each = max(tasks), max(attempts)
        random = np.random.default_rng(seed)
        seen = np.zeros((len(tasks), len(attempts)))
        every = max(1, len(self.draws["intercept"]) // _SIMULATED)
        draws = {name: value[::every] for name, value in self.draws.items()}
        count = len(draws["intercept"])
        declared = self.seen.declared[random.integers(len(self.seen.tasks), size=most)]  # Rounds of new tasks.
        shapes = {"task": (most,), "discrimination": (most,), "interaction": (2, most), "round": declared.shape}
        new = {
            name: (random.standard_normal((*shape, count)) * draws[f"sd_{name}"]).transpose(-1, *range(len(shape)))
            for name, shape in shapes.items()
        }
        new["discrimination"] = np.exp(new["discrimination"] - draws["sd_discrimination"][:, None] ** 2 / 2)
        odds = log_odds({**draws, **new, "agent": draws["agent"][:, :2]}, self.seen.depth)
        carried = draws["carried"][:, None, None] if self.seen.carries else np.zeros((1, 1, 1))
        shares = []
        for _ in range(each):
            own = odds
            if self.seen.has_attempts:
                own = odds + (draws["sd_attempt"][:, None, None] * random.standard_normal((count, 2, most)))[..., None]
            passed = played(own, carried, self.seen.mode, random)
            shares.append((passed & declared).sum(axis=-1) / declared.sum(axis=-1))
        means = np.cumsum(shares, axis=0) / np.arange(1, each + 1)[:, None, None, None]
        for row, number in enumerate(tasks):
            for column, made in enumerate(attempts):
                values = means[made - 1][:, :, :number]
                seen[row, column] = _found(values[:, 0] - values[:, 1], alpha).mean()
        return seen


_SIMULATED = 400


def _found(differences: Floats, alpha: float) -> Flags:
    """Return of which draws a comparison finds a difference, by draw and task."""
    import numpy as np

    tasks = differences.shape[1]
    smallest = smallest_p_value(min(tasks, 60))
    if smallest > alpha:
        return np.zeros(len(differences), dtype=bool)
    if alpha < 2 * smallest:
        found: Flags = np.abs(np.sign(differences).sum(axis=1)) == tasks
        return found
    critical = t_quantile(1 - alpha // smallest * smallest / 2, tasks - 1)
    error = differences.std(axis=1, ddof=1) / np.sqrt(tasks)
    found = np.abs(differences.mean(axis=1)) > critical * error
    return found


def fit(seen: Outcomes, *, draws: int = 250, warmup: int = 250, seed: int = 0) -> Posterior:
    """Sample the posterior, in four chains; where that is not enough, once more.

    The second time there are twice as many draws, by shorter steps.

    Args:
        seen: The outcomes.
        draws: How many of each chain are kept.
        warmup: How many before are not.
        seed: The same seed gives the same draws on the same machine.

    Raises:
        UsageError: The extra is not installed.
        NotConverged: The diagnostics are bad.
    """
    for more, target_accept in ((1, 0.8), (2, 0.95)):
        found = sampled([seen] * CHAINS, more * draws, more * warmup, seed, target_accept=target_accept)
        posterior = Posterior(seen, {name: value.reshape(-1, *value.shape[2:]) for name, value in found.items()})
        if not (why := posterior.diagnostics.why_not):
            return posterior
    raise NotConverged(f"the model was not sampled well enough to be believed: {why}; take more --draws")
