"""``evocode agents``: what it tells of each agent."""

from __future__ import annotations

from pytest_evocode.agents.tried import agent_kinds
from tests.cli.conftest import Evocode


def test_it_prints_a_line_for_each_agent_and_how_far_a_program_was_tried(evocode: Evocode) -> None:
    lines = evocode("agents").out.splitlines()
    told = {line.partition("  ")[0]: line for line in lines[1:] if not line.startswith(" ")}
    assert list(told) == [kind.agent or kind.program for kind in agent_kinds()]
    for kind in agent_kinds():
        line = told[kind.agent or kind.program]
        assert all(each in line for each in (kind.driven, kind.api, kind.tried))
    assert "three rounds" in told["codex:MODEL"]
    assert "not tried" in told["cursor"]


def test_links_in_notes_are_written_out(evocode: Evocode) -> None:
    printed = evocode("agents").out
    assert "](" not in printed
    assert "https://github.com/google-gemini/gemini-cli/issues/29365" in printed
