"""Writes down where the state after a round is kept, so that it can be verified again."""

from __future__ import annotations

from pytest_evocode.environments import Snapshot
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.states import SnapshotFile
from pytest_evocode.trial.context import TrialContext


def keep_state(context: TrialContext, index: int, snapshot: Snapshot) -> None:
    """Write down where the state after a round is kept, and what it takes to verify it again.

    Raises EnvironmentFault when that cannot be written.
    """
    assert context.directory is not None
    kept = SnapshotFile(
        environment=context.engine.name,
        reference=snapshot.reference,
        image=context.engine.image_key(context.task),
        task=str(context.task.directory.resolve()),
        strict=context.options.strict,
        verify_times=context.options.verify_times,
        timeout_multiplier=context.options.timeout_multiplier,
        verify=context.task.verify,
    )
    try:
        context.directory.write_snapshot(context.task.rounds[index - 1].name, kept)
    except OSError as error:
        raise EnvironmentFault(f"the results could not be written: {error}") from error
