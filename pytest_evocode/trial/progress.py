"""How far an attempt is while it runs, for displays."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Literal

Doing = Literal["starting", "preparing", "working", "verifying", "clearing up"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What an attempt does at one moment: start its environment, prepare a round, let the agent work, verify, clear up.

    Suites that run beside the agent's next round do not show, and neither do forks that are removed meanwhile.
    """

    doing: Doing = "starting"
    index: int = 0
    """The round's index, from 1; 0 before the first."""
    rounds: int = 0
    """The index of the last round that will be run."""
    since: float = field(default_factory=time.time)
    """When ``doing`` began, in seconds since the epoch."""
    limit: float | None = None
    """Seconds that the agent has from then on; None for no limit."""
    turns: int = 0
    """Replies of the model in all rounds so far; 0 where nothing is known, as for tokens and cost."""
    tokens: int = 0
    cost_usd: float = 0.0
    forks: int = 0
    """Forks that wait to be removed, when it clears up."""
