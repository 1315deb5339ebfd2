"""How far an attempt is while it runs, for whoever shows it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

Doing = Literal["starting", "preparing", "working", "verifying"]


@dataclass(frozen=True, slots=True)
class Progress:
    """An attempt at one moment: the environment starts, a round is prepared, the agent works, its work is verified.

    Suites that run beside the agent's next round do not show.
    """

    doing: Doing = "starting"
    index: int = 0
    """The round's, from 1; 0 before the first."""
    rounds: int = 0
    """The last that will be run."""
    since: float = field(default_factory=time.time)
    """When ``doing`` began, in seconds since the epoch."""
    limit: float | None = None
    """Seconds that the agent has from then on; None for no limit."""
    turns: int = 0
    """Replies of the model in all rounds so far, as of tokens and cost; 0 where nothing is known."""
    tokens: int = 0
    cost_usd: float = 0.0
