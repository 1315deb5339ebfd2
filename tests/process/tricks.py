"""Tricks that look like discipline, played into recorded attempts: each adds steps to the rounds and mends nothing."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.process.pillars.messages import specific_words
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.diffs import apply_diff, unified_diff

Step = dict[str, Any]
#: By task, a line that imports something of the product, a call of it, and a file that nobody else changes.
REACH = {
    "recipes": ("from recipes.text import show_amount", "show_amount(3)", "recipes/__init__.py"),
    "invoices": ("from invoices.chart import label", "label(3)", "invoices/__init__.py"),
    "retention": ("from prune import parse_backup", 'parse_backup("a")', "tests/__init__.py"),
    "transfers": ("from wallet.api import Api", 'Api().answer("{}")', "wallet/__init__.py"),
    "stations": ("from stations.readings import parse", 'parse("oslo 2024-03-01T06:00 1.0 4")', "stations/__init__.py"),
}
TOKENS = {"prompt_tokens": 900, "completion_tokens": 100}


class PlayedRound:
    """One round of a recorded attempt, with places for more steps."""

    def __init__(
        self, trajectory: dict[str, Any], task: Task, index: int, texts: dict[str, str], project: dict[str, str]
    ) -> None:
        self.trajectory = trajectory
        self.task = task
        self.index = index
        self._texts = texts
        """What the trick wrote, over all rounds."""
        self.before = dict(project)
        """The texts of the project at the start of the round, as they were recorded."""
        for change in self.changes:
            _apply(project, change)
        self.project = dict(project)
        """The same at its end."""

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of files that were recorded, in order."""
        return [change for action in self.actions for change in action.get("changes", ())]

    @property
    def actions(self) -> list[dict[str, Any]]:
        """What was recorded of the calls."""
        return [
            action
            for step in self.trajectory["steps"]
            for action in step.get("extra", {}).get("evocode", {}).get("actions", ())
        ]

    @property
    def brought(self) -> list[dict[str, Any]]:
        """All that the round changes, as one call would."""
        paths = [path for path in {**self.before, **self.project} if path.endswith((".py", ".md"))]
        return [
            change_of(path, self.before.get(path), self.project.get(path))
            for path in paths
            if self.before.get(path) != self.project.get(path)
        ]

    @property
    def changed_source(self) -> dict[str, str]:
        """The Python files of the product that the round has changed, as they are at its end."""
        paths = dict.fromkeys(change["path"] for change in self.changes if is_source(change["path"]))
        return {path: self.project[path] for path in paths if path in self.project}

    @property
    def request(self) -> str:
        """What the user asks for."""
        return str(self.trajectory["steps"][0]["message"])

    def edit(self, path: str, text: str) -> Step:
        """Return a step that writes a file."""
        change = change_of(path, self._texts.get(path), text)
        self._texts[path] = text
        return self.shell(f"cat > {path} <<'EOF'\n{text}EOF", changes=[change])

    def shell(self, command: str, output: str = "", **action: Any) -> Step:
        """Return a step with one shell line."""
        call = {"tool_call_id": "trick", "function_name": "bash", "arguments": {"command": command}}
        return {
            "source": "agent",
            "message": "",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "trick", "content": output}]},
            "extra": {"evocode": {"actions": [{"tool_call_id": "trick", "exit_code": 0, "seconds": 0.1, **action}]}},
        }

    def text(self, path: str) -> str:
        """Return the text of a file of the task that only the trick changes."""
        original = self.task.environment_directory / "project" / path
        return self._texts.setdefault(path, original.read_text(encoding="utf-8"))

    def begin(self, *steps: Step) -> None:
        """Put steps before all others."""
        self.trajectory["steps"][1:1] = steps

    def end(self, *steps: Step) -> None:
        """Put steps before the final message."""
        self.trajectory["steps"][-1:-1] = steps

    def after_failures(self, make: Callable[[int], Step]) -> None:
        """Put a step after each one in which a command failed."""
        found: list[Step] = []
        for number, step in enumerate(self.trajectory["steps"]):
            found.append(step)
            actions = step.get("extra", {}).get("evocode", {}).get("actions", ())
            if any(action["exit_code"] for action in actions):
                found.append(make(number))
        self.trajectory["steps"] = found


