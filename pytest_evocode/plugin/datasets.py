"""The datasets that a session is asked for: repositories by URL and commit, whose tasks are collected like a path's."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.foreign_projects import foreign_projects

_CLONES = pytest.StashKey[dict[str, Path]]()


def add_datasets(config: pytest.Config) -> None:
    """Have pytest collect the session's datasets, beside the paths that it is called with.

    A dataset of which it is called with node ids is not collected whole. Raises pytest.UsageError where one cannot be
    had.
    """
    clones: dict[str, Path] = {}
    config.stash[_CLONES] = clones
    if not (texts := config.getoption("evocode_dataset")):
        return
    from pytest_evocode.environments.datasets import fetched, parse_dataset

    until_end = contextlib.ExitStack()
    config.add_cleanup(until_end.close)
    found: list[tuple[str, Path]] = []
    for text in dict.fromkeys(texts):
        try:
            dataset = parse_dataset(text, config.invocation_params.dir)
            found.append((dataset.name, until_end.enter_context(fetched(dataset))))
        except UsageError as error:
            raise pytest.UsageError(f"--evocode-dataset: {error}") from None
        clones[dataset.name] = dataset.clone
        if (projects := foreign_projects(config)) is not None:
            projects.add(dataset.clone)
    named = config.args if config.args_source is config.ArgsSource.ARGS else []
    names = [each.partition("/")[0] for each in named]
    whole = [str(path) for name, path in found if name not in names]
    config.args = [*(_argument(clones, each) for each in named), *whole]


def _argument(clones: dict[str, Path], argument: str) -> str:
    name, slash, rest = argument.partition("/")
    return f"{clones[name]}/{rest}" if slash and name in clones else argument


def dataset_node_id(config: pytest.Config, path: Path) -> str | None:
    """Return the node id of a file of a dataset, which does not depend on where it is kept; None for other files."""
    for name, clone in config.stash[_CLONES].items():
        if path.is_relative_to(clone):
            return f"{name}/{path.relative_to(clone).as_posix()}"
    return None


def path_of(config: pytest.Config, nodeid: str) -> Path:
    """Return the path that a node id begins with."""
    place = nodeid.partition("::")[0]
    name, _, rest = place.partition("/")
    clone = config.stash[_CLONES].get(name)
    return config.rootpath / place if clone is None else clone / rest
