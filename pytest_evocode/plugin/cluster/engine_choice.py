"""Which engine the attempts of a cluster run in, and on which of its nodes that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_evocode.environments.choice import ENGINES
from pytest_evocode.errors import EnvironmentUnavailable, UsageError
from pytest_evocode.plugin.cluster.node import NodeFacts


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
