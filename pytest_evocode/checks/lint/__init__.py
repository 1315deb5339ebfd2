"""Find the mistakes of a task that its files alone show; nothing is started and nothing of the task imported."""

from __future__ import annotations

from pytest_evocode.checks.lint.leftovers import find_leftovers
from pytest_evocode.checks.lint.mentions import find_unmade_paths
from pytest_evocode.checks.lint.rounds import find_round_mistakes
from pytest_evocode.checks.lint.scripts import find_script_mistakes
from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.checks.lint.suite_files import find_lost_tests
from pytest_evocode.tasks import Task

RULES = (find_script_mistakes, find_round_mistakes, find_lost_tests, find_unmade_paths, find_leftovers)


def lint(task: Task) -> list[str]:
    """One line for each mistake, ``path:line: what is wrong and what to do``, in the order of paths and lines.

    A rule that cannot be sure says nothing. Raises TaskError for a file that cannot be read.
    """
    sources = TaskSources(task)
    found = [problem for rule in RULES for problem in rule(sources)]
    found.sort(key=lambda problem: (problem.path, problem.line or 0))
    return list(dict.fromkeys(map(str, found)))
