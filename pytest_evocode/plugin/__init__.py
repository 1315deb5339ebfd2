"""The pytest plugin: hooks that pytest calls in every session, and that delegate to the modules of this package.

pytest imports this module in sessions without tasks too, so everything that takes time is imported inside.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_evocode.plugin import options


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add our own hooks."""
    from pytest_evocode.plugin import hookspecs as newhooks

    pluginmanager.add_hookspecs(newhooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options and ini settings."""
    options.add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None]:
    """Keep pytest from importing the conftest.py files of tasks, which belong into containers."""
    if not options.in_use(early_config):
        return (yield)
    from pytest_evocode.plugin.collection import outside_tasks

    namespace = early_config.known_args_namespace
    options.spell_out_resume(args, namespace)
    options.require_terminal(namespace)
    named = namespace.file_or_dir
    # A task may also be where pytest is started, without a path on the command line.
    namespace.file_or_dir = outside_tasks(early_config, named or [str(early_config.invocation_params.dir)])
    try:
        return (yield)
    finally:
        namespace.file_or_dir = named


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register all other hooks, in sessions that run or check tasks."""
    if options.in_use(config):
        from pytest_evocode.plugin.session_plugins import register_session_plugins

        register_session_plugins(config)
