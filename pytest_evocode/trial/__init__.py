"""Run one attempt of one agent through one task, from the first round to the last; knows nothing of pytest.

:mod:`~pytest_evocode.trial.trial` is the story: start, for each round turn, judge and record, end. Of each round
:mod:`~pytest_evocode.trial.agent_turns` takes the agent's turn, and :mod:`~pytest_evocode.trial.verdicts` goes from
there to the record, with the suite run by :mod:`~pytest_evocode.trial.suites`. What has become of each round is in
:mod:`~pytest_evocode.trial.log` alone, which says as well which rounds count, and when the next turn begins.
"""

from __future__ import annotations

from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

__all__ = ["Trial", "TrialOptions"]
