"""Nodes that join a cluster while attempts run there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import pytest

from pytest_evocode.plugin.cluster import driver
from pytest_evocode.plugin.cluster.driver import ClusterRun
from pytest_evocode.plugin.cluster.node import NodeFacts, versions
from pytest_evocode.plugin.cluster.placement import ClusterNode, Needs
from pytest_evocode.plugin.session import EvocodeSession
from tests.waiting import wait_until

pytestmark = pytest.mark.every_python


class Ray:
    """Stands in for Ray, which takes seconds to start: one node, and another that joins and is slow to answer."""

    def __init__(self, address: str) -> None:
        self.there = ["first"]
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.version = {"pytest-evocode": "99.9"}
        self.taken = 0

    def nodes(self) -> list[ClusterNode]:
        return [ClusterNode(name, name, {"CPU": 1.0}) for name in self.there]

    def ask_versions(self, nodes: Sequence[ClusterNode]) -> dict[str, dict[str, str]]:
        if "late" in self.there:
            self.asked.set()
            self.may_answer.wait(60)
        return {node.name: versions() | (self.version if node.name == "late" else {}) for node in nodes}

    def look_at(self, nodes: Sequence[ClusterNode], environment: str) -> list[tuple[ClusterNode, NodeFacts]]:
        return [(node, NodeFacts("sandbox", "", frozenset(), (1, 2))) for node in nodes]

    def begin(self, spent: float) -> None: ...

    def ended(self, references: Sequence[object]) -> list[object]:
        return []

    def take(self, seconds: float) -> list[object]:
        self.taken += 1
        time.sleep(0.01)
        return []

    def stop_all(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ray]:
    made = Ray("")
    monkeypatch.setattr(driver, "RayCluster", lambda address: made)
    monkeypatch.setattr(driver, "_LOOK", 0.0)
    yield made
    made.may_answer.set()


@pytest.fixture
def run(ray: Ray, pytester: pytest.Pytester) -> Iterator[ClusterRun]:
    made = ClusterRun(EvocodeSession(pytester.parseconfig("--evocode-agent=oracle")), "")
    yield made
    made.stop()
    made.close()


def test_messages_are_taken_while_a_node_that_joined_does_not_answer(run: ClusterRun, ray: Ray) -> None:
    """Attempts stop where nobody takes their messages for half a minute."""
    run.begin([])
    ray.there.append("late")
    assert ray.asked.wait(30)
    taken = ray.taken
    wait_until(lambda: ray.taken > taken + 3)
    assert run.notes.empty()
    ray.may_answer.set()
    assert run.notes.get(timeout=30).startswith("the node late gets no attempts: it has pytest-evocode 99.9")
    taken = ray.taken
    wait_until(lambda: ray.taken > taken + 3)
    assert run.notes.empty()  # It is told once.


def test_no_attempt_is_given_up_before_all_nodes_have_said_what_they_have(
    run: ClusterRun, ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = SimpleNamespace(has_ended=False, end=lambda: None)
    unit = SimpleNamespace(name="x", attempt="x", alone=None, needs=Needs(), priority=1.0, trial=trial)
    monkeypatch.setattr(driver, "units_of", lambda session, items: [unit])
    monkeypatch.setattr(driver, "AttemptFiles", lambda unit: None)
    monkeypatch.setattr(driver, "give_up", lambda unit, why: [])
    ray.there = ["late"]
    run.begin([])
    taken = ray.taken
    wait_until(lambda: ray.taken > taken + 3)
    assert run.changed.empty()
    ray.may_answer.set()
    assert run.changed.get(timeout=30).name == "x"
