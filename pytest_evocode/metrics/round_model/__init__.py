"""A model of rounds beside the permutation tests: hierarchical logistic regression, by Hamiltonian Monte Carlo.

The log-odds that agent a passes round i of task t in attempt k are ::

    intercept - difficulty_t + discrimination_t * ability_a + interaction_ta + round_ti + attempt_tak
        + depth * (i - mean i) + carried * [the round before was not passed]

What has an index is normal with a standard deviation of its own, around 0, and discriminations are log-normal with mean
1: the two-parameter model of item response theory (Birnbaum 1968) with crossed random effects (De Boeck and Wilson
2004) and a lagged outcome. In fail-stop mode nothing is carried, and single rounds have no attempt in common: such
terms are left out.

The library is numpyro, on jax. What others take, beside pip, and for 9,080 rounds (26 tasks x 4 attempts x 10 agents):

| library | MB | import | time |
|---|---|---|---|
| numpyro 0.22, jax | 530 | 3.4 s | 70 s of processors, on two at once, some 10 s of it to compile each shape |
| pymc 5.28, bambi 0.17 on top | 520, 526 | | not timed: compiles, too |
| nutpie 0.16 | 576 | | the same; samples models of pymc or Stan, which come on top |
| statsmodels 0.15 | 269 | | variational or Laplace only, and no discrimination |
| polyagamma 2.0, with Gibbs steps of our own | 60 | 0.3 s | 13 s, but R-hat from 1.2 to 4: it does not converge |

Everything here is loaded on first use only.
"""