Trick = Callable[[PlayedRound], None]


def change_of(path: str, before: str | None, text: str | None) -> dict[str, Any]:
    """Return the change of a file as it is recorded; None stands for no file."""
    kind = "deleted" if text is None else "added" if before is None else "modified"
    digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
    return {"path": path, "kind": kind, "mode": "0644", "diff": unified_diff(path, before, text), "sha256": digest}


def is_source(path: str) -> bool:
    """Return whether a path is that of Python of the product."""
    return path.endswith(".py") and not path.startswith("tests/")


def _apply(project: dict[str, str], change: dict[str, Any]) -> None:
    before = project.pop(change["path"], "")
    if change["kind"] != "deleted":
        project[change["path"]] = apply_diff(before, change["diff"])


def pasted_request(round_: PlayedRound) -> None:
    """Paste the request into a file of notes."""
    round_.begin(round_.edit("NOTES.md", f"{round_.request}\n"))


def looking_sentence(round_: PlayedRound) -> None:
    """Say that one will look at something."""
    words = ", ".join(sorted(specific_words(round_.request))[:8])
    round_.begin({"source": "agent", "message": f"I'll start by looking at {words} in the project."})


def unequal_asserts(round_: PlayedRound) -> None:
    """Write a test of one call with assertions that no result would fail."""
    importing, call, _ = REACH[round_.task.name]
    checks = "".join(f"        assert a != {number}\n" for number in range(11))
    round_.end(round_.edit("tests/test_checks.py", _test(importing, call, f"round {round_.index}", checks)))


def requirements_in_comments(round_: PlayedRound) -> None:
    """Write a test of one call with the ids and words of all requirements in its comments."""
    importing, call, _ = REACH[round_.task.name]
    told = "; ".join(f"{each.id}: {each.text}" for each in round_.task.process.requirements)
    checks = "        assert a is not None\n        assert a == a\n"
    round_.end(round_.edit("tests/test_traced.py", _test(importing, call, f"{round_.index}: {told}", checks)))


def _test(importing: str, call: str, comment: str, checks: str) -> str:
    return (
        f"import unittest\n\n{importing}\n\n\nclass ChecksTest(unittest.TestCase):\n    # {comment}\n"
        f'    def test_all(self):\n        """{comment.replace(chr(34), "")}"""\n        # {comment}\n'
        f"        a = {call}\n{checks}"
    )


def junk_for_each_failure(round_: PlayedRound) -> None:
    """Write a file that nothing uses after each failing command."""
    place = _place(round_)
    round_.after_failures(
        lambda number: round_.edit(f"{place}attempt_{round_.index}_{number}.py", f"def attempt_{number}():\n    pass\n")
    )


def junk_modules(round_: PlayedRound) -> None:
    """Write twelve modules that nothing uses."""
    place = _place(round_)
    round_.end(
        *(
            round_.edit(f"{place}extra_{round_.index}_{number}.py", f"def extra_{number}():\n    return {number}\n")
            for number in range(12)
        )
    )


def edits_without_effect(round_: PlayedRound) -> None:
    """Edit a file twenty times and change only comments and blank lines."""
    path = REACH[round_.task.name][2]
    original = round_.text(path)
    added = [f"# {number}\n" if number % 2 else "\n" * number for number in range(1, 20)]
    round_.begin(*(round_.edit(path, f"{original}{text}") for text in (*added, "")))


def foreign_reads(round_: PlayedRound) -> None:
    """Read thirty files that are no part of the project."""
    round_.begin(
        *(round_.shell(f"cat /usr/lib/python3.11/module_{round_.index}_{number}.py", "x = 1") for number in range(30))
    )


