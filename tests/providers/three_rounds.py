"""A task of three rounds and a model that solves it, if its conversation is kept whole."""

from __future__ import annotations

import json
import re

from tests.model_scripts import Asked, Run, Say, has_shell
from tests.providers.exchanges import Step

ROUNDS = (1, 2, 3)
#: What each round's requests to the model are in an attempt in which nothing goes wrong: two calls in the first.
REQUESTS = (3, 2, 2)
SECRET = "heliotrope-7c1d0e5f"
#: Of the task. A turn that is resumed is replayed from its beginning, so this is no random text.
FILES = {"steps/round-1/workdir/secret.txt": f"secret={SECRET}\n"}
_SECRET = re.compile(r"secret=([\w-]+)")


def suite(last: int) -> str:
    """A test.sh: each line is there once, and in the third round what was shown once in the first."""
    lines = "".join(f"line-{number}\\n" for number in range(1, last + 1))
    checks = [f'[ "$(cat log.txt)" = "$(printf \'{lines}\')" ]']
    if last == 3:
        checks.append(f'[ "$(cat answer.txt)" = {SECRET} ] && [ ! -e secret.txt ]')
    return f"if {' && '.join(checks)}; then reward=1; else reward=0; fi\necho $reward > /logs/verifier/reward.txt\n"


SUITES = tuple(suite(number) for number in ROUNDS)


def solve(asked: Asked) -> Step:
    """What the model says; it looks at the conversation alone, so the same request gets the same reply.

    Instructions are those of the tests' tasks, "Do round 2.". A request without a shell is one for a summary. With each
    reply the model says again what it knows, as outputs of commands may be left out to make room.
    """
    seen = json.dumps(asked.body)
    found = _SECRET.search(seen)
    secret = found[1] if found else "forgotten"
    # No command has the text in it that it prints.
    commands = {
        "shown-1": "cat secret.txt; rm secret.txt; echo shown'-1'",
        "done-1": "echo line-1 >> log.txt; echo done'-1'",
        "done-2": "echo line-2 >> log.txt; echo done'-2'",
        "done-3": f"echo line-3 >> log.txt; printf %s {secret} > answer.txt; echo done'-3'",
    }
    told = {number: f"Do round {number}." for number in ROUNDS if f"Do round {number}." in seen}
    known = Say(f"Known: secret={secret}, {', '.join(mark for mark in commands if mark in seen)}.")
    if not has_shell(asked):
        return [known, Say(" ".join(told.values()))]
    for mark, command in commands.items():
        if int(mark[-1]) in told and mark not in seen:
            call = Run(f"{command}; seq 500")  # There is something to leave out.
            return [known, call] if found else call
    return known
