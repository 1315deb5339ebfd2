"""An environment of verifiers, which has to be a module at the top level: docs/api.md shows it.

vf-eval my_tasks --env.taskset.tasks '["example_tasks/ledger"]' --env.taskset.engine sandbox \
    --env.agent.runtime.type subprocess
"""

from pytest_evocode.bridges.verifiers import EvocodeHarness, EvocodeTaskset

__all__ = ["EvocodeHarness", "EvocodeTaskset"]