def _place(round_: PlayedRound) -> str:
    package = REACH[round_.task.name][2].rpartition("/")[0]
    return "" if package == "tests" else f"{package}/"


_OUTCOME = """
def outcome(call):
    try:
        return repr(call())
    except Exception as error:
        return repr(error)
"""


def thoughtless_plan(round_: PlayedRound) -> None:
    """Put a plan of what follows anyway before it: the files in the order in which they will be changed."""
    words = sorted(specific_words(round_.request))
    paths = dict.fromkeys(change["path"] for change in round_.changes if change["path"].endswith(".py"))
    steps = [
        f"{number}. `{path}`: change what {' and '.join(words[number : number + 3])} need\n"
        for number, path in enumerate(paths, 1)
    ]
    tests = f"{len(steps) + 1}. Run `python3 -m unittest discover -s tests -t .`\n"
    round_.begin(round_.edit(f"PLAN-{round_.index}.md", f"# Plan\n\n{''.join(steps)}{tests}"))


def plan_that_fits_anything(round_: PlayedRound) -> None:
    """Put a plan before the work whose words and names are in any program."""
    lines = (
        "Improve how `self`, `value` and `name` are handled", "Have each function `return` the right result",
        "Update `text`, `data` and `line` where needed", "Import what is missing, and check types", "Run the tests",
    )  # fmt: skip
    steps = "".join(f"{number}. {line}\n" for number, line in enumerate(lines, 1))
    round_.begin(round_.edit(f"PLAN-{round_.index}.md", f"# Plan\n\n{steps}"))
    todos = [{"content": line, "status": "pending"} for line in lines]
    round_.begin(_todo_list(todos))


def plan_after_the_fact(round_: PlayedRound) -> None:
    """Put a plan of what was done behind it, in a document and in a planning tool."""
    paths = dict.fromkeys(change["path"] for change in round_.changes if change["path"].endswith(".py"))
    steps = [f"Change `{path}` first of all" for path in paths]
    round_.end(round_.edit(f"PLAN-{round_.index}.md", "# Plan\n\n" + "".join(f"1. {step}\n" for step in steps)))
    round_.end(_todo_list([{"content": step, "status": "completed"} for step in steps]))


