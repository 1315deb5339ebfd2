"""Run one attempt of one agent through one task, from the first round to the last; knows nothing of pytest."""

from __future__ import annotations

from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.trial import Trial

__all__ = ["Trial", "TrialOptions"]
