"""What nodes say of themselves, and which may make attempts."""

from __future__ import annotations

import pytest

from pytest_evocode.errors import EnvironmentUnavailable, UsageError
from pytest_evocode.plugin.cluster.node import NodeFacts, read_memory
from pytest_evocode.plugin.cluster.placement import choose_for_all, refuse_other_versions

pytestmark = pytest.mark.every_python


def facts(engine: str, description: str = "what it is") -> NodeFacts:
    return NodeFacts(engine, description, frozenset(), (1, 2))


def test_docker_is_taken_where_a_node_has_it_and_the_others_make_no_attempts() -> None:
    engine, line = choose_for_all("auto", {"a": facts("sandbox"), "b": facts("docker", "Docker 28")})
    assert engine == "docker"
    assert line == "docker on 1 of 2 nodes; Docker 28; no attempts on a"


def test_without_any_engine_the_reasons_of_all_nodes_are_told() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"--evocode-env=docker:\n  - a: no daemon\n  - b: no rights"):
        choose_for_all("docker", {"a": facts("", "no daemon"), "b": facts("", "no rights")})


def test_another_version_is_refused_with_both_named() -> None:
    ours = {"pytest-evocode": "1.2", "Python": "3.11.7"}
    refuse_other_versions(ours, {"a": ours})
    with pytest.raises(UsageError, match=r"the node b: it has Python 3\.12\.1, and this session has 3\.11\.7"):
        refuse_other_versions(ours, {"a": ours, "b": {**ours, "Python": "3.12.1"}})
    with pytest.raises(UsageError, match=r"the node c: it does not have pytest-evocode, and this session has 1\.2"):
        refuse_other_versions(ours, {"c": {"Python": "3.11.7"}})


def test_memory_is_read() -> None:
    left, total = read_memory()
    assert 0 < left < total
