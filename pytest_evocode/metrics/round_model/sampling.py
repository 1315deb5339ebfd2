"""Draw from the posterior of the model of rounds by Hamiltonian Monte Carlo (NUTS), with numpyro.

Effects are written as a standard deviation times a standard normal number, without which small standard deviations are
not reached (Betancourt and Girolami 2015). One function is compiled for each shape, and all chains call it, on as many
processors as there are. Many small data sets go quicker in the steps of one loop; one that is large takes longer so, as
each step waits for the longest path of all, and four chains of 9,080 rounds took 200 s of processors in place of 70.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.round_model.outcomes import INSTALL, Outcomes

if TYPE_CHECKING:
    import jax
    from numpyro.infer.hmc import HMCState

    from pytest_evocode.metrics.round_model.outcomes import Floats

    Draws: TypeAlias = dict[str, jax.Array]

PRIORS: Mapping[str, float] = {
    "intercept": 1.5,
    "depth": 0.2,
    "carried": 1.5,
    "sd_agent": 1.0,
    "sd_task": 1.0,
    "sd_discrimination": 0.3,
    "sd_interaction": 1.0,
    "sd_round": 1.0,
    "sd_attempt": 1.0,
}
"""The scale of each parameter's prior: normal, and half-normal for the standard deviations."""


def require_numpyro() -> None:
    """Have the processor do what is computed.

    Raises:
        UsageError: numpyro is not installed; the message says how to do that.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Of the compiler, which tells of busy machines.
    try:
        import numpyro
    except ImportError:
        raise UsageError(f"the model of rounds needs numpyro: {INSTALL}") from None
    numpyro.set_platform("cpu")  # Else jax looks for other devices, and warns of one that it was not installed for.


def sampled(
    seen: Sequence[Outcomes],
    draws: int,
    warmup: int,
    seed: int,
    *,
    thin: int = 1,
    target_accept: float = 0.8,
    one_loop: bool = False,
) -> dict[str, Floats]:
    """Return draws of all parameters by name, for each of some data sets of one design; first axes: data set, draw.

    With ``one_loop`` all data sets are sampled in one, which is for many small ones. ``diverging`` are the draws at
    which the path left the posterior, so that parts of it may not have been reached.
    """
    require_numpyro()
    import jax
    import numpy as np

    model, cells = model_of(seen[0])
    shape = tuple(map(np.shape, cells))
    run = _compiled(model, shape, draws, warmup, thin, target_accept, len(seen) if one_loop else 0)
    keys = jax.random.split(jax.random.PRNGKey(seed), len(seen))
    calls = [(key, *model_of(each)[1]) for key, each in zip(keys, seen, strict=True)]
    if one_loop:
        return {name: np.asarray(value) for name, value in run(*map(np.stack, zip(*calls, strict=True))).items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda call: jax.block_until_ready(run(*call)), calls))
    return {name: np.stack([each[name] for each in found]) for name in found[0]}


def model_of(seen: Outcomes) -> tuple[Callable[..., None], tuple[Floats, ...]]:
    """Return the model as numpyro takes one, and what it is called with."""
    cells = (seen.passed & seen.counted, seen.counted, seen.failed_before, seen.depth)
    return _model(seen.has_attempts, seen.carries), tuple(each.astype("float32") for each in cells)


@cache
def _model(attempts: bool, carries: bool) -> Callable[..., None]:
    return partial(_rounds, attempts=attempts, carries=carries)


@cache
def _compiled(
    model: Callable[..., None],
    shapes: tuple[tuple[int, ...], ...],
    draws: int,
    warmup: int,
    thin: int,
    target_accept: float,
    together: int,
) -> Callable[..., Draws]:
    """Return the function that samples one chain of each data set."""
    import jax
    from numpyro.infer.hmc import hmc
    from numpyro.infer.util import initialize_model
    from numpyro.util import fori_collect

    def run(key: jax.Array, *cells: jax.Array) -> Draws:
        begin, own = jax.random.split(key)
        made = initialize_model(begin, model, model_args=cells, dynamic_args=True)
        init, step = hmc(potential_fn_gen=made.potential_fn, algo="NUTS")
        state = init(made.param_info, warmup, model_args=cells, target_accept_prob=target_accept, rng_key=own)

        def kept(state: HMCState) -> Draws:
            found = made.postprocess_fn(*cells)(state.z)
            found = {name: value for name, value in found.items() if not name.startswith("standard_")}
            return {**found, "diverging": state.diverging}

        found: Draws = fori_collect(
            warmup, warmup + draws * thin, lambda state: step(state, model_args=cells), state, kept,
            progbar=False, thinning=thin,
        )  # fmt: skip
        return found

    before = (together,) if together else ()
    key = jax.ShapeDtypeStruct((*before, 2), "uint32")
    cells = [jax.ShapeDtypeStruct((*before, *shape), "float32") for shape in shapes]
    compiled: Callable[..., Draws] = jax.jit(jax.vmap(run) if together else run).lower(key, *cells).compile()
    return compiled


def _rounds(
    passed: jax.Array, counted: jax.Array, failed_before: jax.Array, depth: jax.Array, *, attempts: bool, carries: bool
) -> None:
    """Be the model, as numpyro reads one; arrays are by agent, task, attempt and round."""
    import jax
    import numpyro
    from numpyro.distributions import HalfNormal, Normal

    agents, tasks, made, rounds = passed.shape
    left_out = {"sd_attempt": not attempts, "carried": not carries}
    prior = {
        name: numpyro.sample(name, HalfNormal(scale) if name.startswith("sd_") else Normal(0, scale))
        for name, scale in PRIORS.items()
        if not left_out.get(name)
    }

    def effect(name: str, *shape: int) -> jax.Array:
        return prior[f"sd_{name}"] * numpyro.sample(f"standard_{name}", Normal(0, 1).expand(shape).to_event())

    agent, task = (
        numpyro.deterministic(name, effect(name, many)) for name, many in (("agent", agents), ("task", tasks))
    )
    interaction = numpyro.deterministic("interaction", effect("interaction", agents, tasks))
    of_round = numpyro.deterministic("round", effect("round", tasks, rounds))
    # Positive, so that signs cannot turn, and 1 in the mean.
    log_discrimination = effect("discrimination", tasks) - prior["sd_discrimination"] ** 2 / 2
    discrimination = numpyro.deterministic("discrimination", jax.numpy.exp(log_discrimination))
    by_task = prior["intercept"] - task + agent[:, None] * discrimination + interaction
    odds = (by_task[..., None] + (effect("attempt", agents, tasks, made) if attempts else 0))[..., None]
    odds = odds + (of_round + prior["depth"] * depth)[:, None]
    if carries:
        odds = odds + prior["carried"] * failed_before
    numpyro.factor("rounds", (passed * odds - counted * jax.nn.softplus(odds)).sum())
