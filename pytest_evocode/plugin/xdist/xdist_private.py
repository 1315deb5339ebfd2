"""Parts of xdist that its documentation does not have, each with the reason.

All were seen to work with pytest-xdist 3.8; the tox environment ``pytestmain`` tries the newest pre-release.

Besides these, the pause of :mod:`pytest_evocode.plugin.xdist.worker` relies on how a worker goes through its tests: it
is sent their numbers in ``session.items``, and runs one as soon as it knows the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from xdist.report import report_collection_diff
from xdist.workermanage import parse_tx_spec_config

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


def count_workers(config: pytest.Config) -> int:
    """Return how many workers a session begins with.

    ``parse_tx_spec_config``: a scheduler is asked whether all have collected before it has been told of all of them.
    """
    return len(parse_tx_spec_config(config))


def describe_difference(
    one: WorkerController, of_one: Sequence[str], other: WorkerController, of_other: Sequence[str]
) -> str | None:
    """Return how the collections of two workers differ, None where they do not.

    ``report_collection_diff``: it has the message that people know from xdist's own schedulers, with its advice.
    """
    difference: str | None = report_collection_diff(of_one, of_other, one.gateway.id, other.gateway.id)
    return difference
