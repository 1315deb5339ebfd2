"""What dead sessions left on this machine, for ``evocode clean``; every new session removes that of its own engine."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pytest_evocode.environments import datasets, kept_tasks, scratch
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.kept_tasks import KeptTasks
from pytest_evocode.environments.reference_index import ReferenceIndex
from pytest_evocode.errors import EnvironmentUnavailable, EvocodeError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something on this machine that nobody uses any more."""

    what: str
    remove: Callable[[], object]
    of_other_cache: bool = False
    """Whether it was kept, and not by a session with the cache of this one, as far as that is known."""


@contextlib.contextmanager
def leftovers(*, kept: bool = False, references: bool = False) -> Iterator[list[Leftover]]:
    """Find what dead sessions left, of all engines that can be had here, and yield it.

    What a living session owns is never among it. The leftovers can be removed for as long as the context lasts. With
    ``references``, layers that sandboxes' images are made of are among it where no session may use them.

    Args:
        kept: Include the forks that ``--evocode-keep`` left, snapshots from which an attempt may be resumed, those of
            other caches, too, and the files of such attempts on a node of a cluster.
        references: Include the states of reference solutions and what they change, which are shared by all sessions,
            datasets, and the tasks that a node of a cluster keeps.
    """
    with contextlib.ExitStack() as stack:
        of_engines = (*_of_docker(stack, kept, references), *_of_sandboxes(stack, kept, references))
        yield [*of_engines, *_of_no_engine(kept, references)]


def remove_leftovers() -> None:
    """Remove what dead processes left running; another session may do the same, and the next one does the rest."""
    with contextlib.suppress(EvocodeError, OSError), leftovers() as found:
        for leftover in found:
            logger.info("removing what a lost process left: %s", leftover.what)
            with contextlib.suppress(EvocodeError, OSError):
                leftover.remove()


@contextlib.contextmanager
def images_of_agents() -> Iterator[tuple[list[Leftover], list[str]]]:
    """Find the Docker images and sandbox layers in which agents' programs are installed.

    Yield those that nothing uses, and what the others are. The former can be removed for as long as the context lasts.
    """
    with contextlib.ExitStack() as stack:
        found = [*_agents_of_docker(stack), *_agents_of_sandboxes(stack)]
        yield [leftover for leftover, used in found if not used], [leftover.what for leftover, used in found if used]


def _agents_of_docker(stack: contextlib.ExitStack) -> Iterator[tuple[Leftover, bool]]:
    from pytest_evocode.environments.docker import engine
    from pytest_evocode.environments.docker.calls import remove
    from pytest_evocode.environments.docker.images import agent_images

    try:
        client = stack.enter_context(contextlib.closing(engine.connect()))
    except EnvironmentUnavailable:
        return
    for each in agent_images(client):
        yield Leftover(str(each), partial(remove, client, "image", each.name, force=False)), each.in_use


def _agents_of_sandboxes(stack: contextlib.ExitStack) -> Iterator[tuple[Leftover, bool]]:
    from pytest_evocode.environments.sandbox import leftovers as sandboxes
    from pytest_evocode.environments.sandbox.launcher_client import Launcher

    launcher = stack.enter_context(contextlib.closing(Launcher()))
    for each in sandboxes.agent_layers(launcher):
        yield Leftover(str(each), partial(sandboxes.remove_layer, launcher, each.path, str(each))), each.in_use


def _of_docker(stack: contextlib.ExitStack, kept: bool, references: bool) -> Iterator[Leftover]:
    from pytest_evocode.environments.docker import engine
    from pytest_evocode.environments.docker.calls import remove

    try:
        client = stack.enter_context(contextlib.closing(engine.connect()))
    except EnvironmentUnavailable:
        return
    client.be_patient()
    of_nobody = {entry["Id"] for entries in engine.find_docker_leftovers(client).values() for entry in entries}
    for kind, entries in engine.find_docker_leftovers(client, needed_too=kept).items():
        for entry in entries:
            others = entry["Id"] not in of_nobody and engine.is_of_other_cache(entry)
            for name in engine.names_of(kind, entry):
                shown = name if kind == "image" else (entry.get("Names") or [entry.get("Name")])[0] or name
                yield Leftover(f"{kind} {shown.lstrip('/')}", partial(remove, client, kind, name), others)
    if references:
        yield from _reference_states("docker", partial(engine.remove_reference_state, client))


def _of_sandboxes(stack: contextlib.ExitStack, kept: bool, references: bool) -> Iterator[Leftover]:
    from pytest_evocode.environments.sandbox import leftovers as sandboxes
    from pytest_evocode.environments.sandbox.base_system import packages_digest
    from pytest_evocode.environments.sandbox.launcher_client import Launcher
    from pytest_evocode.environments.sandbox.snapshots import remove_tree

    launcher = stack.enter_context(contextlib.closing(Launcher()))
    of_nobody = set(sandboxes.find_sandbox_leftovers())
    for path in sandboxes.find_sandbox_leftovers(needed_too=kept):
        others = path not in of_nobody and sandboxes.is_of_other_cache(path)
        yield Leftover(f"sandbox files {path}", partial(sandboxes.remove_sandbox_leftover, launcher, path), others)

    def remove_reference_state(key: str) -> None:
        for parent in sandboxes.state_parents():
            remove_tree(launcher, sandboxes.reference_states(parent) / key)

    if references:
        yield from _reference_states("sandbox", remove_reference_state)
        for path in sandboxes.unneeded_layers(packages_digest()):
            what = f"sandbox layer {path}"
            yield Leftover(what, partial(sandboxes.remove_layer, launcher, path, what))


def _reference_states(engine: str, remove: Callable[[str], object]) -> Iterator[Leftover]:
    def forget(key: str) -> None:
        with index.locked():
            index.forget(key)
            remove(key)

    index = ReferenceIndex(engine)
    for state in index.oldest_first():
        yield Leftover(f"reference state of {state.task} after {state.round} ({engine})", partial(forget, state.key))


def _of_no_engine(kept: bool, references: bool) -> Iterator[Leftover]:
    for path in scratch.find_dead():
        yield Leftover(f"scratch files {path}", partial(scratch.remove_dead, path))
    for home in kept_tasks.unfinished_homes() if kept else ():
        yield Leftover(f"files of the unfinished attempt {home}", partial(kept_tasks.remove_home, home))
    if not references:
        return
    directory = cache_directory() / "reference-changes"
    if directory.is_dir():
        yield Leftover(f"notes of what reference solutions change, {directory}", partial(shutil.rmtree, directory))
    for clone in datasets.unused_clones():
        yield Leftover(f"dataset {clone}", partial(datasets.remove_clone, clone))
    tasks = KeptTasks()
    for task in tasks.unused():
        name = next((path.name for path in task.home.glob("*")), task.home.name)
        yield Leftover(f"task {name} of a cluster, {task.size / 1e6:.1f} MB", partial(tasks.remove, task))
