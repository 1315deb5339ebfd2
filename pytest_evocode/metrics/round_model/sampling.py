"""Draw from the posterior of the model of rounds: Gibbs sampling with Pólya-Gamma variables.

Given such a variable for each round the log-odds are a normal regression (Polson, Scott and Windle 2013), and given
what all tasks share, tasks are independent of each other: so all effects are drawn at once, exactly, from small
matrices. Standard deviations are drawn both given the effects and given these divided by them (Yu and Meng 2011;
Frühwirth-Schnatter and Wagner 2010), so that neither large nor small ones stick. Arrays begin with the data set or
chain, of which all go side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.round_model.outcomes import INSTALL, Outcomes

if TYPE_CHECKING:
    import numpy as np

    from pytest_evocode.metrics.round_model.outcomes import Floats

PRIORS: Mapping[str, float] = {
    "intercept": 1.5,
    "depth": 0.2,
    "carried": 1.5,
    "sd_agent": 1.0,
    "sd_task": 1.0,
    "sd_discrimination": 0.5,
    "sd_interaction": 1.0,
    "sd_round": 1.0,
    "sd_attempt": 1.0,
}
"""The scale of each parameter's prior: normal, and half-normal for the standard deviations."""


_SETTLING = 50
"""How many steps discriminations stay 1."""


def import_polyagamma() -> Any:
    """Return the function that draws Pólya-Gamma variables.

    Raises:
        UsageError: It is not installed; the message says how to do that.
    """
    try:
        from polyagamma import random_polyagamma
    except ImportError:
        raise UsageError(f"the model of rounds needs numpy and polyagamma: {INSTALL}") from None
    return random_polyagamma


def sampled(seen: Sequence[Outcomes], draws: int, warmup: int, seed: int, thin: int = 1) -> dict[str, Floats]:
    """Return draws of all parameters by name, for each of some data sets of one design; first axes: data set, draw."""
    import numpy as np

    chain = _Chains(seen, np.random.default_rng(seed))
    found: dict[str, list[Floats]] = {}
    for number in range(warmup + thin * draws):
        chain.step()
        if number >= warmup and (number - warmup) % thin == 0:
            for name, value in chain.parameters().items():
                found.setdefault(name, []).append(value)
    return {name: np.stack(values, axis=1) for name, values in found.items()}


