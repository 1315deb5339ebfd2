"""YAML files of foreign tasks: values with their lines, and mistakes as messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.foreign.source import Source, YamlTable, read_yaml


def read(text: str | bytes) -> YamlTable:
    Path("a.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(Source(Path()), "a.yaml", "it is needed")


def refused(text: str | bytes) -> str:
    with pytest.raises(TaskError) as error:
        read(text)
    return str(error.value)


def test_every_value_knows_its_line() -> None:
    table = read("# one\na: 1\nb:\n  c: {d: x,\n    e: y}\n  f:\n    - g\n    - h\n")
    inner = table.table("b").table("c")
    assert [table.line("a"), table.line("b"), inner.line("d"), inner.line("e")] == [2, 3, 4, 5]
    assert table.table("b").line("f", 1) == 8
    assert (inner.text("d"), table.number("a"), table.table("b").texts("f")) == ("x", 1, ["g", "h"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n\tb: 2\n", "a.yaml:2: not valid YAML: "),
        ("a: [1, 2\n", "a.yaml:2: not valid YAML: "),
        ("a: 1\nb: 2\na: 3\n", "a.yaml:3: a is given twice; remove one of them"),
        ("a: !!python/name:os.system ''\n", "a.yaml:1: not valid YAML: could not determine"),
        ("a: !own 1\n", "a.yaml:1: not valid YAML: "),
        ("a: 2026-02-31\n", "a.yaml: not valid YAML: day is out of range"),
        ("? [a, b]\n: 1\n", "a.yaml:1: keys must be plain words here"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "a.yaml:3: keys must be plain words here"),
        ("", "a.yaml:1: must be a mapping"),
        ("just words\n", "a.yaml:1: must be a mapping"),
        ("--- {a: 1}\n--- {b: 1}\n", "a.yaml:2: not valid YAML: "),
        (b"a: \xff\n", "a.yaml:1: not UTF-8 (byte 0xff); save it as UTF-8"),
        ("a: " + "[" * 5000, "a.yaml: not valid YAML: nested too deeply"),
        ("a: x\n" * 300_000, "a.yaml: is larger than 1 MiB"),
    ],
)
def test_what_is_no_yaml_is_one_message(text: str | bytes, message: str) -> None:
    assert refused(text).startswith(message)


def test_aliases_cannot_stand_for_millions_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "has more than 20000 values" in refused("\n".join(lines))


def test_a_list_in_itself_is_refused() -> None:
    assert "has more than 20000 values" in refused("a: &a [*a]\n") or "nested" in refused("a: &a [*a]\n")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.text("n"), "a.yaml:1: n: must be text"),
        (lambda table: table.texts("t"), "a.yaml:2: t: must be a list of texts"),
        (lambda table: table.number("t"), "a.yaml:2: t: must be a positive number"),
        (lambda table: table.flag("t", True), "a.yaml:2: t: must be true or false"),
        (lambda table: table.table("t"), "a.yaml:2: t: must be a mapping"),
        (lambda table: table.table("m").text("x"), "a.yaml:3: m.x: is missing; add it"),
    ],
)
def test_values_of_another_kind_are_refused(call: Any, message: str) -> None:
    with pytest.raises(TaskError) as error:
        call(read("n: [1]\nt: word\nm: {y: 1}\n"))
    assert str(error.value) == message
