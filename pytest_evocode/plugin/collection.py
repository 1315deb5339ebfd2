"""How pytest finds tasks, and what a session runs of them: whole chains up to a selected round, and its shard."""

from __future__ import annotations

import gc
import math
import os
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.errors import RecordFault, TaskError, TaskWarning, UsageError
from pytest_evocode.metrics.spending import ExpectedAmounts
from pytest_evocode.names import TASK_FILE, ForkPoint, attempt_name
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem
from pytest_evocode.plugin.datasets import dataset_node_id
from pytest_evocode.plugin.foreign_projects import foreign_projects
from pytest_evocode.plugin.live import clock
from pytest_evocode.plugin.pytest_private import keep_out_conftest
from pytest_evocode.plugin.session import EvocodeSession, Selected, session_of
from pytest_evocode.plugin.settings import Settings
from pytest_evocode.plugin.side_by_side import keep_together
from pytest_evocode.plugin.task_directories import is_meant_as_task
from pytest_evocode.results.directory import last_seconds
from pytest_evocode.results.forks import ForkedState, find_fork
from pytest_evocode.results.records import task_facts
from pytest_evocode.results.selection import SelectedAttempt
from pytest_evocode.tasks import Round as TaskRound
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.loading import warn_of_unread


class TaskDirectory(pytest.Directory):
    """A directory with a task.toml: nothing else below it is looked at, let alone imported."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Yield the task file only."""
        path = self.path / TASK_FILE
        yield TaskFile.from_parent(self, path=path, nodeid=dataset_node_id(self.config, path))


class InsideTask(pytest.Directory):
    """A directory in a task that pytest was started in, with nothing above it in its reach."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Collect nothing, and say what to do instead."""
        task = _innermost_task(self.path)
        raise self.CollectError(f"{self.path} belongs to the task {task}; start pytest there or above")


class TaskFile(pytest.File):
    """A task.toml; its children are the attempts."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Yield an attempt for each agent and number, or the checks, or what is to be made ready.

        A broken task is a collection error of its own.
        """
        session = session_of(self.config)
        if session.settings.check:
            from pytest_evocode.plugin.checks import CHECK, CheckCollector

            yield CheckCollector.from_parent(self, name=CHECK)
            return
        try:
            task = session.settings.load(self.path.parent)
            if session.worker_input is None or session.worker_input["workerid"] == "gw0":  # All workers collect all.
                warn_of_unread(task, session.scrubber.text)
        except TaskError as error:
            raise self.CollectError(session.scrubber.text(str(error))) from None
        except TaskWarning:
            raise self.CollectError(session.scrubber.text("\n".join(map(str, task.unread)))) from None
        if session.settings.warm:
            from pytest_evocode.plugin.warming import WARM, WarmCollector

            yield WarmCollector.from_parent(self, name=WARM, task=task)
            return
        self._claim_name(task, session)
        first = self._first_round(task, session.settings.from_round)
        forks = self._forks(task, session.settings)
        for agent in session.roster.agents:
            for number in range(1, session.settings.attempts + 1):
                yield AttemptCollector.from_parent(
                    self,
                    name=attempt_name(agent.id, number),
                    agent=agent,
                    number=number,
                    task=task,
                    first=first,
                    fork=forks.get(number),
                )

    def _claim_name(self, task: Task, session: EvocodeSession) -> None:
        """Refuse a second task of one name: results, comparisons and resumed runs know tasks by nothing else."""
        other = session.collected.setdefault(task.name, self.path.parent)
        if other != self.path.parent:
            raise self.CollectError(
                f"{self.path.parent} and {other} are both called {task.name}, and results are kept by a task's name; "
                "rename one of the directories, or run them in two sessions, each with an --evocode-results of its own"
            )

    def _forks(self, task: Task, settings: Settings) -> dict[int, ForkedState]:
        """Return the states that attempts begin in by their numbers, where they go on from another agent's."""
        point = settings.fork_from
        if point is None:
            return {}
        numbers = range(1, settings.attempts + 1)
        try:
            return {number: find_fork(settings.results, point, task, number) for number in numbers}
        except (UsageError, RecordFault) as error:
            raise self.CollectError(f"--evocode-fork-from={point.text}: {error}") from None

    def _first_round(self, task: Task, name: str | None) -> int | None:
        names = [round_.name for round_ in task.rounds]
        if name is not None and name not in names:
            raise self.CollectError(
                f"--evocode-from={name}: {task.name} has no such round; its rounds are {', '.join(names)}"
            )
        return None if name is None else names.index(name) + 1