class _Chains:
    """The state of all chains; effects of a task are one vector: its own, by agent, by round, by attempt."""

    def __init__(self, seen: Sequence[Outcomes], random: np.random.Generator) -> None:
        import numpy as np

        self.random = random
        self.steps = 0
        self.polyagamma = import_polyagamma()
        self.has_attempts, self.carries = seen[0].has_attempts, seen[0].carries

        def by_task(name: str) -> Floats:
            found: Floats = np.stack([getattr(each, name).swapaxes(0, 1) for each in seen]).astype(float)
            return found

        self.counted, self.before = by_task("counted"), by_task("failed_before") * by_task("counted")
        self.half = (by_task("passed") - 0.5) * self.counted
        chains, tasks, agents, attempts, rounds = self.half.shape
        self.shape = chains, tasks, agents, attempts, rounds
        ends = np.cumsum([1, agents, rounds, agents * attempts if self.has_attempts else 0])
        self.own, self.of_agent, self.of_round, self.of_attempt = (
            slice(start, end) for start, end in zip((0, *ends[:-1]), ends, strict=True)
        )
        self.depth = np.stack([each.depth for each in seen])
        self.fixed = np.zeros((chains, 3))  # Intercept, depth, carried.
        names = [name.removeprefix("sd_") for name in PRIORS if name.startswith("sd_")]
        self.sd = {name: random.uniform(0.2, 1.0, chains) for name in names}
        self.ability = 0.5 * random.standard_normal((chains, agents))
        self.weight = np.ones((chains, tasks))
        self.effects = 0.5 * random.standard_normal((chains, tasks, int(ends[-1])))

    @property
    def settled(self) -> bool:
        """Whether discriminations are drawn, too."""
        return self.steps > _SETTLING

    def parameters(self) -> dict[str, Floats]:
        """Return the parameters by name, effects less what they are expected to be."""
        found = {f"sd_{name}": value for name, value in self.sd.items() if name != "attempt" or self.has_attempts}
        found |= {"intercept": self.fixed[:, 0], "depth": self.fixed[:, 1]}
        found |= {"carried": self.fixed[:, 2]} if self.carries else {}
        off = self.effects - self._expected()
        return {
            **{name: value.copy() for name, value in found.items()},
            "agent": self.ability.copy(),
            "task": -off[:, :, 0],
            "discrimination": self.weight.copy(),
            "interaction": off[:, :, self.of_agent].swapaxes(1, 2).copy(),
            "round": off[:, :, self.of_round].copy(),
        }

    def step(self) -> None:
        """Draw all anew; discriminations not before abilities have left where they began, lest signs stay turned."""
        self.steps += 1
        odds = self._odds(self.effects) + self.fixed[:, 2, None, None, None, None] * self.before
        self.omega = self.polyagamma(1, odds, random_state=self.random) * self.counted
        self._draw_effects()
        self._draw_deviations()
        self._draw_scales()

    def _odds(self, effects: Floats) -> Floats:
        """Return the log-odds of each round without what is carried."""
        import numpy as np

        total = effects[:, :, 0, None, None, None] + effects[:, :, self.of_agent, None, None]
        total = total + effects[:, :, None, None, self.of_round]
        if self.has_attempts:
            total = total + effects[:, :, self.of_attempt].reshape(*self.shape[:4], 1)
        return np.broadcast_to(total, self.shape)

    def _sums(self, cells: Floats) -> Floats:
        """Return the sum over the rounds that each effect is part of."""
        import numpy as np

        parts = [cells.sum((2, 3, 4))[..., None], cells.sum((3, 4)), cells.sum((2, 3))]
        parts += [cells.sum(4).reshape(*self.shape[:2], -1)] if self.has_attempts else []
        return np.concatenate(parts, axis=2)

    def _crossed(self) -> Floats:
        """Return the weights that each two effects of a task share."""
        import numpy as np

        chains, tasks, agents, attempts, _ = self.shape
        sums = self._sums(self.omega)
        count = sums.shape[2]
        found = np.zeros((chains, tasks, count, count))
        found[:, :, 0] = sums
        by_agent = self.omega.sum(3)
        found[:, :, self.of_agent, self.of_round] = by_agent
        if self.has_attempts:
            by_attempt = self.omega.reshape(chains, tasks, agents * attempts, -1)
            found[:, :, self.of_round, self.of_attempt] = by_attempt.swapaxes(2, 3)
            same = np.repeat(np.eye(agents), attempts, axis=1)
            found[:, :, self.of_agent, self.of_attempt] = same * by_attempt.sum(3)[:, :, None]
        found += found.swapaxes(2, 3)
        diagonal = np.arange(count)
        found[:, :, diagonal, diagonal] = sums
        return found

    def _precisions(self) -> Floats:
        """Return the prior precision of each effect of a task, by chain."""
        import numpy as np

        spans = {"task": self.own, "interaction": self.of_agent, "round": self.of_round, "attempt": self.of_attempt}
        found = np.empty((self.shape[0], self.effects.shape[2]))
        for name, span in spans.items():
            found[:, span] = self.sd[name][:, None] ** -2
        return found

    def _expected(self) -> Floats:
        """Return what effects are expected to be, given what all tasks share."""
        import numpy as np

        found = np.zeros_like(self.effects)
        found[:, :, 0] = self.fixed[:, 0, None]
        found[:, :, self.of_agent] = self.weight[..., None] * self.ability[:, None]
        found[:, :, self.of_round] = (self.fixed[:, 1, None] * self.depth)[:, None]
        return found

    def _draw_effects(self) -> None:
        """Draw discriminations, what tasks share, and effects, each with the ones behind it integrated out."""
        import numpy as np

        chains, tasks, agents = self.shape[:3]
        precision = self._precisions()[:, None]
        covariance = np.linalg.inv(self._crossed() + precision[..., None] * np.eye(precision.shape[2]))
        shared = self._sums(self.omega * self.before)
        data = self._sums(self.half)
        # Discriminations.
        column = np.zeros_like(self.effects)
        column[:, :, self.of_agent] = self.ability[:, None]
        rest = self._expected() - self.weight[..., None] * column
        known = precision * rest + data - shared * self.fixed[:, 2, None, None]
        scaled = precision * column
        turned = np.einsum("ctij,ctj->cti", covariance, scaled)
        amount = (column * scaled).sum(2) - (turned * scaled).sum(2) + self.sd["discrimination"][:, None] ** -2
        mean = (turned * known).sum(2) - (scaled * rest).sum(2) + self.sd["discrimination"][:, None] ** -2
        if self.settled:
            self.weight = mean / amount + self.random.standard_normal((chains, tasks)) / np.sqrt(amount)
        # What tasks share: intercept, depth, carried, abilities.
        columns = np.zeros((*self.effects.shape, 3 + agents))
        columns[:, :, 0, 0] = 1
        columns[:, :, self.of_round, 1] = self.depth[:, None]
        columns[:, :, self.of_agent, 3:] = self.weight[..., None, None] * np.eye(agents)
        scaled = precision[..., None] * columns
        amount = np.einsum("ctig,ctih->cgh", columns, scaled)
        scaled[..., 2] = -shared
        turned = covariance @ scaled
        amount -= np.einsum("ctig,ctih->cgh", scaled, turned)
        mean = np.einsum("ctig,cti->cg", turned, data)
        amount[:, 2, 2] += (self.omega * self.before).sum((1, 2, 3, 4))
        mean[:, 2] += (self.half * self.before).sum((1, 2, 3, 4))
        prior = np.empty((chains, 3 + agents))
        prior[:, :3] = [PRIORS[name] ** -2 for name in ("intercept", "depth", "carried")]
        prior[:, 3:] = self.sd["agent"][:, None] ** -2
        drawn = self._normal(amount + prior[..., None] * np.eye(3 + agents), mean)
        self.fixed, self.ability = drawn[:, :3] * [1, 1, self.carries], drawn[:, 3:]
        # Effects.
        known = precision * self._expected() + data - shared * self.fixed[:, 2, None, None]
        noise = self.random.standard_normal(self.effects.shape)
        lower = np.linalg.cholesky(covariance)
        self.effects = np.einsum("ctij,ctj->cti", covariance, known) + np.einsum("ctij,ctj->cti", lower, noise)

    def _normal(self, precision: Floats, linear: Floats) -> Floats:
        """Draw from the normal distribution with a precision matrix, and the product of that and the mean."""
        import numpy as np

        covariance = np.linalg.inv(precision)
        noise = np.linalg.cholesky(covariance) @ self.random.standard_normal(linear.shape)[..., None]
        found: Floats = (covariance @ linear[..., None] + noise)[..., 0]
        return found

    def _deviations(self) -> dict[str, Floats]:
        """Return what each standard deviation is of, by chain."""
        off = self.effects - self._expected()
        found = {
            "agent": self.ability, "task": off[:, :, 0], "discrimination": self.weight - 1,
            "interaction": off[:, :, self.of_agent], "round": off[:, :, self.of_round],
        }  # fmt: skip
        found |= {"attempt": off[:, :, self.of_attempt]} if self.has_attempts else {}
        if not self.settled:
            del found["discrimination"]
        return {name: value.reshape(len(value), -1) for name, value in found.items()}

    def _draw_deviations(self) -> None:
        """Draw standard deviations given the effects: as if any were as likely, and then accepted by the prior."""
        import numpy as np

        for name, values in self._deviations().items():
            old, scale = self.sd[name], PRIORS[f"sd_{name}"]
            count = max(1, values.shape[1] - 1)
            new = np.sqrt((values**2).sum(1) / self.random.chisquare(count, len(old)))
            log = (old**2 - new**2) / (2 * scale**2)
            if values.shape[1] == 1:  # Of one value the proposal has a density of its own.
                log += np.log(new / old)
            self.sd[name] = np.where(np.log(self.random.random(len(old))) < log, new, old)

    def _draw_scales(self) -> None:
        """Draw what tasks share and standard deviations given the effects divided by them."""
        import numpy as np

        unit = {name: value / self.sd[name][:, None] for name, value in self._deviations().items()}
        parts = {name: np.zeros_like(self.effects) for name in ("task", "agent", "interaction", "round", "attempt")}
        parts["task"][:, :, 0] = unit["task"]
        parts["agent"][:, :, self.of_agent] = self.weight[..., None] * unit["agent"][:, None]
        for name, span in (("interaction", self.of_agent), ("round", self.of_round), ("attempt", self.of_attempt)):
            if name in unit:
                parts[name][:, :, span] = unit[name].reshape(parts[name][:, :, span].shape)
        parts = {name: value for name, value in parts.items() if name in unit}
        ones, depth = np.zeros_like(self.effects), np.zeros_like(self.effects)
        ones[:, :, 0], depth[:, :, self.of_round] = 1, self.depth[:, None]
        columns = [self._odds(ones), self._odds(depth), self.before, *map(self._odds, parts.values())]
        names = ["intercept", "depth", "carried", *(f"sd_{name}" for name in parts)]
        drawn = self._regressed(columns, names, np.zeros_like(self.half))
        self.fixed = drawn[:, :3] * [1, 1, self.carries]
        signed = dict(zip(parts, drawn[:, 3:].T, strict=True))
        self.ability = signed["agent"][:, None] * unit["agent"]
        for name, value in signed.items():
            self.sd[name] = np.abs(value)
        off = sum(signed[name][:, None, None] * part for name, part in parts.items() if name != "agent")
        self.effects = self._expected() + off
        if not self.settled:
            return
        # The standard deviation of discriminations: abilities stay.
        column = np.zeros_like(self.effects)
        column[:, :, self.of_agent] = unit["discrimination"][..., None] * self.ability[:, None]
        scale = self.sd["discrimination"][:, None, None]
        rest = self._odds(self.effects - scale * column) + self.fixed[:, 2, None, None, None, None] * self.before
        drawn = self._regressed([self._odds(column)], ["sd_discrimination"], rest)
        self.sd["discrimination"] = np.abs(drawn[:, 0])
        self.weight = 1 + drawn * unit["discrimination"]
        self.effects += (drawn[:, :1, None] - scale) * column

    def _regressed(self, columns: Sequence[Floats], names: Sequence[str], rest: Floats) -> Floats:
        """Draw the factors of columns, beside the ``rest`` of the log-odds."""
        import numpy as np

        flat = np.stack(columns, axis=1).reshape(len(rest), len(columns), -1)
        weighted = flat * self.omega.reshape(len(rest), 1, -1)
        prior = np.diag([PRIORS[name] ** -2 for name in names])
        left = (self.half - self.omega * rest).reshape(len(rest), -1, 1)
        return self._normal(weighted @ flat.swapaxes(1, 2) + prior, (flat @ left)[..., 0])
