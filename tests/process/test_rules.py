"""The rules in TOML: their examples, and that each rule is read, is asked for, and is refused where it is wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.process import rules
from pytest_evocode.process.pillars.messages import (
    asks,
    assumes,
    claims,
    declines_in_passing,
    declines_what_was_asked,
    declining,
    waits,
)
from pytest_evocode.process.pillars.planning import plan_steps
from pytest_evocode.process.rules import COMMANDS, FAULTS, FILES, MESSAGES, OUTPUTS, PLANS, RuleFile
from pytest_evocode.process.trajectory.failure_causes import crashed, failure_cause
from pytest_evocode.process.trajectory.outputs import read_runner_output
from tests.process.trajectories import Recording, activity_of

EVERY = (COMMANDS, FAULTS, FILES, MESSAGES, OUTPUTS, PLANS, PATTERNS)
Example = Mapping[str, Any]


def cause(text: str, example: Example, *, has_run: bool) -> str:
    return failure_cause(
        text,
        exit_code=example.get("exit_code", 1),
        has_run=has_run,
        is_ours=lambda module: module == example.get("ours"),
        command=example.get("command", ""),
    )


def last_run(command: str, output: str, exit_code: int | None) -> str:
    recording = Recording()
    recording.bash(command, output, exit_code)
    runs = activity_of(recording).runs
    return f"{runs[-1].purpose} {ENDED[runs[-1].passed]}" if runs else "none"


def all_found(found: list[str], text: str) -> bool | str:
    """Return whether a text is found as a whole or not at all; what is found in all other cases."""
    return bool(found) if found in ([], [text.replace("**", "")]) else f"a part of it: {found}"


ENDED = {True: "passed", False: "failed", None: "unknown"}
#: What an example can ask of a text.
ASKED: Mapping[str, Callable[[str, Example], Any]] = {
    "declines": lambda text, _: all_found(declining(text), text),
    "declines in passing": lambda text, _: not declining(text) and all_found(declines_in_passing(text), text),
    "declines what was asked": lambda text, _: declines_what_was_asked(text),
    "waits": lambda text, _: waits(text),
    "claims work": lambda text, _: all_found(claims(text), text),
    "assumes": lambda text, _: assumes(text),
    "asks": lambda text, _: asks(text, {"export", "invoice"}),
    "steps": lambda text, _: len(plan_steps(text)),
    "steps that change something": lambda text, _: len([step for step in plan_steps(text) if not step.looks]),
    "purpose": lambda text, _: last_run(text, "done", 0).partition(" ")[0],
    "outcome of tests": lambda text, _: ENDED[read_runner_output(text).passed],
    "outcome of a command": lambda text, example: last_run(example["command"], text, example["exit_code"]),
    "cause": lambda text, example: cause(text, example, has_run=False),
    "cause of failed tests": lambda text, example: cause(text, example, has_run=True),
    "crashed": lambda text, example: crashed(text, example["exit_code"]),
}


EXAMPLES = [
    pytest.param(text, example, id=f"{each.path.name} {example['ask']} {number}")
    for each in EVERY
    for number, example in enumerate(each.content.get("example", ()), 1)
    for text in example["of"]
]


@pytest.mark.parametrize(("text", "example"), EXAMPLES)
def test_the_rules_answer_as_their_examples_say(text: str, example: Example) -> None:
    assert ASKED[example["ask"]](text, example) == example["answer"]


def expressions(rules: RuleFile) -> Iterator[tuple[str, Mapping[str, Any], re.Pattern[str]]]:
    """Yield the regular expressions of a file with their names and tables."""
    for name, rule in rules.content.items():
        if name != "example":
            if isinstance(rule, list):
                yield from ((name, each, found) for each, found in zip(rule, rules.series[name], strict=True))
            elif "any" in rule:
                yield name, rule, rules[name]


@pytest.mark.parametrize("each", EVERY, ids=lambda each: each.path.name)
def test_expressions_find_what_their_examples_say_and_miss_what_they_say(each: RuleFile) -> None:
    found = list(expressions(each))
    assert found
    for name, rule, expression in found:
        assert not [text for text in rule.get("finds", ()) if not expression.search(text)], name
        assert not [text for text in rule.get("misses", ()) if expression.search(text)], name


def asked_for(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the file and the rule of ``FAULTS["a"]``, of ``FAULTS.words["a"]`` and of ``FAULTS.find(text, "a")``."""
    if isinstance(node, ast.Subscript):
        file, names = ast.unparse(node.value).partition(".")[0], [node.slice]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".find"):
        file, names = ast.unparse(node.func).removesuffix(".find"), node.args[1:]
    else:
        return
    yield from ((file, name.value) for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str))


def test_every_rule_is_asked_for_and_every_rule_that_is_asked_for_is_there() -> None:
    packages = (Path(rules.__file__).parents[1], PATTERNS.path.parent)
    texts = [path.read_text(encoding="utf-8") for package in packages for path in package.rglob("*.py")]
    asked = {each for text in texts for node in ast.walk(ast.parse(text)) for each in asked_for(node)}
    for each in EVERY:
        file, within = each.path.stem.upper(), each.path.read_text(encoding="utf-8")
        there = {name for name in each.content if name != "example"}
        assert {name for of, name in asked if of == file} <= there
        # Some are given to other functions by their names, or are parts of others.
        assert not [
            name
            for name in there - {name for of, name in asked if of == file}
            if f"{{{name}}}" not in within and not any(f'"{name}"' in text for text in texts)
        ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\nany = ['x']\n]", "not valid TOML"),
        ("[a]\nwords = 'x'\nany = ['x']", "a: a rule has one of any, words, table"),
        ("[a]\nform = 'x'", "a: a rule has one of any, words, table"),
        ("[a]\nany = ['x']\nfalgs = 'i'", "this one has any, falgs"),
        ("[a]\nany = ['(x']", "a: no regular expression"),
        ("[a]\nany = ['x']\nflags = 'q'", "a: no regular expression, or unknown flags: 'q'"),
        ("[a]\nany = ['{b}']", "there is no rule 'b'"),
        ("[b]\nany = ['x']", "there is no rule 'a'"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_path_and_rule(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")) as refused:
        RuleFile(path)["a"]
    assert says in str(refused.value)


def test_an_expression_has_a_form_flags_alternatives_and_other_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        "[a]\nflags = 'im'\nform = '^(?:{any})$'\nany = ['x', { form = '{any}!', any = ['{b}'] }]\n[b]\nany = ['y+']"
    )
    assert RuleFile(path)["a"].pattern == "^(?:x|y+!)$"
    assert RuleFile(path).find("z\nYY!", "a")


def test_nothing_is_read_before_a_rule_is_asked_for(tmp_path: Path) -> None:
    missing = RuleFile(tmp_path / "rules.toml")
    with pytest.raises(FileNotFoundError):
        missing.words["a"]
