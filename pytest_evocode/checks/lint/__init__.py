"""The check ``lint``: mistakes that the files of a task show by themselves; nothing is run or imported."""

from __future__ import annotations

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.lint.bypasses import find_bypasses
from pytest_evocode.checks.lint.files import (
    find_leftovers,
    find_lost_cheats,
    find_metadata_typos,
    find_round_mistakes,
    find_script_mistakes,
    find_unknown_keys,
    find_unmade_paths,
)
from pytest_evocode.checks.lint.requirements import find_tests_without_requirement, find_uncollected
from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.checks.lint.suites import (
    find_lost_state,
    find_lost_tests,
    find_rounds_without_tests,
    find_shadowing,
    find_syntax_errors,
)
from pytest_evocode.tasks import Task

RULES = (
    find_unknown_keys,
    find_script_mistakes,
    find_shadowing,
    find_round_mistakes,
    find_syntax_errors,
    find_lost_tests,
    find_tests_without_requirement,
    find_uncollected,
    find_unmade_paths,
    find_leftovers,
    find_lost_cheats,
)


def lint(task: Task) -> list[str]:
    """Return a line for each mistake, ``path:line: what is wrong and what to do``, ordered by path and line.

    A rule that cannot be sure says nothing. What is no mistake but could be better is a :class:`CheckWarning`.

    Raises:
        TaskError: A file cannot be read.
    """
    sources = TaskSources(task)
    found = [(problem, str(problem)) for rule in RULES for problem in rule(sources)]
    weigh = CheckWarning if task.config.metadata.evocode.verify_in == "clean" else str
    found += [(bypass, weigh(bypass)) for bypass in find_bypasses(sources)]
    # Of a round that asks for no new behaviour the check `needs-work` knows whether its suite tells it from the last.
    notes = [*find_lost_state(sources), *find_rounds_without_tests(sources), *find_metadata_typos(sources)]
    found += [(note, CheckWarning(note)) for note in notes]
    found.sort(key=lambda each: (each[0].path, each[0].line or 0))
    return list(dict.fromkeys(line for _, line in found))
