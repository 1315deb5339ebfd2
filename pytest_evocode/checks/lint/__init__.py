"""The check ``lint``: mistakes that the files of a task show by themselves; nothing is run or imported."""

from __future__ import annotations

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.lint import bypasses, files, requirements, suites
from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.tasks import Task

RULES = (
    files.find_unknown_keys,
    files.find_script_mistakes,
    suites.find_shadowing,
    files.find_round_mistakes,
    suites.find_syntax_errors,
    suites.find_lost_tests,
    requirements.find_tests_without_requirement,
    requirements.find_uncollected,
    files.find_unmade_paths,
    files.find_leftovers,
    files.find_lost_cheats,
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
    found += [(bypass, weigh(bypass)) for bypass in bypasses.find_bypasses(sources)]
    # Of a round that asks for no new behaviour the check `needs-work` knows whether its suite tells it from the last.
    notes = [
        *suites.find_lost_state(sources),
        *suites.find_rounds_without_tests(sources),
        *files.find_metadata_typos(sources),
    ]
    found += [(note, CheckWarning(note)) for note in notes]
    found.sort(key=lambda each: (each[0].path, each[0].line or 0))
    return list(dict.fromkeys(line for _, line in found))
