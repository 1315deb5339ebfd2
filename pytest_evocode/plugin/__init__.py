"""The pytest plugin: hooks that pytest calls in every session, and that delegate to the modules of this package.

pytest imports this module in sessions without tasks too, so everything that takes time is imported inside.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from pytest_evocode.plugin import options

#: As in ``pytest_evocode.names``, which sessions without tasks need not import.
_TASK_FILE = "task.toml"


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our own hooks."""
    from pytest_evocode.plugin import hookspecs as newhooks

    pluginmanager.add_hookspecs(newhooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options and ini settings."""
    options.add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Keep pytest from importing the conftest.py files of tasks, which belong into containers."""
    in_use = options.in_use(early_config)
    if in_use:
        from pytest_evocode.plugin.pytest_private import import_as_written

        import_as_written(early_config, __name__.partition(".")[0])
        from pytest_evocode.plugin.foreign_projects import keep_to_own, leave_out_unknown

        options.spell_out_bare(args, early_config.known_args_namespace)
        options.require_terminal(early_config.known_args_namespace)
        keep_to_own(early_config, args)
    namespace = early_config.known_args_namespace
    named, starts = namespace.file_or_dir, options.starts_of(early_config)
    if in_use or _may_be_near_task(early_config, starts):
        from pytest_evocode.plugin.task_directories import is_meant_as_task, is_task, outside_tasks

        namespace.file_or_dir = outside_tasks(early_config, starts, is_meant_as_task if in_use else is_task)
    try:
        result = yield
    finally:
        namespace.file_or_dir = named
    options.refuse_unknown(parser, args, early_config)
    if in_use:
        leave_out_unknown(early_config, args)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Have a dry run collect and no more: xdist, which is set up after this, starts no worker for that either."""
    if config.getoption("evocode_dry_run"):
        if not options.in_use(config):
            raise pytest.UsageError("--evocode-dry-run tells what agents would take; add --evocode-agent=AGENT")
        config.option.collectonly = True


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register all other hooks, in sessions that run or check tasks; refuse to run what lies in a task in others."""
    if options.in_use(config):
        from pytest_evocode.plugin.datasets import add_datasets
        from pytest_evocode.plugin.session_hooks import register_session_plugins

        try:
            add_datasets(config)
            register_session_plugins(config)
        except pytest.UsageError as error:
            from pytest_evocode.plugin.github_refusals import tell_refusal

            tell_refusal(config, pytest.ExitCode.USAGE_ERROR, str(error))
            raise
    elif config.getoption("evocode_dataset"):
        raise pytest.UsageError("--evocode-dataset names tasks, which an agent runs; add --evocode-agent=oracle")
    elif _may_be_near_task(config, config.args):
        from pytest_evocode.plugin.task_directories import refuse_paths_inside

        refuse_paths_inside(config)


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return an empty collector for a task in a session without an agent; one that runs tasks asks another hook."""
    if not os.path.isfile(path / _TASK_FILE) or options.in_use(parent.config):
        return None
    from pytest_evocode.plugin.task_directories import unasked_task

    return unasked_task(path, parent)


def _may_be_near_task(config: pytest.Config, starts: Iterable[str]) -> bool:
    """Tell whether there is a task.toml where pytest starts, above there, or where it looks for conftest files."""
    for start in starts:
        path = os.path.abspath(config.invocation_params.dir / start.split("::")[0])
        looked_at = (path, *map(str, Path(path).parents), *options.directories_of_tests(path))
        # Not by pathlib, which raises for a name that is too long: it may be the value of a conftest's option.
        if any(os.path.isfile(os.path.join(directory, _TASK_FILE)) for directory in looked_at):
            return True
    return False
