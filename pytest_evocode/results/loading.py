"""Loading of all attempts and runs below some directories, whether we, Harbor or EvoCode-Bench wrote them."""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pytest_evocode.errors import DamagedRecord, RecordFault, UsageError
from pytest_evocode.names import TASK_FILE, ForkPoint, first_played
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.results.foreign import OLD_RESULTS, HarborTrial, TaskLookup, is_trial, read_trial, read_turn
from pytest_evocode.results.parsing import Record, check_attempt, check_run, parse_object, read_own_attempt, read_record
from pytest_evocode.results.plain_files import open_plain
from pytest_evocode.results.records import (
    AttemptRecord,
    AttemptState,
    ForkSource,
    RoundRecord,
    RunRecord,
    TaskFacts,
    Unscored,
    Usage,
    total_usage,
)

Layout = Literal["evocode", "harbor", "multiround"]


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """The record of an attempt, and where it was found."""

    record: AttemptRecord
    path: Path
    """The attempt's directory."""
    run: str
    """The name of the session, or of Harbor's job."""
    finished: bool
    layout: Layout
    selected: tuple[int, ...]
    """The indices of the rounds that were selected; one of them without a record was not reached."""
    waiting: bool = False
    """Whether the rounds that were not selected wait for a later session."""
    ended_without: bool = False
    """Whether its session came to an end by itself all the same where the attempt did not."""
    unrecorded: Usage | None = None
    """What turns used that have no record, because the attempt was interrupted."""

    @property
    def partial(self) -> bool:
        """Whether rounds were left out that an attempt in its mode goes through."""
        return len(self.selected) < len(whole_chain(self.record))

    @property
    def is_part(self) -> bool:
        """Whether rounds were left out by choice, and do not wait for a later session."""
        return self.partial and not self.waiting

    @property
    def is_cut_short(self) -> bool:
        """Whether its rounds that are missing count as not passed, because it came to no end."""
        return not self.finished and not self.waiting and self.unscored is None

    @property
    def unscored(self) -> Unscored | None:
        """Why no score counts it: it never started, or it was interrupted; None of one that counts."""
        rounds = self.record.rounds
        if rounds and all(each.unscored == "never started" for each in rounds):
            return "never started"
        return "unfinished" if not (self.finished or self.waiting or self.ended_without) else None

    @property
    def usage(self) -> Usage | None:
        """What all of its turns used, as far as that is known; None where no model was used."""
        return total_usage([*(each.usage for each in self.record.rounds), self.unrecorded])

    def as_whole(self) -> StoredAttempt:
        """Return the attempt as an unfinished one of which all rounds were selected."""
        return replace(self, selected=whole_chain(self.record), finished=False, ended_without=True)

    @property
    def round_names(self) -> list[str]:
        """The names of the rounds that were selected, in order, as far as they are known."""
        names = self.record.declared_rounds
        return [names[index - 1] or f"round {index}" for index in self.selected]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The record of a pytest session, and where it was found."""

    record: RunRecord
    path: Path


@dataclass(slots=True)
class Results:
    """Everything that was loaded from some directories."""

    attempts: list[StoredAttempt] = field(default_factory=list)
    runs: list[StoredRun] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each file that could not be read or counted and was left out, with the reason and what to do."""

    @property
    def are_empty(self) -> bool:
        """Whether no attempt was made, or was to be made by a run."""
        selected = (agents.values() for run in self.runs for agents in run.record.selected.values())
        return not self.attempts and not any(numbers for agents in selected for numbers in agents)

    @property
    def run_names(self) -> list[str]:
        """The names of all runs, those included that left nothing."""
        return sorted({*(each.run for each in self.attempts), *(each.record.run for each in self.runs)})


def whole_chain(record: AttemptRecord) -> tuple[int, ...]:
    """Return the indices of the rounds that an attempt in its mode goes through, if nothing is left out."""
    names = record.declared_rounds
    begin = 1
    if record.start is not None and record.mode != "single-round":
        begin = names.index(record.from_round) + 1 if record.from_round in names else min(recorded(record), default=1)
    return tuple(range(begin, len(names) + 1))


