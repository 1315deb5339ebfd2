"""Decides which attempt begins next and on which node, in which engine, and how many at once; knows nothing of Ray."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pytest_evocode.environments.choice import ENGINES
from pytest_evocode.errors import EnvironmentUnavailable, UsageError
from pytest_evocode.plugin.cluster.node import NodeFacts

DISK = "disk"
"""What the bytes of disk are called that the attempts of a node may have, all together, beside Ray's own resources."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What an attempt needs of a node."""

    cpus: float = 1.0
    memory: int = 0
    """Bytes."""
    storage: int = 0
    """Bytes of disk."""
    custom: tuple[tuple[str, float], ...] = ()
    """Amounts of the cluster's own resources, by name."""
    places: tuple[str, ...] = ()
    """Images and states that it goes to if there is room where they are, the most wanted first."""

    amounts: tuple[tuple[str, float], ...] = field(init=False, compare=False)
    """What it takes of a node of each resource, by name; not computed anew, because each decision asks all nodes."""

    def __post_init__(self) -> None:
        own = (("CPU", self.cpus), ("memory", self.memory), (DISK, self.storage))
        object.__setattr__(self, "amounts", (*own, *self.custom))


_FIRST = 4
"""Attempts at once before anything was seen."""
_SETTLED = 5.0
"""Seconds after which the memory of the attempts that began last counts as seen."""
_KEPT_FREE = 0.15
"""Of a node's memory, what no attempt is begun for."""
_DANGER = 0.05
"""Of a node's memory, what is left when an attempt has to go: soon the kernel would choose one."""


@dataclass(slots=True)
class RampUp:
    """Lets the number of a node's attempts grow as long as there is memory, and says when there are too many.

    The number may double every few seconds. Where less is left than the next attempt is expected to use, no attempt
    begins; where hardly anything is left, the youngest one is to stop and to go on later.
    """

    clock: Callable[[], float] = time.monotonic
    _limit: int = _FIRST
    _seen_at: float = field(default=float("-inf"))
    _began_since: int = 0
    """Attempts that began since the memory was last looked at with all others settled."""
    _left: int = 0
    _total: int = 0
    _others: int = -1
    """Bytes that were in use before there were attempts; -1 before anything was seen."""
    _share: float = 0.0
    """Bytes that an attempt was seen to use."""

    def allows(self, running: int) -> bool:
        """Return whether one more attempt may begin beside those that run."""
        if running >= self._limit:
            return False
        if not self._total:
            return True
        expected = self._share * (self._began_since + 1)
        return self._left - expected >= _KEPT_FREE * self._total

    def began(self) -> None:
        """Note that an attempt has begun."""
        self._began_since += 1

    def see(self, left: int, total: int, running: int) -> bool:
        """Take how many bytes of memory are left, and return whether the youngest attempt is to stop."""
        now = self.clock()
        used = total - left
        if self._others < 0 or not running:
            self._others = used
        self._left, self._total = left, total
        if left < _DANGER * total and running > 1:
            self._limit, self._seen_at = running - 1, now
            return True
        if now - self._seen_at >= _SETTLED:
            self._seen_at, self._began_since = now, 0
            if running:
                self._share = max((used - self._others) / running, self._share / 2)
            if left >= _KEPT_FREE * total:
                self._limit = max(self._limit, 2 * min(running, self._limit))
        return False


@dataclass(slots=True)
class ClusterNode:
    """A node, what it has in all, and what attempts have of it."""

    id: str
    name: str
    total: Mapping[str, float]
    """Its resources as Ray has them, memory in bytes, and :data:`DISK`."""
    has: set[str] = field(default_factory=set)
    """The images and states that are there."""
    ramp: RampUp = field(default_factory=RampUp)
    running: dict[str, Needs] = field(default_factory=dict)
    """What runs there, in the order in which it began."""
    used: dict[str, float] = field(default_factory=dict)

    def could_take(self, needs: Needs) -> bool:
        """Return whether it has what an attempt needs, if nothing else runs there.

        One that declares more CPUs or memory than any node has gets a node of its own, as on one machine.
        """
        return all(self.total.get(name, 0.0) >= amount for name, amount in needs.custom)

    def can_take(self, needs: Needs) -> bool:
        """Return whether an attempt can begin there now."""
        if not self.running:
            return self.could_take(needs)
        for name, amount in needs.amounts:
            if self.used.get(name, 0.0) + amount > self.total.get(name, 0.0) + 1e-6:
                return False
        return self.ramp.allows(len(self.running))

    def take(self, attempt: str, needs: Needs) -> None:
        """Count an attempt as running there."""
        self.running[attempt] = needs
        self._count(needs, 1)
        self.ramp.began()
        self.has.update(needs.places)

    def give_back(self, attempt: str) -> None:
        """Count an attempt as ended, if it ran there."""
        needs = self.running.pop(attempt, None)
        if needs is not None:
            self._count(needs, -1)

    def _count(self, needs: Needs, sign: int) -> None:
        for name, amount in needs.amounts:
            self.used[name] = self.used.get(name, 0.0) + sign * amount


