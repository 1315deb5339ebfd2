"""An entry is added to an array of tables however it is written, and nothing else changes."""

from __future__ import annotations

import difflib

import pytest
import tomli

from pytest_evocode.tasks.config_text import append_table

STEP = {"name": "new"}


def added(text: str) -> list[str]:
    """The lines that adding a step adds; no line may be changed or removed."""
    changes = [*difflib.ndiff(text.splitlines(True), append_table(text, ["steps"], STEP).splitlines(True))]
    assert not any(line.startswith("- ") for line in changes)
    return [line[2:] for line in changes if line.startswith("+ ")]


@pytest.mark.parametrize(
    "after",
    [
        "",
        "\n# The end.\n",
        '\n[metadata]\nx = "[[steps]]"\n',
        "# of metadata\n[metadata]\n",
        "\n\n# later\n\n[agent]\n",
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        "[[steps]]\nname = 'a'\n",
        "# first\n[[steps]] # a step\n  name = 'a' # its name\n  min_reward = 0.5\n",
        "[[steps]]\nname = 'a'\n\n[steps.agent]\ntimeout_sec = 5\n[steps.verifier.env]\nA = '''\n[[steps]]'''\n",
        "[[steps]]\nname = 'a'\n[other]\n[[steps]]\nname = 'b'\n# steps may have more\n\n",
        "[[steps]]\nname = 'a'\nartifacts = [\n  '/x', # one\n]\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_table_is_added_behind_the_last_one(before: str, after: str, newline: str) -> None:
    text = (before + after).replace("\n", newline)
    assert sorted(added(text)) == sorted([newline, f"[[steps]]{newline}", f'name = "new"{newline}'])


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("steps = [{name = 'a'}]\n", "steps = [{name = 'a'}, { name = \"new\" }]\n"),
        ("steps = [ {name = 'a'}, ] # all\n", "steps = [ {name = 'a'}, { name = \"new\" }, ] # all\n"),
        (
            "steps = [\n  {name = 'a'}, # one\n  {name = 'b'}, # two\n] # all\n",
            "steps = [\n  {name = 'a'}, # one\n  {name = 'b'}, # two\n  { name = \"new\" },\n] # all\n",
        ),
        (
            "steps = [\n\t{name = 'a'} # one\n\t# more to come\n]\n",
            "steps = [\n\t{name = 'a'}, # one\n\t{ name = \"new\" }\n\t# more to come\n]\n",
        ),
        (
            "steps = [\r\n  {name = 'a'}\r\n, {name = 'b'}]\r\n",
            "steps = [\r\n  {name = 'a'}\r\n, {name = 'b'}, { name = \"new\" }]\r\n",
        ),
    ],
)
def test_an_array_that_is_written_inline_stays_so(text: str, new: str) -> None:
    assert append_table(text, ["steps"], STEP) == new


def test_the_array_may_lie_below_tables_and_values_may_be_lists() -> None:
    text = "[metadata.requirement_chain]\nsteps = [{ step = 'a' }]\n"
    new = append_table(text, ["metadata", "requirement_chain", "steps"], {"step": "b", "change_types": ["extension"]})
    steps = tomli.loads(new)["metadata"]["requirement_chain"]["steps"]
    assert steps == [{"step": "a"}, {"step": "b", "change_types": ["extension"]}]


def test_a_file_without_an_end_of_line_gets_one() -> None:
    assert (
        append_table("[[steps]]\nname = 'a'", ["steps"], STEP) == "[[steps]]\nname = 'a'\n\n[[steps]]\nname = \"new\"\n"
    )


def test_what_it_does_not_understand_it_leaves_alone() -> None:
    with pytest.raises(ValueError, match="no entry can be added to"):
        append_table("steps = []\n", ["steps"], STEP)