def recorded(record: AttemptRecord) -> tuple[int, ...]:
    """Return the indices of the rounds that have a record and were selected."""
    counting = (round_.index for round_ in record.rounds if not round_.brought_along)
    return tuple(sorted(index for index in counting if index <= len(record.declared_rounds)))


def without_copies(attempts: Sequence[StoredAttempt]) -> tuple[list[StoredAttempt], list[str]]:
    """Return the attempts, each once and in the same order, and what to tell of those that are left out.

    Of several records of one attempt that was begun once, the one counts that is farthest, whichever is read first: one
    that has ended, of which all rounds were selected, that was regraded last.
    """
    alike: dict[tuple[object, ...], list[StoredAttempt]] = defaultdict(list)
    for each in attempts:
        record = each.record
        alike[each.run, record.task, record.agent, record.attempt, record.mode, record.from_round].append(each)
    left_out: dict[Path, tuple[StoredAttempt, StoredAttempt]] = {}
    for group in alike.values():
        kept: list[StoredAttempt] = []
        for each in sorted(group, key=_rank) if len(group) > 1 else ():
            if (same := next((other for other in kept if _is_one(each, other)), None)) is None:
                kept.append(each)
            else:
                left_out[each.path] = each, same
    told = list(_tell([left_out[path] for path in sorted(left_out)]))
    return [each for each in attempts if each.path not in left_out], told


def _rank(attempt: StoredAttempt) -> tuple[object, ...]:
    """Return a key by which the record of an attempt that is farthest comes first."""
    record = attempt.record
    regraded = tuple(-ord(letter) for letter in record.regraded or "")
    return not attempt.finished, attempt.partial, (not regraded, regraded), -len(record.rounds), str(attempt.path)


def _is_one(attempt: StoredAttempt, farther: StoredAttempt) -> bool:
    """Return whether two records are of one attempt, which another session, on another machine, may have alike."""
    record, other = attempt.record, farther.record
    if record.started and other.started:
        return record.started == other.started
    # One that was broken off does not tell when it was begun.
    return not record.started and all(round_ in other.rounds for round_ in record.rounds)


def _tell(left_out: Sequence[tuple[StoredAttempt, StoredAttempt]]) -> Iterator[str]:
    copies = []
    for each, same in left_out:
        is_earlier = not each.record.started or each.record.regraded != same.record.regraded
        if is_earlier or each.record == same.record:
            copies.append((each, same))
        else:
            yield (
                f"{each.path}: another record of this attempt is in {same.path}, and only that counts; leave the "
                "directory out whose record is wrong"
            )
    if copies:
        each, same = copies[0]
        more = f"; so are {len(copies) - 1} more" if len(copies) > 1 else ""
        yield f"{each.path}: a copy of {same.path}, which counts once{more}"


_NO_RUN = "attempts that its session was to make are not known; --tasks DIR counts tasks that have no result"
_DROP = "--evocode-resume sets it aside, verifies the round again where that can be done, and goes on"


def load_results(
    directories: Iterable[Path], *, cases: bool = False, tasks: Mapping[str, TaskFacts] | None = None
) -> Results:
    """Return all attempts and runs below some directories, each once, in the order of their paths.

    A file that cannot be read or contradicts itself is left out and named in ``problems``, and so are copies.

    Args:
        directories: Results directories of ours, Harbor's job directories, or EvoCode-Bench's tasks with their
            ``harbor_jobs``, at any depth.
        cases: Whether records have their cases, which take most of the memory; the number of cases is always there.
        tasks: Facts about tasks by name, for results of others, which do not have them. They are preferred to what a
            task.toml beside the results says.

    Raises:
        UsageError: One of the directories does not exist.
    """
    directories = list(directories)
    for directory in directories:
        if not directory.is_dir():
            raise UsageError(f"there is no directory {directory}")
    loader = _Loader(cases, TaskLookup(tasks or {}))
    with without_garbage_collection():
        for directory in directories:
            loader.visit(os.fspath(directory.resolve()))
        loader.complete_unfinished()
    results = loader.results
    # Whatever is counted later must not depend on the order in which directories are given.
    results.runs.sort(key=lambda run: run.path)
    results.attempts, told = without_copies(sorted(results.attempts, key=lambda attempt: attempt.path))
    results.problems += told
    return results


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector away while records are loaded and gone through, and from what there is at the end.

    None of it is garbage, and looking takes half of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # Or else the collector would look through all of it at its next run.
        if was_enabled:
            gc.enable()


