"""Lint rule about script suites that start Python where it imports the agent's modules in place of others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from pytest_evocode.checks.lint.bypasses import product_modules
from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.errors import TaskError

_SET = re.compile(r"\bPYTHONSAFEPATH=['\"]?[^\s'\";]")
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?\s*(['\"]?)(\w+)\1")
_SHOWN = re.compile(r"\b(?:echo|printf)\b[^;&|`()]*$")
_WORD = re.compile(r"(?<![\w.-])(?:(?:cd|pushd)\s+(?P<directory>\S+)|python(?:3(?:\.\d+)?)?(?=[\s<]|$))")
_ELSEWHERE = re.compile(r"[\"']?(?:\$|~|/(?:tests|tmp|logs|opt|var|root)\b)")
"""Directories that are not the agent's, or not known."""
_FLAGS = "bBdEiIOPqRsSuvx"
_CODE = re.compile(
    rf"(?P<options>(?:\s+-(?:[WX]\s*\S+|[{_FLAGS}]+(?=\s)))*)"
    rf"(?:\s+-(?:(?P<more>[{_FLAGS}]*)(?:m\s*(?P<module>\w[\w.]*)|c)|(?=[\s|;)&<]|$))|\s*<<?(?![(<]))"
)
"""How Python is given code so that the working directory is the first that it imports from."""
_TOOLS = sys.stdlib_module_names | {"pytest", "pip", "coverage", "tox"}
"""What ``-m`` starts that is not the agent's work, which has to be imported from there."""
_ADVICE = (
    "{} imports from the working directory first, so a {}.py that the agent left there runs instead; add -P (Python "
    "3.11 and newer) or -I, run a file below /tests, or set safe_path = true in [metadata.evocode]"
)
_PIPED_INTO = re.compile(r"(?<!\|)\|\s*(?:\S*/)?$")


def find_shadowing(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the lines of script suites that start Python with the working directory first on its path.

    A suite that sets ``PYTHONSAFEPATH`` for all that it starts is passed over, as are starts in another directory,
    those of the agent's own modules, and code in a file that imports any of these.
    """
    task = sources.task
    if task.config.metadata.evocode.safe_path or _SET.search(sources.dockerfile):
        return
    imports_work = re.compile(rf"\b(?:import|from)\s+(?:{'|'.join(sorted(product_modules(sources))) or '(?!)'})\b")
    for each in sources.rounds:
        if not each.round.has_script or each.round.suite_environment or "PYTHONSAFEPATH" in each.round.verifier_env:
            continue
        files = [file for file in (*sources.shared_tests, *each.tests) if re.fullmatch(r"[^/]+\.sh", file.place)]
        if any(_SET.search(line) and "export" in line for file in files for line in file.text.splitlines()):
            continue
        for file in files:
            for number, start, module in _starts(file.text):
                if module in _TOOLS if module else not imports_work.search(file.text):
                    yield TaskError(_ADVICE.format(start, module or "json"), file.path, number)


def _starts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the starts of Python in a shell script that have the working directory first, as :func:`_start` does."""
    inside = True
    for number, line in _commands(text):
        for word in _WORD.finditer(line):
            if word["directory"]:
                inside = not _ELSEWHERE.match(word["directory"])
            elif inside and not _SET.search(line) and (found := _start(line, word)):
                yield number, *found


def _start(line: str, word: re.Match[str]) -> tuple[str, str] | None:
    """Return how Python is started with the working directory first on its path, and the module that ``-m`` names."""
    before, after = line[: word.start()], line[word.end() :]
    if _SHOWN.search(before):
        return None
    if (code := _CODE.match(after)) is None:
        is_piped = _PIPED_INTO.search(before) and re.match(r"\s*(?:$|[>|;)&])", after)
        return (word[0], "") if is_piped else None
    if re.search(r"\s-\w*[IP]", f"{code['options']} -{code['more'] or ''}"):
        return None
    return " ".join(f"{word[0]}{code[0]}".split()), (code["module"] or "").partition(".")[0]


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a shell script with their numbers: continued ones as one, no comments and here-documents."""
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        while line.endswith("\\"):
            line = line[:-1] + next(lines, (0, ""))[1]
        line = re.sub(r"(?:^|\s)#.*", "", line)
        yield number, line
        for _, end in _HERE_DOCUMENT.findall(line):
            while next(lines, (0, end))[1].strip() != end:
                pass
