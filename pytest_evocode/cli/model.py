"""``evocode results --view model``: what a model of rounds says of agents and tasks."""

from __future__ import annotations

import click

from pytest_evocode.cli.printing import prints_view
from pytest_evocode.cli.shared_options import AttemptSelection, selection_options
from pytest_evocode.report.views import View


@click.command("model")
@click.option(
    "--draws", type=click.IntRange(min=10), default=250, show_default=True, help="Draws of each of four chains."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another one, other draws.")
@selection_options
@prints_view()
def model_command(selection: AttemptSelection, draws: int, seed: int) -> View:
    """Print what a model of rounds says: scores, differences, ranks, tasks, effects of depth and of a failed round.

    It is a hierarchical logistic regression with agent, task, attempt, depth and carried state, and needs
    'pytest-evocode[stats]', two agents, five tasks, and two attempts at these. Controls (oracle, nop) are left out.
    """
    from pytest_evocode.metrics.round_model.outcomes import grouped_outcomes
    from pytest_evocode.metrics.round_model.posterior import fit
    from pytest_evocode.metrics.round_model.sampling import require_numpyro
    from pytest_evocode.report.round_model import model_view

    require_numpyro()
    found = grouped_outcomes(selection.read().rows)
    return model_view({name: fit(seen, draws=draws, seed=seed) for name, seen in found.items()})
