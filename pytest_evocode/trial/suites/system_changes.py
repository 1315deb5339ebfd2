"""What an agent changed of its system beside its workspace, against the task's image as built."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cached_property

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.entry_points import entry_files
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.changes import recorded_changes, write_changes
from pytest_evocode.tasks import VerifyIn
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.verifier import (
    Changes,
    ImageCaches,
    ImageFacts,
    SuiteRun,
    classify,
    harden,
    image_facts,
    looked_at,
)

_OWN_DIRECTORIES = ("/logs", "/tests", "/solution")  # of the harness: a suite finds none of what an agent left there


class SystemChanges:
    """Finds what was changed, keeps it from suites as far as that can be, and puts it into their verdicts.

    All methods raise :class:`~pytest_evocode.errors.EnvironmentFault`.
    """

    def __init__(self, context: TrialContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._caches = ImageCaches(context.engine, context.task)

    def find(self, snapshot: Snapshot, environment: Environment) -> Changes:
        """Return what differs from the image in a snapshot, outside of the workspace and of the task's ``state``.

        What the ENTRYPOINT of the environment is started from is looked at in the workspace, too.
        """
        workdir = environment.workdir
        entry = tuple(path for path in entry_files(environment) if path.startswith(f"{workdir.rstrip('/')}/"))
        image = self._image_once()
        outside = (workdir, *self._context.task.config.metadata.evocode.state, *_OWN_DIRECTORIES)
        return classify(snapshot.changed_paths(outside, (*looked_at(image), *entry)), image, workdir, entry)

    def put_right(self, place: Environment, changes: Changes, rests_on: VerifyIn) -> None:
        """Put right in the place of a suite what it would trust there without knowing."""
        if rests_on == "place":  # It is the agent's: only what any Python makes again is taken away.
            if changes.caches:
                place.remove(changes.caches)
        elif rests_on not in ("separate", "artifacts"):
            harden(place, self._in_effect(changes, rests_on, place.workdir), self._image_once(), self._caches)

    def attach(self, suite: SuiteRun, changes: Changes, rests_on: VerifyIn, workdir: str) -> SuiteRun:
        """Return the run of a suite with what it rests on; the list of changes is written into the results."""
        recorded = recorded_changes(changes.file, self._context.scrubber)
        if (directory := self._context.directory) is not None:
            try:
                write_changes(directory.path, changes.file, self._context.scrubber)
            except OSError as error:
                raise EnvironmentFault(f"the results could not be written: {error}") from error
        tools = self._in_effect(changes, rests_on, workdir).steering(rests_on)
        return suite.resting_on(rests_on, changes.file, recorded, tools)

    def _in_effect(self, changes: Changes, rests_on: VerifyIn, workdir: str) -> Changes:
        """Return the changes that are there where a suite runs: of a clean environment, those in the workspace."""
        return changes.inside(workdir) if rests_on == "clean" else changes

    def _image_once(self) -> ImageFacts:
        with self._lock:  # Several suites may begin at once.
            return self._image

    @cached_property
    def _image(self) -> ImageFacts:
        task = self._context.task
        facts = image_facts(self._context.engine, task)
        declared = (task.config.environment.env, *(round_.verifier_env for round_ in task.rounds))
        values = {f"{number} {name}": value for number, env in enumerate(declared) for name, value in env.items()}
        return replace(facts, variables={**values, **facts.variables})