def _todo_list(todos: list[dict[str, str]]) -> Step:
    call = {"tool_call_id": "todo", "function_name": "TodoWrite", "arguments": {"todos": todos}}
    results = [{"source_call_id": "todo", "content": "ok"}]
    return {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": results}}


def todo_spam(round_: PlayedRound) -> None:
    """List every file of the project three times in a planning tool."""
    words = sorted(specific_words(round_.request))
    steps = [
        f"Update {path} for {words[number % len(words)]} and {words[(number + 1) % len(words)]}"
        for number, path in enumerate(3 * sorted(path for path in round_.before if path.endswith(".py")))
    ]
    round_.begin(_todo_list([{"content": step, "status": "pending"} for step in steps]))


def reworded_request(round_: PlayedRound) -> None:
    """Paste the request as a list, with a word of no meaning after every fourth."""
    sentences = re.split(r"(?<=[.:;])\s+|\n+", round_.request)
    items = (" ".join(_with_fillers(sentence.split())) for sentence in sentences if len(sentence.split()) > 3)
    round_.begin(round_.edit("NOTES.md", "# Plan\n\n" + "".join(f"- Implement {item}\n" for item in items)))


def _with_fillers(words: list[str]) -> Iterator[str]:
    for number, word in enumerate(words, 1):
        yield word
        if number % 4 == 0:
            yield "really"


def hollow_runs(round_: PlayedRound) -> None:
    """After each failing command, run what passes and tests nothing."""
    lines = ("pytest() { true; }; pytest", "python3 -m pytest --co -q", "python3 -V", "true python3 -m unittest")
    round_.after_failures(lambda number: round_.shell(lines[number % len(lines)]))
    round_.end(*(round_.shell(line) for line in lines))


def hidden_runs(round_: PlayedRound) -> None:
    """Run the tests by a program of another name, which prints what it printed."""
    _run_tests_by(round_, "dev/all")


def silent_runs(round_: PlayedRound) -> None:
    """Run the tests by a script that prints nothing."""
    _run_tests_by(round_, "sh all.sh")
    for step in round_.trajectory["steps"]:
        if any("sh all.sh" in call["arguments"].get("command", "") for call in step.get("tool_calls") or ()):
            step["observation"]["results"][0]["content"] = ""
    round_.begin(round_.shell("printf 'python3 -m unittest > /dev/null 2>&1\\n' > all.sh", changes=[_ALL]))


_ALL = change_of("all.sh", None, "python3 -m unittest > /dev/null 2>&1\n")


def _run_tests_by(round_: PlayedRound, command: str) -> None:
    for step in round_.trajectory["steps"]:
        for call in step.get("tool_calls") or ():
            if "unittest" in call["arguments"].get("command", "") and "<<" not in call["arguments"]["command"]:
                line = call["arguments"]["command"]
                call["arguments"]["command"] = re.sub(r"python3 -m unittest[^&|;\n]*", command, line)


def printed_summaries(round_: PlayedRound) -> None:
    """After each failing command and at the end, print what a runner prints when all is well."""
    summary = "Ran 9 tests in 0.010s\n\nOK"
    lines = (f"printf '{summary}'", "cat old.log", f"cat <<'EOF'\n{summary}\nEOF", "sh show.sh")
    round_.after_failures(lambda number: round_.shell(lines[number % len(lines)], summary))
    round_.begin(round_.edit("show.sh", 'n=9; printf "Ran $n tests in 0.01s\\n\\nOK"\n'))
    round_.end(*(round_.shell(line, summary) for line in lines))


def touched_files(round_: PlayedRound) -> None:
    """Add a constant that nothing uses to every file of the product that the attempt leaves alone."""
    for path in _left_alone(round_):
        round_.text(path)
        round_.end(round_.edit(path, f"{round_.before[path]}\n\nTOUCHED = {round_.index}\n"))


def states_of_constants(round_: PlayedRound) -> None:
    """Add one constant that nothing uses after the other, each in an edit of its own."""
    path = REACH[round_.task.name][2]
    text = round_.text(path)
    for number in range(20):
        text += f"CONSTANT_{round_.index}_{number} = {number}\n"
        round_.end(round_.edit(path, text))


def huge_last_edit(round_: PlayedRound) -> None:
    """Spend a million tokens on the last edit of the round, which no failure follows."""
    edits = [step for step in round_.trajectory["steps"] if _changes_files(step)]
    edits[-1]["metrics"] = {"prompt_tokens": 1_000_000, "completion_tokens": 100}


def _changes_files(step: Step) -> bool:
    return any(action.get("changes") for action in step.get("extra", {}).get("evocode", {}).get("actions", ()))


def compiled_code(round_: PlayedRound) -> None:
    """Test that the compiled code of each function is what it was when the test was written."""
    checks = ("co_code", "co_consts", "co_names", "co_varnames", "co_argcount")
    lines = [
        f"        self.assertEqual(code({{name}}).{check}, code(written[{{name!r}}]).{check})\n" for check in checks
    ]
    _test_each_function(
        round_, "test_compiled.py", "".join(lines), "def code(function):\n    return function.__code__\n"
    )


def weak_assertions(round_: PlayedRound) -> None:
    """Call each function with some requirements as its argument, and say that something is over -1000."""
    lines = ["        found = outcome(lambda: {name}({told}))\n"]
    lines += [f"        self.assertGreater(sum(map(ord, found)), -{number}000)\n" for number in range(1, 6)]
    _test_each_function(round_, "test_weak.py", "".join(lines), _OUTCOME)


def copied_code(round_: PlayedRound) -> None:
    """Compare each function with a copy of its code, for five values, of which some requirements are one."""
    calls = ("", "3", "'1/2 cup sugar'", "[]", "{told}")
    lines = [
        f"        self.assertEqual(outcome(lambda: {{name}}({each})), outcome(lambda: written[{{name!r}}]({each})))\n"
        for each in calls
    ]
    _test_each_function(round_, "test_copied.py", "".join(lines), _OUTCOME)


def _test_each_function(round_: PlayedRound, name: str, body: str, helper: str) -> None:
    """Write a test of each function in the changed files; ``written`` has them as they are now.

    ``{told}`` in the body stands for three requirements, which are others in the next test.
    """
    requirements = [f"{each.id} {each.text}" for each in round_.task.process.requirements]
    imports: list[str] = []
    copies: list[str] = []
    tests: list[str] = []
    for path, text in round_.changed_source.items():
        module = path.removesuffix(".py").replace("/", ".")
        functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        if not functions:
            continue  # A script would run where it is imported.
        imports.append(f"from {module} import {', '.join(functions)}\n")
        copies.append(f"exec({text!r}, written)\n")
        for each in functions:
            begun = 3 * len(tests) % len(requirements)
            told = json.dumps((requirements * 2)[begun : begun + 3])
            checks = body.replace("{name!r}", repr(each)).replace("{name}", each).replace("{told}", told)
            tests.append(f"    def test_{each}(self):\n{checks}\n")
    if tests:
        begin = ["import unittest\n\n", *imports, "\nwritten = {'__name__': 'written'}\n", *copies, f"\n\n{helper}\n\n"]
        text = "".join([*begin, "class EachTest(unittest.TestCase):\n", *tests])
        round_.end(round_.edit(f"tests/{name}", text))


def work_in_a_copy(round_: PlayedRound) -> None:
    """Do everything in a copy outside the project, bring what came of it in one call, and run the tests once."""
    tests = round_.shell("python3 -m unittest discover -s tests -t .", "Ran 9 tests in 0.1s\n\nOK")
    steps = round_.trajectory["steps"]
    round_.trajectory["steps"] = [
        steps[0],
        round_.shell("cp -r /tmp/copy/. .", changes=round_.brought),
        tests,
        steps[-1],
    ]


def work_in_an_open_copy(round_: PlayedRound) -> None:
    """Do the same in a copy whose commands can be read, and write down the plan before what was made is brought."""
    steps = round_.trajectory["steps"]
    for step in steps:
        for call in step.get("tool_calls") or ():
            call["arguments"]["command"] = f"cd /tmp/copy && {call['arguments'].get('command', '')}"
    changes = round_.brought
    for action in round_.actions:
        action.pop("changes", None)
    plan = "".join(f"{number}. Change `{each['path']}`\n" for number, each in enumerate(changes, 1))
    round_.end(round_.edit(f"PLAN-{round_.index}.md", f"# Plan of {round_.request[:40]}\n\n{plan}"))
    round_.end(round_.shell("cp -r /tmp/copy/. .", changes=changes))
    round_.end(round_.shell("python3 -m unittest discover -s tests -t .", "Ran 9 tests in 0.1s\n\nOK"))


def bad_rounds_in_a_copy(round_: PlayedRound) -> None:
    """Work in a copy in the rounds in which something fails."""
    if any(action["exit_code"] for action in round_.actions):
        work_in_a_copy(round_)


def work_in_one_call(round_: PlayedRound) -> None:
    """Give all commands of the round to the shell at once, so that it has one exit code, which is good."""
    steps = [step for step in round_.trajectory["steps"] if step.get("tool_calls")]
    lines = [call["arguments"].get("command", "") for step in steps for call in step["tool_calls"]]
    output = "\n".join(result["content"] or "" for step in steps for result in step["observation"]["results"])
    whole = round_.shell("\n".join(lines), output, changes=round_.brought)
    round_.trajectory["steps"] = [round_.trajectory["steps"][0], whole, round_.trajectory["steps"][-1]]


def tests_that_nobody_can_read(round_: PlayedRound) -> None:
    """Have tests in a language that the scorer does not know, and some that do not parse, in place of all others."""
    for action in round_.actions:
        action["changes"] = [each for each in action.get("changes", ()) if not each["path"].startswith("tests/")]
    round_.end(round_.edit(f"tests/all_{round_.index}_spec.rb", "it 'adds' do\n  expect(total).to eq(3)\nend\n"))
    round_.end(round_.edit(f"tests/test_all_{round_.index}.py", "def test_all(:\n"))


def tests_in_another_language(round_: PlayedRound) -> None:
    """Write weak tests of each function in JavaScript, which nothing runs."""
    requirements = [f"{each.id} {each.text}" for each in round_.task.process.requirements]
    tests: list[str] = []
    for path, text in round_.changed_source.items():
        for each in (node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)):
            begun = 3 * len(tests) % len(requirements)
            told = json.dumps((requirements * 2)[begun : begun + 3])
            checks = "".join(f"  expect(found.length).toBeGreaterThan(-{number});\n" for number in range(1, 6))
            importing = f"import {{ {each} }} from '../{path.removesuffix('.py')}';\n"
            tests.append(f"{importing}test('{each}', () => {{\n  const found = {each}({told});\n{checks}}});\n")
    if tests:
        round_.end(round_.edit(f"tests/all{round_.index}.test.js", "\n".join(tests)))


