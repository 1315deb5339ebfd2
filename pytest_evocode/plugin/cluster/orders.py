"""What a node is told of an attempt that it is to make, and what it sends back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_evocode.agents.declarations import Declarations
    from pytest_evocode.plugin.session_agents import SessionAgent
    from pytest_evocode.tasks import Verify
    from pytest_evocode.tasks.task import RoundSelection

Message = tuple[Any, ...]
"""What an attempt sends: a kind, one of the constants of this module, and what belongs to it."""
BEGUN = "begun"
"""The index of the first round that is run."""
RECORD = "record"
"""A round's record as JSON's built-ins, without what has its default."""
PROGRESS = "progress"
"""The progress, as a dictionary, or None."""
FILE = "file"
"""A path in the attempt's directory, a part of the file's contents, and whether it is the last part."""
REMOVED = "removed"
"""A path in the attempt's directory at which there is no file any more."""
SPENT = "spent"
"""US dollars."""
ASK = "ask"
"""A number, which comes back with the answer to all that was sent before; for Ray's process on the node alone."""
LIMIT = "limit"
"""A number, which comes back with the answer, an operation on the limits of connections, and its arguments."""
NOTE = "note"
"""What people should know of the attempt."""
MEMORY = "memory"
"""Bytes of memory that the node has left, and has in all; sent by Ray's process there."""
ENDED = "ended"
"""A fault of the environment, if any; nothing follows."""
FAILED = "failed"
"""Why the attempt could not be made; nothing follows."""


@dataclass(frozen=True, slots=True)
class AttemptOrder:
    """An attempt that a node is to make, in types that any process can read."""

    name: str
    """Tells it from all other attempts of the run, and from no earlier try at it."""
    run: str
    task: str
    task_hash: str
    """The content hash of the task's directory."""
    directory_name: str
    """What the task's directory is called."""
    agent: SessionAgent
    declarations: Declarations
    number: int
    """The attempt's number, from 1."""
    rounds: RoundSelection
    only_round: str
    """The name of the round that is run by itself; empty for a chain."""
    engine: str
    verify: Verify | None
    options: Mapping[str, Any]
    """Of :class:`~pytest_evocode.trial.context.TrialOptions`, those that the session sets."""
    environ: Mapping[str, str] = field(repr=False)
    """The driver's variables that the attempt needs, secrets among them."""
    search_path: tuple[str, ...]
    """The driver's ``sys.path``, for agents in modules that are not installed."""
    max_connections: int
    """Requests under way at once for each provider and key, over all nodes."""
    spent: float = 0.0
    """US dollars that the run has cost so far."""
    resume: bool = False
    """Whether ``files`` are what an earlier session or node left of the attempt, to go on from."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The files of the attempt's directory by path."""
    made_agent: bytes = field(default=b"", repr=False)
    """The agent that a hook of the project made, pickled; empty where the node makes it."""
