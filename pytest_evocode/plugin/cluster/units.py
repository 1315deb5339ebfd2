"""The attempts of a session on a cluster: what each needs of a node, what it is told, and what is kept of it here."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.connection_limits import MOST
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem, items_by_attempt, name_for_people
from pytest_evocode.plugin.cluster.orders import FILE, AttemptOrder, FileCopies, Message
from pytest_evocode.plugin.cluster.placement import Needs
from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
from pytest_evocode.plugin.collection import expected_seconds
from pytest_evocode.plugin.session import EvocodeSession, given_up
from pytest_evocode.plugin.settings import setting_name
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptRecord, RoundRecord
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.secrets import is_secret_name
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.tasks.task import RoundSelection

#: Variables that say where a provider is, of models or of a storage: its keys would go to somebody else without them.
_ADDRESSES = re.compile(r".+_(BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL|ENDPOINT_URL_S3|REGION)|FSSPEC_.+")


MOST_NOT_BEGUN = 3
"""How many tries in a row may end with their nodes before they begin."""


@dataclass(slots=True, eq=False)
class AttemptUnit:
    """An attempt that a session makes on a cluster, or a round that is run by itself."""

    name: str
    """Tells it from all others of the run; also the name of its directory on nodes."""
    attempt: AttemptCollector
    alone: RoundItem | None
    items: list[RoundItem]
    """Those that have not been run."""
    directory: AttemptDirectory
    needs: Needs
    priority: float
    trial: RemoteTrial = field(default_factory=RemoteTrial)
    tries: int = 0
    losses: list[str] = field(default_factory=list)
    """Why earlier tries were lost."""
    reported: list[RoundItem] = field(default_factory=list)
    """Those that have been run."""
    refused: str = ""
    """Why this try cannot go on with what an earlier one left; what else it sends does not count."""
    order: AttemptOrder | None = None
    """What the first node was told: what the agent is made of may look different later."""
    was_begun: bool = False
    """Whether anything was heard of this try: its process was started."""
    not_begun: int = 0
    """How many tries ended with their node before anything was heard of them."""
    gives_way: bool = False
    """Whether it was told to stop for want of memory, to go on later."""

    @property
    def shown(self) -> str:
        """Its name for people."""
        return name_for_people((self.attempt, self.alone))

    def count_loss(self, where: str, why: str, *, with_node: bool) -> bool:
        """Count a try that was lost, and return whether it counts against the attempt.

        One whose node had died before the try began cost nothing; several in a row do count, because then it is
        something else that keeps the attempt from beginning.
        """
        if with_node and not self.was_begun and self.not_begun < MOST_NOT_BEGUN:
            self.not_begun += 1
            return False
        self.not_begun = 0
        self.losses.append(f"{where}: {why}")
        return True

    @property
    def rounds(self) -> RoundSelection:
        """The rounds that are to be run."""
        return self.attempt.rounds if self.alone is None else RoundSelection.single(self.alone.index)


def units_of(session: EvocodeSession, items: Iterable[pytest.Item]) -> list[AttemptUnit]:
    """Return the attempts of a session's items."""
    resources = custom_resources(session)
    images: dict[Path, str] = {}
    units = []
    for (attempt, alone), of_attempt in items_by_attempt(items).items():
        task, agent = attempt.task, attempt.agent
        only_round = alone.name if alone is not None else ""
        directory = session.attempt_directory(task.name, agent.id, attempt.number, only_round=only_round)
        name = unit_name(session.run_name, directory)
        image = images.get(task.directory) or images.setdefault(task.directory, _image(task))
        seconds = expected_seconds(session.settings, task, agent.id, only_round)
        needs = needs_of(
            task, resources.get(agent.id, ()), places=(name, image) if session.settings.resume else (image,)
        )
        units.append(AttemptUnit(name, attempt, alone, of_attempt, directory, needs, seconds))
    return units


def unit_name(run: str, directory: AttemptDirectory) -> str:
    """Return a name for an attempt of a run that is also one for a directory, and the same in a later session."""
    digest = hashlib.sha256(os.fsencode("/".join(directory.path.parts[-4:]) + "/" + directory.only_round))
    return f"{run}-{digest.hexdigest()[:16]}"


def needs_of(task: Task, custom: tuple[tuple[str, float], ...] = (), places: tuple[str, ...] = ()) -> Needs:
    """Return what an attempt at a task needs, as ``task.toml`` declares it; one CPU where it does not."""
    declared = task.config.environment
    return Needs(
        cpus=float(declared.cpus) if declared.cpus is not None else 1.0,
        memory=(declared.memory_mb or 0) * 2**20,
        storage=(declared.storage_mb or 0) * 2**20,
        custom=custom,
        places=places,
    )


def _image(task: Task) -> str:
    """Return the tag by which a node that has the task's image has it."""
    named = task.config.environment.docker_image
    if named is not None or task.dockerfile is None:
        return named or task.name
    return f"evocode-task:{hash_directory(task.dockerfile.parent)[:32]}"


