"""What a session may use of its cluster; apart, because the cluster's other modules import the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pytest

    from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
    from pytest_evocode.trial.context import Progress


class Cluster(Protocol):
    """Makes the attempts of a session on other machines."""

    description: str
    """The engine on the nodes, in a line for the header."""

    @property
    def progress(self) -> dict[str, Progress]:
        """The progress of the attempts that run, by name."""

    def trial_of(self, attempt: pytest.Collector, alone: pytest.Item | None) -> RemoteTrial:
        """Return the trial of an attempt, or of a round that is run by itself."""
