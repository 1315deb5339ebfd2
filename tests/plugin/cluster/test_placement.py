"""Which attempt of a cluster's begins next, and where."""

from __future__ import annotations

import pytest

from pytest_evocode.plugin.cluster.placement import DISK, ClusterNode, Needs, Placement, RampUp

pytestmark = pytest.mark.every_python

GIB = 2**30


def placement(*nodes: ClusterNode) -> Placement:
    made = Placement()
    made.set_nodes(nodes)
    return made


def node(name: str, cpus: float = 2, memory: int = 8 * GIB, **more: float) -> ClusterNode:
    return ClusterNode(name, name, {"CPU": cpus, "memory": memory, **more})


def begun(of: Placement) -> dict[str, str]:
    """Begin all that can be, and say which attempt is where."""
    found = {}
    while (next_one := of.next()) is not None:
        found[next_one[0]] = next_one[1].id
    return found


def test_the_longest_attempts_begin_first_and_the_others_when_there_is_room() -> None:
    cluster = placement(node("a", cpus=2))
    for name, seconds in (("short", 1.0), ("long", 30.0), ("middle", 10.0)):
        cluster.add(name, Needs(), seconds)
    assert begun(cluster) == {"long": "a", "middle": "a"}
    cluster.ended("long")
    assert begun(cluster) == {"short": "a"}


def test_attempts_are_spread_over_nodes() -> None:
    cluster = placement(node("a", cpus=4), node("b", cpus=4))
    for number in range(4):
        cluster.add(str(number), Needs(), 1.0)
    assert sorted(begun(cluster).values()) == ["a", "a", "b", "b"]


def test_a_task_goes_where_its_image_is_and_elsewhere_where_there_is_no_room() -> None:
    cluster = placement(node("a", cpus=4), node("b", cpus=1))
    cluster.nodes["b"].has.add("image:1")
    for number in range(2):
        cluster.add(str(number), Needs(places=("image:1",)), 1.0)
    assert begun(cluster) == {"0": "b", "1": "a"}
    assert "image:1" in cluster.nodes["a"].has


def test_the_state_of_an_attempt_is_wanted_more_than_its_image() -> None:
    cluster = placement(node("a"), node("b"))
    cluster.nodes["a"].has.add("image")
    cluster.nodes["b"].has.add("state")
    cluster.add("x", Needs(places=("state", "image")), 1.0)
    assert begun(cluster) == {"x": "b"}


def test_memory_and_resources_of_the_cluster_are_counted() -> None:
    cluster = placement(node("a", cpus=8, memory=4 * GIB, licence=1))
    cluster.add("big", Needs(memory=3 * GIB), 4.0)
    cluster.add("too much beside it", Needs(memory=2 * GIB), 3.0)
    cluster.add("licensed", Needs(custom=(("licence", 1.0),)), 2.0)
    cluster.add("licensed too", Needs(custom=(("licence", 1.0),)), 1.0)
    assert begun(cluster) == {"big": "a", "licensed": "a"}
    cluster.ended("licensed")
    assert begun(cluster) == {"licensed too": "a"}


def test_more_cpus_than_any_node_has_take_a_whole_node() -> None:
    cluster = placement(node("a", cpus=2))
    cluster.add("large", Needs(cpus=64), 2.0)
    cluster.add("small", Needs(), 1.0)
    assert begun(cluster) == {"large": "a"}


def test_an_attempt_that_no_node_has_the_resources_for_is_told() -> None:
    cluster = placement(node("a"))
    needs = Needs(custom=(("gpu", 1.0),))
    cluster.add("x", needs, 1.0)
    assert cluster.impossible() == {"x": needs}
    assert cluster.impossible() == {}
    assert begun(cluster) == {}


def test_a_lost_attempt_goes_elsewhere_as_long_as_there_is_another_node() -> None:
    cluster = placement(node("a"), node("b"))
    cluster.add("x", Needs(), 1.0)
    first = begun(cluster)["x"]
    cluster.ended("x")
    cluster.shun("x", first)
    cluster.add("x", Needs(), 1.0)
    other = begun(cluster)["x"]
    assert {first, other} == {"a", "b"}
    cluster.ended("x")
    cluster.set_nodes([node(first)])
    cluster.add("x", Needs(), 1.0)
    assert begun(cluster) == {"x": first}


def test_the_attempts_of_a_node_that_has_gone_are_nowhere() -> None:
    cluster = placement(node("a"), node("b"))
    for name in "xy":
        cluster.add(name, Needs(), 1.0)
    where = begun(cluster)
    cluster.set_nodes([node(where["y"])])
    assert cluster.node_of("x") is None
    assert cluster.node_of("y") is not None


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_number_of_attempts_doubles_as_long_as_there_is_memory() -> None:
    clock = Clock()
    ramp = RampUp(clock)
    ramp.see(15 * GIB, 16 * GIB, 0)
    running, steps = 0, []
    for _ in range(4):
        while ramp.allows(running):
            ramp.began()
            running += 1
        steps.append(running)
        clock.now += 10
        ramp.see(15 * GIB - running * GIB // 100, 16 * GIB, running)
    assert steps == [4, 8, 16, 32]


def test_no_attempt_begins_for_which_memory_is_not_expected_to_last() -> None:
    clock = Clock()
    ramp = RampUp(clock)
    ramp.see(15 * GIB, 16 * GIB, 0)
    clock.now += 10
    assert not ramp.see(7 * GIB, 16 * GIB, 2)  # Each uses 4 GiB.
    assert ramp.allows(2)
    ramp.began()
    assert not ramp.allows(3)  # Two more would leave nothing, though the first has not used its part yet.


def test_the_youngest_attempt_gives_way_before_memory_ends_and_the_last_one_never() -> None:
    ramp = RampUp(Clock())
    ramp.see(15 * GIB, 16 * GIB, 0)
    assert ramp.see(GIB // 2, 16 * GIB, 3)
    assert not ramp.allows(2)
    assert not ramp.see(GIB // 2, 16 * GIB, 1)


def disk(name: str, storage: int, cpus: float = 4) -> ClusterNode:
    return ClusterNode(name, name, {"CPU": cpus, "memory": 8 * GIB, DISK: storage})


def test_attempts_go_where_there_is_disk_for_them() -> None:
    cluster = placement(disk("small", 10 * GIB), disk("large", 50 * GIB, cpus=2))
    for number in range(3):
        cluster.add(str(number), Needs(storage=20 * GIB), 1.0)
    assert begun(cluster) == {"0": "large", "1": "large"}  # The third waits, though the small node is idle.
    cluster.add("little", Needs(storage=GIB), 1.0)
    assert begun(cluster) == {"little": "small"}
    cluster.ended("0")
    assert begun(cluster) == {"2": "large"}


def test_the_disk_of_a_node_is_shared_by_its_attempts() -> None:
    cluster = placement(disk("a", 50 * GIB))
    for number in range(3):
        cluster.add(str(number), Needs(storage=20 * GIB), 1.0)
    assert begun(cluster) == {"0": "a", "1": "a"}


def test_an_attempt_that_no_disk_is_large_enough_for_gets_a_node_for_itself() -> None:
    cluster = placement(disk("a", 10 * GIB))
    for number in range(2):
        cluster.add(str(number), Needs(storage=20 * GIB), 1.0)
    assert begun(cluster) == {"0": "a"}
    assert not cluster.impossible()