def custom_resources(session: EvocodeSession) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the resources of the cluster that attempts need because of their agents, by the agents' ids.

    Raises:
        pytest.UsageError: A line of the setting is wrong.
    """
    ids = {name: agent.id for agent in session.roster.agents for name in (agent.name, agent.id)}
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    for line in session.config.getini(setting := "evocode_cluster_resources"):
        name, _, amounts = line.rpartition(":")
        try:
            pairs = tuple((key, float(amount)) for key, _, amount in (part.partition("=") for part in amounts.split()))
        except ValueError:
            pairs = ()
        if not name or not pairs or any(not key or not amount > 0 for key, amount in pairs):
            raise pytest.UsageError(
                f"{setting_name(session.config, setting)}: {line!r}: write it as AGENT: NAME=AMOUNT, such as "
                "claude-code: licence=1"
            )
        if name.strip() in ids:  # Other sessions of the project have the others.
            found[ids[name.strip()]] = pairs
    return found


def order_of(session: EvocodeSession, unit: AttemptUnit, engine: str, task_hash: str) -> AttemptOrder:
    """Return what a node is to be told of an attempt, without what another node has left of it.

    Raises:
        UsageError: The attempt's agent cannot be sent to nodes.
    """
    attempt, settings = unit.attempt, session.settings
    return AttemptOrder(
        name=unit.name,
        run=session.run_name,
        task=attempt.task.name,
        task_hash=task_hash,
        directory_name=attempt.task.directory.name,
        agent=attempt.agent,
        declarations=session.roster.declarations,
        number=attempt.number,
        rounds=unit.rounds,
        only_round=unit.directory.only_round,
        engine=engine,
        verify=settings.verify,
        options=attempt.trial_options({}),
        environ=sent_variables(os.environ),
        search_path=tuple(sys.path),
        max_connections=settings.max_connections or MOST,
        made_agent=_made_by_hook(session, attempt),
    )


def sent_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that attempts get from the driver: keys, and where providers are.

    >>> sorted(sent_variables({"OPENAI_API_KEY": "sk-0", "OPENAI_BASE_URL": "http://x", "HOME": "/root"}))
    ['OPENAI_API_KEY', 'OPENAI_BASE_URL']
    >>> sorted(sent_variables({"AWS_ENDPOINT_URL": "http://x", "AWS_REGION": "x", "FSSPEC_S3_ENDPOINT_URL": "http://x"}))
    ['AWS_ENDPOINT_URL', 'AWS_REGION', 'FSSPEC_S3_ENDPOINT_URL']
    """
    return {name: value for name, value in environ.items() if is_secret_name(name) or _ADDRESSES.fullmatch(name)}


def _made_by_hook(session: EvocodeSession, attempt: AttemptCollector) -> bytes:
    """Return the agent that a hook of the project makes, with its class where that is in a conftest.py."""
    made = session.roster.make_by_hook(attempt.agent)
    if made is None:
        return b""
    import ray

    cloudpickle: Any = ray.cloudpickle

    module = sys.modules.get(type(made).__module__)
    try:
        if module is not None and module.__name__.rpartition(".")[2] == "conftest":
            cloudpickle.register_pickle_by_value(module)
        dumped: bytes = cloudpickle.dumps(made, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UsageError(
            f"--evocode-cluster: the agent {attempt.agent.name}, which a hook makes, cannot be sent to nodes "
            f"({error}); make it by an entry point, or as module:Class"
        ) from None
    return dumped


class AttemptFiles:
    """Writes an attempt's files into the results directory as they come.

    Of rounds that are run by themselves each is elsewhere, and their common record is put together here.
    """

    def __init__(self, unit: AttemptUnit) -> None:
        self._unit = unit
        self._copies = FileCopies(unit.directory.path)

    def take(self, message: Message) -> None:
        """Take a message about a file."""
        if self._unit.alone is None or message[1] != "result.json":
            self._copies.take(message)
        elif message[0] == FILE:
            self._add(AttemptRecord.model_validate(json.loads(message[2])))

    def _add(self, record: AttemptRecord) -> None:
        task, directory = self._unit.attempt.task, self._unit.directory
        with directory.composing() as earlier:
            if earlier is not None:
                rounds = {each.index: each for each in (*earlier.rounds, *record.rounds)}
                records = tuple(each for _, each in sorted(rounds.items()))
                update = {
                    "rounds": records,
                    "started": min(earlier.started, record.started),
                    "rewards": trial_rewards(records, range(1, len(task.rounds) + 1), task.reward_strategy),
                }
                record = record.model_copy(update=update)
            directory.write_attempt(record)


def give_up(unit: AttemptUnit, why: str) -> Iterator[RoundRecord]:
    """Yield records of the rounds that no node will run, as :func:`~pytest_evocode.plugin.session.given_up` does."""
    attempt = unit.attempt
    missing = unit.trial.missing([item.index for item in unit.items])
    brings_along = attempt.rounds.brings_along if attempt.is_chain else lambda index: False
    yield from given_up(attempt.task, attempt.agent.id, attempt.number, unit.directory, missing, why, brings_along)
