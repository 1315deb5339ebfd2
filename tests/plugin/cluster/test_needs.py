"""What an attempt needs of a node because of its agent."""

from __future__ import annotations

import pytest

from pytest_evocode.plugin.cluster.units import custom_resources
from pytest_evocode.plugin.session import EvocodeSession

pytestmark = pytest.mark.every_python

AGENTS = ("--evocode-agent=oracle", "--evocode-agent=nop")


def resources(pytester: pytest.Pytester, *arguments: str) -> dict[str, tuple[tuple[str, float], ...]]:
    return custom_resources(EvocodeSession(pytester.parseconfig(*AGENTS, *arguments)))


def test_each_agent_gets_its_own_resources_and_other_agents_lines_are_left_out(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        """
        [pytest]
        evocode_cluster_resources =
            oracle: licence=1 gpu=0.5
            openai/gpt-5: licence=2
        """
    )
    assert resources(pytester) == {"oracle": (("licence", 1.0), ("gpu", 0.5))}


@pytest.mark.parametrize("line", ["oracle licence=1", "oracle:", "oracle: licence", "oracle: licence=0", "oracle: =1"])
def test_a_line_that_is_wrong_is_refused_with_where_it_is(line: str, pytester: pytest.Pytester) -> None:
    wrong = rf"evocode_cluster_resources: '{line}': write it as AGENT: NAME=AMOUNT"
    file = pytester.makeini(f"[pytest]\nevocode_cluster_resources = {line}\n")
    with pytest.raises(pytest.UsageError, match=rf"^{file}: {wrong}"):
        resources(pytester)
    with pytest.raises(pytest.UsageError, match=rf"^-o {wrong}"):
        resources(pytester, "-o", f"evocode_cluster_resources={line}")