class CollectionHooks:
    """Hooks that take tasks over from pytest, and complete and split the selection. Registered in every process."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._only_tasks_failed = True
        self._resuming = ""

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Return the collector of a directory that is a task or lies in one, or is foreign; None for any other."""
        task = _innermost_task(path)
        if task is None and not self._is_foreign(path):
            return None
        keep_out_conftest(parent.config, path)
        if task is None:
            return pytest.Dir.from_parent(parent, path=path)  # Not the package that it may be, which is imported.
        kind = TaskDirectory if task == path else InsideTask
        collector: pytest.Collector = kind.from_parent(parent, path=path)
        return collector

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore the files of a foreign project, so that only its tasks are left."""
        if self._is_foreign(collection_path.parent) and not collection_path.is_dir():
            return True
        return None

    def _is_foreign(self, directory: Path) -> bool:
        projects = foreign_projects(self._session.config)
        return projects is not None and projects.hold(directory)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        """Where a task has nothing of the name that was asked for, say what it has."""
        # All that is made now stays, and the garbage collector would look through it again and again, above all when
        # pytest ends. What an earlier session of this process has left may go.
        was_enabled = gc.isenabled()
        gc.disable()
        gc.unfreeze()
        try:
            return (yield)
        except pytest.UsageError as error:
            raise pytest.UsageError(*error.args, *self._rounds_instead(session.config)) from None
        finally:
            gc.freeze()
            if was_enabled:
                gc.enable()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count what could not be collected, and note whether it was only tasks."""
        if report.failed:
            self._session.errors += 1
            self._only_tasks_failed &= report.nodeid.endswith(TASK_FILE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """After everybody's selection and ordering, bring the rounds before a selected one along, in order."""
        result = yield
        settings = self._session.settings
        if settings.check or settings.warm:
            items[:] = keep_together(items)
        else:
            restored, left_out = restore_rounds(items)
            _count_as_selected(config, set(restored).difference(items))
            items[:], others, selected = split(restored, settings.shard, self._session.expected_seconds)
            if left_out or others:
                config.hook.pytest_deselected(items=[*left_out, *others])
            self._resuming = self._session.select(selected)
        return result

    def _rounds_instead(self, config: pytest.Config) -> Iterator[str]:
        """Yield for each name on the command line that is no attempt or round of its task which there are."""
        settings = self._session.settings
        for argument in () if settings.check or settings.warm else config.args:
            place, *names = argument.split("::")
            path = config.invocation_params.dir / place
            task = _innermost_task(path)
            inside = path.relative_to(task).parts if task is not None else ()
            if task is None or not (names or inside[1:]):
                continue
            file = task / TASK_FILE
            shown = os.path.normpath(os.path.join(place, *[".."] * len(inside), TASK_FILE))
            if inside[:1] == ("steps",):  # The directory of a round, or a file in it.
                names = [inside[1]]
            try:
                rounds = [round_.name for round_ in settings.load(file.parent).rounds]
            except TaskError:
                continue
            agents = [agent.id for agent in self._session.roster.agents]
            attempts = [attempt_name(each, 1 + number) for number in range(settings.attempts) for each in agents]
            known = [*attempts, *(f"{attempt}::{name}" for attempt in attempts for name in rounds)]
            if path == file and "::".join(names) in known:
                continue
            near = [each for each in known if names == each.split("::")[1:]]
            near = near or get_close_matches("::".join(names), known, n=1)
            guess = f"did you mean {shown}::{near[0]}? " if near else ""
            yield f"{guess}{shown} has the rounds {', '.join(rounds)}, each for {', '.join(attempts)}"

    def pytest_report_collectionfinish(self, config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
        """Tell what there is of a run that is resumed, how long shards should take, and what is not limited."""
        session = self._session
        shards = describe_shards(session.selected, session.settings.shard, session.expected_seconds)
        # An engine, which is asked what it can limit, is not even looked for where nothing is run.
        runs = session.selected and session.settings.cluster is None and session.plays
        limits = describe_limits(session.selected, session.engine) if runs else ""
        images = session.describe_images(session.selected) if runs else ""
        forks = describe_forks(items, session.settings.fork_from)
        return [f"evocode: {line}" for line in (self._resuming, *forks, shards, limits, images) if line]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let the sound tasks run beside a broken one, as long as nothing else is broken."""
        if self._session.errors and self._only_tasks_failed:
            session.config.option.continue_on_collection_errors = True


def _count_as_selected(config: pytest.Config, brought: set[pytest.Item]) -> None:
    """Take rounds that are brought along out of those that pytest counts as deselected, since they are run."""
    reporter: pytest.TerminalReporter | None = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and (deselected := reporter.stats.get("deselected")):
        deselected[:] = [item for item in deselected if item not in brought]


def _innermost_task(path: Path) -> Path | None:
    return next((directory for directory in (path, *path.parents) if is_meant_as_task(directory)), None)


Shard = tuple[int, int]
"""One of several sessions that make attempts together: which, from 1, of how many."""

#: What an agent's turn counts for that has no timeout, in seconds.
_NO_TIMEOUT = 3600.0


def restore_rounds(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items with the rounds of every chain together, in order, from the first to the last selected one.

    The second list has those that are left out, because they come before the round that chains begin with. Forks have
    theirs, which are skipped.
    """
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if isinstance(item, RoundItem) and not item.is_played:
            left_out.append(item)
            continue
        kept.append(item)
        if isinstance(item, RoundItem):
            item.parent.rounds = item.parent.rounds.including(item.index)
    restored: list[pytest.Item] = []
    seen: set[AttemptCollector] = set()
    for item in kept:
        if not isinstance(item, RoundItem) or not item.parent.is_chain:
            restored.append(item)
        elif item.parent not in seen:
            seen.add(item.parent)
            rounds = item.parent.rounds
            first = rounds.rounds_before if item.parent.fork is None else 0
            restored += item.parent.collect()[first : rounds.last]
    forks = {attempt for attempt in seen if attempt.fork is not None}
    return restored, [item for item in left_out if item.parent not in forks]


def split(
    items: Sequence[pytest.Item], shard: Shard | None, expected: ExpectedAmounts | None = None
) -> tuple[list[pytest.Item], list[pytest.Item], Selected]:
    """Return the items that a session runs, those that other shards run, and the attempts of all of them.

    Items that are no rounds belong to every shard. Shards are made by the times that are expected, else by timeouts.
    """
    attempts = {item.parent: _name(item.parent) for item in items if isinstance(item, RoundItem)}
    rounds = [item for item in items if isinstance(item, RoundItem)]
    if shard is None:
        return list(items), [], _selected(rounds, elsewhere=set())
    if expected is None:
        # Not the time that earlier attempts took, which differs from machine to machine.
        seconds = {name: allowed_seconds(each.task.rounds[: each.rounds.last]) for each, name in attempts.items()}
    else:
        seconds = {
            _name(attempt): expected.of_attempt(attempt.agent.id, attempt.task.name, sorted(indices))
            for attempt, indices in _indices(rounds).items()
        }
    own = share(seconds, shard)
    left = {attempt for attempt, name in attempts.items() if name not in own}
    kept = [item for item in items if item.parent not in left]
    return kept, [item for item in items if item.parent in left], _selected(rounds, elsewhere=left)


def _name(attempt: AttemptCollector) -> tuple[str, ...]:
    return attempt.task.name, attempt.agent.id, f"{attempt.number:09}", attempt.nodeid


def _selected(rounds: Iterable[RoundItem], *, elsewhere: Set[AttemptCollector]) -> Selected:
    return tuple(
        SelectedAttempt(
            task=attempt.task.name,
            agent=attempt.agent.id,
            number=attempt.number,
            facts=task_facts(attempt.task),
            rounds=tuple(sorted(of_attempt)),
            brought_along=tuple(filter(attempt.rounds.brings_along, sorted(of_attempt))) if attempt.is_chain else (),
            directory=attempt.task.directory,
            begin=attempt.rounds.begin_with or 1,
            single=not attempt.is_chain,
            limits=tuple(sorted(LIMITS.keys() & attempt.task.config.environment.model_fields_set)),
            elsewhere=attempt in elsewhere,
        )
        for attempt, of_attempt in sorted(_indices(rounds).items(), key=lambda pair: _name(pair[0]))
    )


def _indices(rounds: Iterable[RoundItem]) -> dict[AttemptCollector, set[int]]:
    """Return the indices of the rounds of each attempt."""
    indices: dict[AttemptCollector, set[int]] = defaultdict(set)
    for item in rounds:
        if item.is_played:
            indices[item.parent].add(item.index)
    return indices


LIMITS = {
    "cpus": "sets no limit of processors",
    "storage_mb": "sets no limit of storage",
    "storage": "sets no limit of storage",
    "gpu_types": "does not choose the kind of GPU",
}
"""Keys of ``[environment]`` that not every engine can do anything with, and what it does not do."""


def describe_forks(items: Iterable[pytest.Item], point: ForkPoint | None) -> list[str]:
    """Return a line for each run of another agent from whose states attempts go on."""
    attempts = {item.parent for item in items if isinstance(item, RoundItem)}
    runs: dict[str, int] = defaultdict(int)
    for attempt in attempts:
        if attempt.fork is not None:
            runs[attempt.fork.source.run] += 1
    return [
        f"{number} attempt{'s go' if number > 1 else ' goes'} on from what {point.agent} left after {point.round} in "
        f"the run {run}, in a new conversation"
        for run, number in sorted(runs.items())
        if point is not None
    ]


def describe_limits(selected: Selected, engine: Engine) -> str:
    """Return what tasks ask for and do not get: limits that the engine does not set."""
    asking: dict[str, set[str]] = defaultdict(set)
    for each in selected:
        for key in set(each.limits) & set(engine.without_effect):
            asking[LIMITS[key]].add(each.task)
    found = {what: "1 task asks" if len(tasks) == 1 else f"{len(tasks)} tasks ask" for what, tasks in asking.items()}
    said = [f"the {engine.name} environment {what}, which {number} for" for what, number in sorted(found.items())]
    return "; ".join(said)


def describe_shards(selected: Selected, shard: Shard | None, expected: ExpectedAmounts | None) -> str:
    """Return how long each shard is expected to take, empty where nothing was measured or there are no shards."""
    if shard is None or expected is None or not selected:
        return ""
    seconds: dict[tuple[str, ...], float] = {
        (each.task, each.agent, f"{each.number:09}"): expected.of_attempt(each.agent, each.task, each.rounds)
        for each in selected
    }
    shares = [share(seconds, (number, shard[1])) for number in range(1, shard[1] + 1)]
    times = ", ".join(clock(math.fsum(seconds[name] for name in each)) for each in shares)
    known = sum(expected.knows(each.agent, each.task) for each in selected)
    return (
        f"shards are expected to take {times} one attempt after the other; measured before: {known} of "
        f"{len(selected)} attempts (times {expected.digest}, the same in every shard)"
    )


def share(seconds: Mapping[tuple[str, ...], float], shard: Shard) -> set[tuple[str, ...]]:
    """Return the names of a shard's attempts, given the seconds that each attempt is expected to take.

    Attempts are dealt out longest first, equally long ones by name, each to the shard with the least to do until then.
    So the order of the mapping does not matter, and shares differ by the time of one attempt at most.

    >>> attempts = {("a",): 10.0, ("b",): 30.0, ("c",): 10.0, ("d",): 10.0}
    >>> share(attempts, (1, 2)), sorted(share(attempts, (2, 2)))
    ({('b',)}, [('a',), ('c',), ('d',)])
    """
    number, of = shard
    loads = [0.0] * of
    found = set()
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        lightest = loads.index(min(loads))
        loads[lightest] += seconds[name]
        if lightest == number - 1:
            found.add(name)
    return found


def expected_seconds(settings: Settings, task: Task, agent: str, only_round: str = "") -> float:
    """Return how long the last attempt of an agent at a task took; if there was none, the sum of the task's timeouts.

    ``only_round`` names the round of a single-round attempt.
    """
    if not (settings.check or settings.warm):
        seconds = last_seconds(settings.results, task.name, agent, settings.mode, only_round)
        if seconds is not None:
            return seconds
    return allowed_seconds([round_ for round_ in task.rounds if only_round in ("", round_.name)])


def allowed_seconds(rounds: Iterable[TaskRound]) -> float:
    """Return the sum of the timeouts of agents and suites, which is known before anything was run."""
    return sum(
        (_NO_TIMEOUT if round_.agent_timeout is None else round_.agent_timeout) + round_.verifier_timeout
        for round_ in rounds
    )