class _Loader:
    """Walks through directories and collects the attempts and runs in them."""

    def __init__(self, cases: bool, tasks: TaskLookup) -> None:
        self.results = Results()
        self._cases = cases
        self._tasks = tasks
        self._numbers: Counter[tuple[object, ...]] = Counter()
        self._seen: set[str] = set()
        self._without_rounds: list[Path] = []
        """Attempts of which no round has a record, that only their run's record tells something of."""

    def visit(self, directory: str) -> None:
        """Load what is in a directory and below."""
        if self._load_own(directory):
            return
        # Strings, because there are tens of thousands, and Path objects are slow.
        try:
            with os.scandir(directory) as entries:
                found = {entry.name: entry for entry in entries}
        except FileNotFoundError:  # Somebody removes what is there.
            return
        if TASK_FILE in found:  # A task: its steps/ is not that of an attempt.
            found = {name: entry for name, entry in found.items() if name == "harbor_jobs"}
        elif os.path.basename(directory) == "runs" and any(name.endswith(".json") for name in found):
            self._load_runs(Path(directory), found.keys())
            return
        elif self._load_attempt(directory, found.keys()):
            return
        for name, entry in sorted(found.items()):
            if entry.is_dir(follow_symlinks=False) and not name.startswith("."):
                self.visit(entry.path)

    def complete_unfinished(self) -> None:
        """Give attempts that were broken off what only their run's record has: their mode, and what was selected."""
        runs: dict[tuple[Path, str], list[RunRecord]] = defaultdict(list)
        for run in self.results.runs:
            runs[run.path.parent.parent, run.record.run].append(run.record)
        for index, attempt in enumerate(self.results.attempts):
            if attempt.layout == "evocode" and not attempt.finished and len(attempt.path.parents) > 4:
                # Sessions on several machines may have the same name once they are merged.
                of_name = runs[attempt.path.parents[4], attempt.run]
                if of_name:
                    self.results.attempts[index] = _completed(
                        attempt, max(of_name, key=lambda run: run.selects(attempt.record))
                    )
        for path in self._without_rounds:
            of_name = runs[path.parents[4], path.parent.name]
            self.results.attempts += filter(None, [next(filter(None, (_begun(path, run) for run in of_name)), None)])
        begun: dict[tuple[Path, str], set[tuple[str, str, int]]] = defaultdict(set)
        for attempt in self.results.attempts:
            if attempt.layout == "evocode" and len(attempt.path.parents) > 4:
                record = attempt.record
                begun[attempt.path.parents[4], attempt.run].add((record.task, record.agent, record.attempt))
        for index, stored in enumerate(self.results.runs):
            if stored.record.waiting:
                left = begun[stored.path.parent.parent, stored.record.run]
                self.results.runs[index] = replace(stored, record=_without_waiting(stored.record, left))
                self.results.problems.append(
                    f"{stored.path}: attempts of this run wait ({stored.record.waiting}), and rounds without a verdict "
                    f"do not count; go on with --evocode-resume={stored.record.run}"
                )

    def _load_own(self, place: str) -> bool:
        """Load an attempt that this version wrote, the fast way; return False for any other directory."""
        try:
            with open_plain(f"{place}/result.json") as file:
                record = read_own_attempt(file.read())
        except OSError:
            return False
        if record is not None:
            self._add_own(Path(place), record)
        return record is not None

    def _load_attempt(self, place: str, names: Set[str]) -> bool:
        """Load the attempt that is in a directory; return False where none is."""
        if "result.json" not in names:
            return "steps" in names and self._load_unfinished(Path(place), names)
        if place in self._seen:
            return True
        directory, path = Path(place), f"{place}/result.json"
        try:
            is_attempt = bool(names & {"steps", "verifier"})
            values = self._parse(path, _advice(directory) if is_attempt else "")
            if values is None:
                return is_attempt
            if "declared_rounds" in values:
                self._add_own(directory, read_record(AttemptRecord, values, cases=self._cases))
            elif is_trial(values):
                self._add_trial(directory, values, finished=True)
            elif is_attempt:
                raise DamagedRecord("it is the record of neither our attempts nor Harbor's")
            else:
                return False
        except RecordFault as error:
            self._problem(path, error, _advice(directory))
        return True

    def _add_own(self, directory: Path, record: AttemptRecord) -> None:
        """Add an attempt of ours that has its ``result.json``, unless the record contradicts itself."""
        try:
            check_attempt(record)
        except DamagedRecord as error:
            self._problem(directory / "result.json", error, _advice(directory))
        else:
            self._add(directory, record, "evocode", finished=_has_ended(record))

    def _load_unfinished(self, directory: Path, names: Set[str]) -> bool:
        """Load the finished rounds of an attempt that was broken off, and so has no ``result.json``."""
        rounds = []
        for path in sorted(directory.glob("steps/*/round.json")):
            if (record := self._read(RoundRecord, path, _DROP)) is not None:
                if record.round == path.parent.name:
                    rounds.append(record)
                else:
                    self._problem(path, DamagedRecord(f"it is the record of {record.round}"), "remove it")
        states = []
        for path in (directory / STATE_FILE, *sorted(directory.glob(f"steps/*/{STATE_FILE}"))):
            advice = f"remove {directory} to run the attempt anew with --evocode-resume"
            if path.exists() and (state := self._read(AttemptState, path, advice)) is not None:
                states.append(state)
        if rounds:
            attempt = _unfinished(rounds, states)
            try:
                check_attempt(attempt)
                used = _unrecorded(directory, {record.round for record in rounds})
                self._add(directory, attempt, "evocode", finished=False, unrecorded=used)
            except DamagedRecord as error:
                self._problem(directory, error, "remove the steps that do not belong there")
        elif "config.json" in names and any(directory.glob("steps/*/verifier/reward.*")):
            config = self._parse(directory / "config.json")
            if config is not None and is_trial(config):
                self._add_trial(directory, config, finished=False)
        elif len(directory.parents) > 4 and directory not in self._without_rounds:
            self._without_rounds.append(directory)
        return True

    def _load_runs(self, directory: Path, names: Set[str]) -> None:
        for name in sorted(names):
            path = directory / name
            if not name.endswith(".json") or name.startswith(".") or str(path) in self._seen:
                continue
            self._seen.add(str(path))
            if (record := self._read(RunRecord, path, _NO_RUN, check=check_run)) is not None:
                self.results.runs.append(StoredRun(record, path))

    def _add_trial(self, directory: Path, values: dict[str, Any], *, finished: bool) -> None:
        layout: Layout = "multiround" if (directory / OLD_RESULTS).is_file() else "harbor"
        trial = HarborTrial(directory, values)
        record = read_trial(trial, 1, self._tasks, cases=self._cases)
        self.results.problems += trial.problems
        # Harbor does not number attempts; those of one job at one task are numbered by their directories' names.
        key = (directory.parent, record.task, record.agent, record.mode, record.from_round)
        self._numbers[key] += 1
        self._add(directory, called(record, attempt=self._numbers[key]), layout, finished=finished)

    def _add(
        self,
        directory: Path,
        record: AttemptRecord,
        layout: Layout,
        *,
        finished: bool = True,
        unrecorded: Usage | None = None,
    ) -> None:
        place = str(directory)
        if place in self._seen:
            return
        self._seen.add(place)
        if layout == "evocode" and self._cases:
            record, problems = AttemptDirectory(directory).with_all_cases(record)
            self.results.problems += (f"{problem}; skipped" for problem in problems)
        # Others leave out what was not reached; we do so only where the attempt has not ended.
        selected = (recorded(record) if layout == "evocode" and finished else ()) or whole_chain(record)
        run = place.rsplit(os.sep, 2)[-2]
        self.results.attempts.append(
            StoredAttempt(
                record,
                directory,
                run,
                finished,
                layout,
                selected,
                # Harbor makes single rounds as trials of their own; only a run's record tells of more.
                ended_without=not finished and bool(record.finished),
                unrecorded=unrecorded,
            )
        )

    def _read(
        self, kind: type[Record], path: Path, advice: str, check: Callable[[Record], None] = lambda _: None
    ) -> Record | None:
        """Return the record in a file, or None, with a line in ``problems`` that ends with ``advice``."""
        if (values := self._parse(path, advice)) is not None:
            try:
                check(record := read_record(kind, values, cases=self._cases))
                return record
            except RecordFault as error:
                self._problem(path, error, advice)
        return None

    def _parse(self, path: Path | str, advice: str = "") -> dict[str, Any] | None:
        """Return the JSON object in a file, or None, with a line in ``problems``, where there is none."""
        try:
            with open_plain(path) as file:
                return parse_object(file.read())
        except (OSError, RecordFault) as error:
            self._problem(path, error, advice)
            return None

    def _problem(self, path: Path | str, error: Exception, advice: str = "") -> None:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, RecordFault) and not isinstance(error, DamagedRecord):
            advice = ""  # The error has it.
        self.results.problems.append(f"{path}: {why}; skipped{f': {advice}' if advice else ''}")


