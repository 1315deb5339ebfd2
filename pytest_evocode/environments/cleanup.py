"""Clearing by hand what dead sessions left on this machine; every new session does the same for its own environment."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pytest_evocode.errors import EnvironmentUnavailable


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that nobody uses any more; ``remove`` raises EnvironmentFault when it will not go."""

    what: str
    remove: Callable[[], object]


@contextlib.contextmanager
def leftovers(*, kept: bool = False) -> Iterator[list[Leftover]]:
    """What sessions left that are dead, of all environments that can be had here, for as long as the context lasts.

    With ``kept``, snapshots too from which an attempt may still be resumed. What a living session owns is never there.
    """
    with contextlib.ExitStack() as stack:
        yield [*_of_docker(stack, kept), *_of_sandboxes(stack, kept)]


def _of_docker(stack: contextlib.ExitStack, kept: bool) -> Iterator[Leftover]:
    from pytest_evocode.environments.docker.engine import connect, find_leftovers, remove_leftover

    try:
        client = stack.enter_context(contextlib.closing(connect()))
    except EnvironmentUnavailable:
        return
    for kind, entries in find_leftovers(client, needed_too=kept).items():
        for entry in entries:
            name = (entry.get("RepoTags") or entry.get("Names") or [entry.get("Name")])[0] or entry["Id"]
            yield Leftover(f"{kind} {name.lstrip('/')}", partial(remove_leftover, client, kind, entry))


def _of_sandboxes(stack: contextlib.ExitStack, kept: bool) -> Iterator[Leftover]:
    from pytest_evocode.environments.sandbox.bubblewrap import Launcher
    from pytest_evocode.environments.sandbox.leftovers import find_leftovers, remove_leftover

    launcher = stack.enter_context(contextlib.closing(Launcher()))
    for path in find_leftovers(needed_too=kept):
        yield Leftover(f"sandbox files {path}", partial(remove_leftover, launcher, path))
