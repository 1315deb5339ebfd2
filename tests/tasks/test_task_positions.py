"""A key path leads to the line where the key is written."""

from __future__ import annotations

import pytest
import tomli

from pytest_evocode.tasks.config_text import Keys, find_line

TEXT = r'''# a comment with [brackets] and "quotes
title = "a = 1 # not a comment"
dotted.key."quoted.part" = 1

[agent]   # trailing
timeout_sec = 10
text = """
[not.a.table]
also_not = \" "" a key"""
raw = ~~~
[neither]~~~

[environment]
env = { A = "1", B = "}" }
hosts = [
    "a",  # first ]
    ["b", "]"],
    { name = "c", port = 1 },
]
[environment.healthcheck]
retries = 3

[[steps]]
name = "one"

[[steps]]
name = "two"
[steps.agent]
user = 'dev'
[[steps.verifier.collect]]
command = "x"
[[steps.verifier.collect]]
command = "y"

[["steps"]]
'name' = "three"
verifier.timeout_sec = 5
'''.replace("~", "'")
LINES = TEXT.splitlines()


def where(start: str, nth: int = 1) -> int:
    return [number for number, line in enumerate(LINES, 1) if line.strip().startswith(start)][nth - 1]


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ((), 1),
        (("title",), where("title")),
        (("dotted", "key", "quoted.part"), where("dotted")),
        (("dotted", "key"), where("dotted")),
        (("agent",), where("[agent]")),
        (("agent", "timeout_sec"), where("timeout_sec")),
        (("agent", "raw"), where("raw")),
        (("environment",), where("[environment]")),
        (("environment", "env", "B"), where("env")),
        (("environment", "hosts", 0), where('"a"')),
        (("environment", "hosts", 1, 1), where('["b"')),
        (("environment", "hosts", 2, "port"), where("{ name")),
        (("environment", "healthcheck", "retries"), where("retries")),
        (("steps",), where("[[steps]]")),
        (("steps", 0), where("[[steps]]")),
        (("steps", 1), where("[[steps]]", 2)),
        (("steps", 1, "name"), where('name = "two"')),
        (("steps", 2, "verifier", "timeout_sec"), where("verifier.timeout_sec")),
        (("steps", 1, "agent", "user"), where("user")),
        (("steps", 1, "verifier", "collect", 1, "command"), where('command = "y"')),
        (("steps", 2, "name"), where("'name'")),
    ],
)
def test_every_way_to_write_a_key_is_found(keys: Keys, line: int) -> None:
    assert find_line(TEXT, keys) == line


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("nothing",), 1),
        (("agent", "also_not"), where("[agent]")),
        (("neither", "x"), 1),
        (("steps", 0, "agent", "user"), where("[[steps]]")),
        (("steps", 2, "agent"), where('[["steps"]]')),
        (("environment", "hosts", 7), where("hosts")),
    ],
)
def test_a_key_that_is_not_written_leads_to_its_table(keys: Keys, line: int) -> None:
    assert find_line(TEXT, keys) == line


def test_the_text_of_these_tests_is_toml() -> None:
    assert len(tomli.loads(TEXT)["steps"]) == 3


def test_windows_line_ends_count_once() -> None:
    assert find_line("[agent]\r\n\r\nuser = 1\r\n", ("agent", "user")) == 3


@pytest.mark.parametrize("text", ["", "[", "a = ", "= 1", '"', "[[a]", "a = [", "a = {b", "\\"])
def test_broken_text_leads_to_the_first_line(text: str) -> None:
    assert find_line(text, ("steps", 0)) == 1