class Placement:
    """The attempts that wait, the nodes, and what runs where.

    Attempts begin in the order of their priority. One for which there is no room does not keep back those behind it
    that need something else. Attempts with the same needs wait in one line, so that to find the next one takes time by
    the number of nodes and of different needs, and not by the number of attempts.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, ClusterNode] = {}
        self._lines: dict[Needs, list[tuple[float, int, str]]] = {}
        self._order = itertools.count()
        self._shunned: dict[str, set[str]] = {}
        self._places: dict[str, str] = {}
        self._suitable: dict[Needs, list[ClusterNode]] = {}
        """By needs, the nodes to choose from; a decision would take ten times as long if it found them each time."""

    # Nodes.

    def set_nodes(self, nodes: Iterable[ClusterNode]) -> None:
        """Take the nodes that there are now."""
        self.nodes = {node.id: self.nodes.get(node.id, node) for node in nodes}
        self._suitable.clear()

    def node_of(self, attempt: str) -> ClusterNode | None:
        """Return where an attempt runs or ran last; None where that node has gone."""
        return self.nodes.get(self._places.get(attempt, ""))

    # Attempts.

    def add(self, attempt: str, needs: Needs, priority: float) -> None:
        """Let an attempt wait; those with a higher priority begin first."""
        heapq.heappush(self._lines.setdefault(needs, []), (-priority, next(self._order), attempt))

    def shun(self, attempt: str, node: str) -> None:
        """Have an attempt not begin on a node again, as long as there is another one that could take it."""
        self._shunned.setdefault(attempt, set()).add(node)

    def next(self) -> tuple[str, ClusterNode] | None:
        """Return the attempt that is to begin now and its node; None as long as there is no room."""
        for needs in sorted(self._lines, key=lambda needs: self._lines[needs][0]):
            line = self._lines[needs]
            attempt = line[0][2]
            node = self._best(needs, self._shunned.get(attempt, set()))
            if node is not None:
                heapq.heappop(line)
                if not line:
                    del self._lines[needs]
                node.take(attempt, needs)
                self._places[attempt] = node.id
                return attempt, node
        return None

    def ended(self, attempt: str) -> None:
        """Note that an attempt does not run any more."""
        if (node := self.node_of(attempt)) is not None:
            node.give_back(attempt)

    def forget(self, attempt: str) -> None:
        """Keep nothing more of an attempt that does not run and will not run again."""
        self._places.pop(attempt, None)
        self._shunned.pop(attempt, None)

    def impossible(self) -> dict[str, Needs]:
        """Take out the attempts that no node has the resources for, and return what they need."""
        found: dict[str, Needs] = {}
        for needs in list(self._lines):
            if not any(node.could_take(needs) for node in self.nodes.values()):
                found |= {attempt: needs for _, _, attempt in self._lines.pop(needs)}
        return found

    def _best(self, needs: Needs, shunned: set[str]) -> ClusterNode | None:
        """Return the node with the most wanted of what is kept somewhere, and of these the one with most room."""
        suitable = self._suitable_for(needs)
        nodes = [node for node in suitable if node.id not in shunned] or suitable
        return max((node for node in nodes if node.can_take(needs)), key=_wish(needs), default=None)

    def _suitable_for(self, needs: Needs) -> list[ClusterNode]:
        """Return the nodes that have the named resources, and of these those with a large enough disk, if any."""
        if needs not in self._suitable:
            able = [node for node in self.nodes.values() if node.could_take(needs)]
            self._suitable[needs] = [node for node in able if node.total.get(DISK, 0.0) >= needs.storage] or able
        return self._suitable[needs]


def _wish(needs: Needs) -> Callable[[ClusterNode], tuple[list[bool], float]]:
    def wish(node: ClusterNode) -> tuple[list[bool], float]:
        used = node.used.get("CPU", 0.0) / max(node.total.get("CPU", 0.0), 1e-6)
        return [place in node.has for place in needs.places], 1.0 - used

    return wish


def choose_for_all(wanted: str, found: Mapping[str, NodeFacts]) -> tuple[str, str]:
    """Return the engine for all attempts, which are to be alike, and a line on which nodes have it.

    Args:
        wanted: As in ``--evocode-env``.
        found: What there is on nodes, by their names.

    Raises:
        EnvironmentUnavailable: No node has it.
    """
    engines = {facts.engine for facts in found.values()}
    engine = next((name for name in ENGINES if name in engines), "")
    if not engine:
        reasons = "\n".join(f"  - {name}: {facts.description}" for name, facts in found.items())
        reasons = reasons or "  - no node answered"
        raise EnvironmentUnavailable(f"no node of the cluster can run attempts in --evocode-env={wanted}:\n{reasons}")
    having = [name for name, facts in found.items() if facts.engine == engine]
    first = found[having[0]].description
    if len(having) == len(found):
        return engine, f"{engine} on all {len(found)} nodes; {first}" if len(found) > 1 else f"{engine}; {first}"
    others = ", ".join(name for name in found if name not in having)
    return engine, f"{engine} on {len(having)} of {len(found)} nodes; {first}; no attempts on {others}"


def refuse_other_versions(ours: Mapping[str, str], found: Mapping[str, Mapping[str, str]]) -> None:
    """Raise UsageError where a node has another version of something that has to be the same, with both named."""
    for node, theirs in found.items():
        if difference := other_version(ours, theirs):
            raise UsageError(f"the node {node}: {difference}; install the same on all nodes")


def other_version(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return what has to be the same on a node and is not, with both versions; empty where all is the same."""
    for name, version in ours.items():
        if theirs.get(name) != version:
            has = f"has {name} {theirs[name]}" if name in theirs else f"does not have {name}"
            return f"it {has}, and this session has {version}"
    return ""


def versions_of(nodes: Iterable[NodeFacts]) -> dict[str, str]:
    """Return the versions of what an engine is made of on nodes, by name; all there are, where they differ."""
    found: dict[str, dict[str, None]] = {}
    for facts in nodes:
        for name, version in facts.versions.items():
            found.setdefault(name, {})[version] = None
    return {name: ", ".join(versions) for name, versions in found.items()}