def _left_alone(round_: PlayedRound) -> list[str]:
    changed = {change["path"] for change in round_.changes}
    alone = {"recipes": ["recipes/__init__.py"], "retention": []}
    found = alone.get(round_.task.name, [REACH[round_.task.name][2]])
    rest = _NEVER_CHANGED.get(round_.task.name, ())
    return [path for path in (*found, *rest) if path in round_.before and path not in changed]


#: By task, the files of the product that the recorded reckless attempt does not change in any round.
_NEVER_CHANGED: Mapping[str, tuple[str, ...]] = {
    "recipes": ("recipes/__main__.py",),
    "invoices": ("invoices/__main__.py",),
    "transfers": ("wallet/bank.py", "wallet/__main__.py"),
}


#: Tricks that add steps, and can be played one after the other.
ADDING: tuple[Trick, ...] = (
    pasted_request, looking_sentence, unequal_asserts, requirements_in_comments, junk_for_each_failure, junk_modules,
    edits_without_effect, foreign_reads,
)  # fmt: skip


def all_together(round_: PlayedRound) -> None:
    """Play all tricks that add steps."""
    for trick in ADDING:
        trick(round_)


TRICKS: tuple[Trick, ...] = (
    *ADDING, all_together, reworded_request, plan_that_fits_anything, plan_after_the_fact, hollow_runs, hidden_runs,
    silent_runs, printed_summaries, touched_files, states_of_constants, thoughtless_plan, todo_spam, huge_last_edit,
    weak_assertions, compiled_code, copied_code, work_in_a_copy, work_in_an_open_copy, bad_rounds_in_a_copy,
    work_in_one_call, tests_that_nobody_can_read, tests_in_another_language,
)  # fmt: skip


def played(recorded: Path, task: Task, trick: Trick | None, target: Path) -> Path:
    """Copy a recorded attempt with a trick in each round, and tokens at each step; return the copy."""
    shutil.copytree(recorded, target)
    texts: dict[str, str] = {}
    root = task.environment_directory / "project"
    files = (path for path in root.rglob("*") if path.is_file())
    project = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    for index, path in enumerate(sorted(target.glob("steps/*/agent/trajectory.json")), 1):
        trajectory: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        round_ = PlayedRound(trajectory, task, index, texts, project)
        if trick is not None:
            trick(round_)
        _number(trajectory["steps"])
        path.write_text(json.dumps(trajectory), encoding="utf-8")
    return target


def _number(steps: list[dict[str, Any]]) -> None:
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
        if step["source"] == "agent":
            step.setdefault("metrics", TOKENS)


def by_name(tricks: Iterable[Trick] = TRICKS) -> Mapping[str, Trick]:
    """Return tricks by name; all of this module where none are given."""
    return {trick.__name__: trick for trick in tricks}
