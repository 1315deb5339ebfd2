"""More tricks for recorded attempts: what rules can see through, and what can still be bought, with what it gains."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping

from pytest_evocode.process.pillars.messages import specific_words
from tests.process.tricks import REACH, PlayedRound, Step, Trick, change_of

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
        if any(call["arguments"].get("command") == "sh all.sh" for call in step.get("tool_calls") or ()):
            step["observation"]["results"][0]["content"] = ""
    round_.begin(round_.shell("printf 'python3 -m unittest > /dev/null 2>&1\\n' > all.sh", changes=[_ALL]))


_ALL = change_of("all.sh", None, "python3 -m unittest > /dev/null 2>&1\n")


def _run_tests_by(round_: PlayedRound, command: str) -> None:
    for step in round_.trajectory["steps"]:
        for call in step.get("tool_calls") or ():
            if "unittest" in call["arguments"].get("command", "") and "<<" not in call["arguments"]["command"]:
                call["arguments"]["command"] = command


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


def called_code(round_: PlayedRound) -> None:
    """Have the product call new code for no reason: a module for each failure and a dozen more, in use."""
    place = REACH[round_.task.name][2].rpartition("/")[0]
    if place == "tests":
        return
    package = f"{place}/__init__.py"
    text = round_.text(package)

    def step(number: int) -> Step:
        nonlocal text
        name = f"part_{round_.index}_{number}"
        module = round_.edit(f"{place}/{name}.py", f"def {name}(value):\n    return value\n")
        text += f"from {place}.{name} import {name}\n{name}({number})\n"
        init = round_.edit(package, text)
        actions = [each["extra"]["evocode"]["actions"][0] for each in (module, init)]
        return round_.shell("make it so", changes=[each["changes"][0] for each in actions])

    round_.after_failures(step)
    round_.end(*(step(1000 + number) for number in range(12)))


def work_in_a_copy(round_: PlayedRound) -> None:
    """Do everything in a copy outside the project, bring what came of it in one call, and run the tests once."""
    paths = [path for path in {**round_.before, **round_.project} if path.endswith((".py", ".md"))]
    changes = [
        change_of(path, round_.before.get(path), round_.project.get(path))
        for path in paths
        if round_.before.get(path) != round_.project.get(path)
    ]
    tests = round_.shell("python3 -m unittest discover -s tests -t .", "Ran 9 tests in 0.1s\n\nOK")
    steps = round_.trajectory["steps"]
    round_.trajectory["steps"] = [steps[0], round_.shell("cp -r /tmp/copy/. .", changes=changes), tests, steps[-1]]


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

#: Tricks that rules see through, as they do those of :mod:`tests.process.tricks`.
SEEN_THROUGH: tuple[Trick, ...] = (
    reworded_request, plan_that_fits_anything, plan_after_the_fact, hollow_runs, hidden_runs, silent_runs,
    printed_summaries, touched_files, states_of_constants, thoughtless_plan, todo_spam, huge_last_edit,
)  # fmt: skip
#: Tricks that still gain something.
REMAINING: tuple[Trick, ...] = (
    weak_assertions, compiled_code, copied_code, called_code, work_in_a_copy,
)  # fmt: skip