def _advice(directory: Path) -> str:
    """Return what to do about a ``result.json`` that cannot be counted."""
    if any(directory.glob("steps/*/round.json")):
        return "move it away, and the records of the attempt's rounds count in its place"
    return "restore it, or make the attempt again"


def _has_ended(record: AttemptRecord) -> bool:
    """Return whether the attempt of a ``result.json`` has ended; in single-round mode each round writes it again."""
    return record.mode != "single-round" or len(record.rounds) == len(record.declared_rounds)


def _completed(attempt: StoredAttempt, run: RunRecord) -> StoredAttempt:
    """Return an attempt that was broken off with what the record of its run says of it, and of its task."""
    update: dict[str, Any] = {"mode": run.mode}
    known = run.tasks.get(attempt.record.task)
    # The task may have changed before the run went on; an attempt goes on at what it was begun at.
    if known is not None and not attempt.record.facts and attempt.record.task_hash in ("", known.task_hash):
        update |= {"facts": known.facts, "task_hash": known.task_hash, "declared_rounds": known.facts.rounds}
    record = _begun_as(run, attempt.record.model_copy(update=update))
    part = run.partial.get(record.task, {}).get(record.agent, {}).get(record.attempt)
    made = recorded(record)
    selected = chain = whole_chain(record)
    if part is not None:
        # A chain has its records in order: rounds before the first were not needed.
        first = 1 if record.mode == "single-round" else min(made, default=1)
        selected = tuple(sorted({*made, *(index for index in part if index in chain and index >= first)}))
    waiting = bool(run.waiting) and not record.finished
    if waiting:
        selected = made  # The others are neither passed nor failed.
    # In single-round mode each round writes the attempt's record again.
    finished = bool(record.finished) and set(selected) <= set(made)
    ended = not (finished or run.broke_off)
    return replace(attempt, record=record, selected=selected, finished=finished, waiting=waiting, ended_without=ended)


