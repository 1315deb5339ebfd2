"""A trick for recorded attempts that still gains something."""

from __future__ import annotations

from tests.process.tricks import REACH, PlayedRound, Step, Trick


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
        line = "\n".join(each["tool_calls"][0]["arguments"]["command"] for each in (module, init))
        return round_.shell(line, changes=[each["changes"][0] for each in actions])

    round_.after_failures(step)
    round_.end(*(step(1000 + number) for number in range(12)))


#: Tricks that still gain something.
REMAINING: tuple[Trick, ...] = (called_code,)
