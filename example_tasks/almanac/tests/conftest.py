"""What the tests of all rounds share: the fixture `almanac`."""

import re
import shlex
from typing import NamedTuple

import pytest

END = r"""end() { printf '\n--- %d\n' "$1"; printf '\n---\n' >&2; }"""


class Answer(NamedTuple):
    """How a step ended, and what it printed; bytes that are no UTF-8 are surrogates."""

    status: int | None
    output: str
    errors: str


class Almanac:
    """A directory with a database of its own, in which the program runs."""

    def __init__(self, workspace):
        self.workspace = workspace

    def answers(self, *steps, files=None):
        """Take steps in one shell, as that is cheaper than one at a time, beside files (contents by name).

        A step is a text, with which the program is called, or a list of the words of another program.
        """
        commands = [step if isinstance(step, list) else ["/app/almanac", *shlex.split(step)] for step in steps]
        script = "\n".join([END, *(f"{shlex.join(words)}; end $?" for words in commands)])
        directory = None if files else self.workspace.path
        done = self.workspace.run(script, files=files, cwd=directory, timeout=30)
        *parts, rest = re.split("\n--- ([0-9]+)\n", text_of(done.stdout_bytes))
        errors = text_of(done.stderr_bytes).split("\n---\n")
        answers = [Answer(int(status), *each) for status, *each in zip(parts[1::2], parts[::2], errors, strict=False)]
        never = [Answer(None, rest, errors[-1])] * len(steps)  # Nothing is known of steps behind one that hangs.
        return [*answers, *never][: len(steps)]

    def prints(self, *steps, files=None):
        """Return what each of the steps prints, which all have to succeed."""
        answers = self.answers(*steps, files=files)
        assert [(each.status, each.errors) for each in answers] == [(0, "")] * len(steps)
        return [each.output for each in answers]


def text_of(data):
    return data.decode("utf-8", "surrogateescape")


@pytest.fixture
def almanac(workspace):
    return Almanac(workspace)


@pytest.fixture(scope="module")
def listed(request, workspace_module):
    """Return what `list` prints of some years; the FILES of a module are in one database, each case's in its own years.

    One call imports them all. Where that fails each is imported alone, so that one file does not keep others out.
    """
    files = request.module.FILES
    together, *alone = (
        shlex.join(["timeout", "10", "/app/almanac", "import", *names])
        for names in (files, *([name] for name in files))
    )
    imports = ["bash", "-c", f"{together} || {{ {'; '.join(alone)}; }}"]
    _, answer = Almanac(workspace_module).answers(imports, "list", files=files)

    def of_years(*years):
        assert (answer.status, answer.errors) == (0, "")
        return "".join(line for line in answer.output.splitlines(keepends=True) if line.startswith(years))

    return of_years