def _begun_as(run: RunRecord, record: AttemptRecord) -> AttemptRecord:
    """Return the record of an attempt that was broken off with what its run says of where chains begin."""
    if run.fork_from is None:
        return record.model_copy(update={"from_round": run.from_round})
    point = ForkPoint.parse(run.fork_from)
    names = record.declared_rounds
    first = first_played(point.label, names)
    source = record.forked_from or ForkSource(point=point.label, agent=point.agent, round=point.round)
    from_round = names[first - 1] if first is not None and first <= len(names) else None
    return record.model_copy(update={"from_round": from_round, "forked_from": source})


def _begun(path: Path, run: RunRecord) -> StoredAttempt | None:
    """Return an attempt that was interrupted before any of its rounds had a record; None where it is not the run's."""
    task, agent = path.parents[3].name, path.parents[1].name
    number = path.name.removeprefix(f"{task}__a")
    is_selected = number.isdecimal() and int(number) in run.numbers(task, agent)
    known = run.tasks.get(task)
    if not is_selected or known is None or not run.broke_off:
        return None
    record = AttemptRecord(
        task=task,
        agent=agent,
        attempt=int(number),
        mode=run.mode,
        environment=run.environment,
        task_hash=known.task_hash,
        made_by=run.agents.get(agent, {}),
        started="",
        finished="",
        declared_rounds=known.facts.rounds,
        facts=known.facts,
        rewards={},
        rounds=(),
    )
    record = _begun_as(run, record)
    chain = whole_chain(record)
    return StoredAttempt(record, path, run.run, False, "evocode", chain, unrecorded=_unrecorded(path, ()))


def _unrecorded(attempt: Path, recorded: Container[str]) -> Usage | None:
    """Return what turns used of rounds that have no record."""
    names = sorted(path.name for path in (attempt / "steps").glob("*") if path.name not in recorded)
    return total_usage(usage_of_turn(attempt, name) for name in names)


def usage_of_turn(attempt: Path, round_name: str) -> Usage | None:
    """Return what a turn used, as its trajectory tells, which may be of a part of it; None where it does not."""
    try:
        with open_plain(attempt / "steps" / round_name / "agent" / "trajectory.json") as file:
            return read_turn(file.read(), {}).usage
    except OSError:
        return None


def _without_waiting(run: RunRecord, begun: Set[tuple[str, str, int]]) -> RunRecord:
    """Return the record of a run that waits with only the attempts as selected that have left something."""
    selected = {
        task: {
            agent: tuple(number for number in numbers if (task, agent, number) in begun)
            for agent, numbers in agents.items()
        }
        for task, agents in run.selected.items()
    }
    return run.model_copy(update={"selected": selected})


def called(record: AttemptRecord, **names: str | int) -> AttemptRecord:
    """Return the same attempt under another number or name of its agent, by the names of these fields."""
    if all(getattr(record, field) == name for field, name in names.items()):
        return record
    rounds = tuple(round_.model_copy(update=names) for round_ in record.rounds)
    return record.model_copy(update={**names, "rounds": rounds})


def _unfinished(rounds: list[RoundRecord], states: Sequence[AttemptState]) -> AttemptRecord:
    """Return the record of an attempt that was broken off, from those of its rounds and from its states."""
    rounds.sort(key=lambda round_: round_.index)
    names = {round_.index: round_.round for round_ in rounds}
    first = rounds[0]
    state = states[0] if states else AttemptState(environment="", task_hash="")
    return AttemptRecord(
        task=first.task,
        agent=first.agent,
        attempt=first.attempt,
        environment=state.environment,
        task_hash=state.task_hash,
        made_by=state.made_by,
        forked_from=state.forked_from,
        started="",
        finished="",
        declared_rounds=tuple(names.get(index, "") for index in range(1, first.declared_rounds + 1)),
        rewards={},
        rounds=tuple(rounds),
    )
