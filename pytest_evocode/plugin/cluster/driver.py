"""The driver's side of a run on a cluster: places attempts, takes what they send, and sees to those that are lost.

An item is run as soon as its round has a record.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import EvocodeError, UsageError
from pytest_evocode.llm.budget import RunSpending
from pytest_evocode.plugin.attempts import RoundItem, later, run_item, run_others, stops_before_tests
from pytest_evocode.plugin.cluster import orders
from pytest_evocode.plugin.cluster.node import NodeFacts, Sent, versions
from pytest_evocode.plugin.cluster.orders import pack_task, read_tree
from pytest_evocode.plugin.cluster.placement import (
    DISK,
    ClusterNode,
    Placement,
    choose_for_all,
    other_version,
    refuse_other_versions,
    versions_of,
)
from pytest_evocode.plugin.cluster.ray_cluster import STORAGE, RayCluster
from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
from pytest_evocode.plugin.cluster.units import AttemptFiles, AttemptUnit, give_up, order_of, units_of
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trial.context import Progress

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession

RETRIES = 1
"""How often an attempt that was lost is begun again."""
_TURN = 0.5  # seconds to wait for messages
_LOOK = 5.0  # seconds between two looks at which nodes there are
_STOPPING = 90.0
"""Seconds for all attempts to stop; they are told to within one."""

logger = logging.getLogger(__name__)


class ClusterRun:
    """A session's attempts on a cluster. One thread speaks to Ray; it and the session meet in the units' trials."""

    def __init__(self, session: EvocodeSession, address: str) -> None:
        """Join or start the cluster, and find out what its nodes have.

        Raises:
            UsageError: There is no such cluster, or a node has another version of this program or of Python.
            EnvironmentUnavailable: No node can run attempts.
        """
        self._session = session
        self._cluster = RayCluster(address)
        try:
            nodes = self._cluster.nodes()
            refuse_other_versions(versions(), self._cluster.ask_versions(nodes))
            self._facts = {node.id: facts for node, facts in self._cluster.look_at(nodes, session.settings.environment)}
            by_name = {node.name: self._facts[node.id] for node in nodes if node.id in self._facts}
            self.engine, self.description = choose_for_all(session.settings.environment, by_name)
        except BaseException:
            self._cluster.close()
            raise
        self.versions = versions_of(facts for facts in self._facts.values() if facts.engine == self.engine)
        """The versions of what the engine is made of on nodes, by name."""
        self.changed: queue.SimpleQueue[AttemptUnit] = queue.SimpleQueue()
        """Units of which something new is known."""
        self.notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        """What people should know, in lines."""
        self._placement = Placement()
        self._units: dict[str, AttemptUnit] = {}
        self._by_item: dict[tuple[pytest.Collector, pytest.Item | None], AttemptUnit] = {}
        self._files: dict[str, AttemptFiles] = {}
        self._archives: dict[Path, tuple[str, Any]] = {}
        self._running: dict[Any, tuple[AttemptUnit, int]] = {}
        """The attempts that nodes have, with the numbers of the tries, by Ray's references."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._meeting: threading.Thread | None = None
        """Asks nodes that have joined what they have."""
        self._some_are_unknown = False
        """Whether there are nodes that have not said yet what they have."""
        self._looked_at = time.monotonic()

    # For the session.

    def begin(self, items: Sequence[pytest.Item]) -> None:
        """Begin with the attempts of a session's items."""
        session = self._session
        units = units_of(session, items)
        self._spending = RunSpending(session.settings.results / "runs" / f"{session.run_name}.spent")
        self._cluster.begin(self._spending.cost_usd)
        self._set_nodes(self._cluster.nodes())
        for unit in units:
            self._units[unit.name] = unit
            self._by_item[unit.attempt, unit.alone] = unit
            self._files[unit.name] = AttemptFiles(unit)
            self._placement.add(unit.name, unit.needs, unit.priority)
        self._thread = threading.Thread(target=self._work, name="evocode-cluster", daemon=True)
        self._thread.start()

    def trial_of(self, attempt: pytest.Collector, alone: pytest.Item | None) -> RemoteTrial:
        """Return the trial of an attempt, or of a round that is run by itself."""
        return self._by_item[attempt, alone].trial

    def forget(self, unit: AttemptUnit) -> None:
        """Keep nothing more of an attempt for items: all its rounds were reported."""
        del self._by_item[unit.attempt, unit.alone]

    @property
    def progress(self) -> dict[str, Progress]:
        """The progress of the attempts that run, by name."""
        return {unit.shown: found for unit in list(self._units.values()) if (found := unit.trial.progress) is not None}

    def stop(self) -> None:
        """Stop all attempts, and wait until their containers and sandboxes are gone; what they sent is kept."""
        if self._thread is None:
            return
        self._stopping.set()
        with contextlib.suppress(Exception):  # The cluster may be what was lost.
            self._cluster.stop_all()
        self._thread.join(_STOPPING)

    def close(self) -> None:
        """Leave the cluster; what still runs there for this session stops by itself."""
        self._cluster.close()

    # The thread that speaks to Ray.

    def _work(self) -> None:
        try:
            while not (self._stopping.is_set() and not self._running):
                if not self._stopping.is_set():
                    self._place()
                done = self._cluster.ended(list(self._running))
                # What an attempt sent came to the broker before the attempt's end was known.
                for sent in self._cluster.take(0.0 if done else _TURN):
                    self._receive(sent)
                for reference in done:
                    self._conclude(reference)
                if time.monotonic() - self._looked_at > _LOOK:
                    self._looked_at = time.monotonic()
                    self._set_nodes(self._cluster.nodes())
        except Exception as error:
            logger.warning("the cluster is lost", exc_info=True)
            for unit in list(self._units.values()):
                self._give_up(unit, f"the cluster is lost: {type(error).__name__}: {error}")

    def _set_nodes(self, nodes: Sequence[ClusterNode]) -> None:
        """Take the nodes that there are now, the new ones when they have said what they have.

        They are asked while messages of attempts are taken: a driver that takes none for a while counts as lost.
        """
        new = [node for node in nodes if node.id not in self._facts]
        known = ((node, self._facts[node.id]) for node in nodes if node.id in self._facts)
        self._placement.set_nodes(_with_facts(node, facts) for node, facts in known if facts.engine == self.engine)
        self._some_are_unknown = bool(new)
        if new and (self._meeting is None or not self._meeting.is_alive()):
            self._meeting = threading.Thread(target=self._ask, args=(new,), name="evocode-new-nodes", daemon=True)
            self._meeting.start()

    def _ask(self, new: Sequence[ClusterNode]) -> None:
        try:
            answers = self._cluster.ask_versions(new)
            wrong = {node.id: other_version(versions(), answers[node.name]) for node in new if node.name in answers}
            fitting = [node for node in new if wrong.get(node.id) == ""]
            looked_at = {node.id: facts for node, facts in self._cluster.look_at(fitting, self.engine)}
        except Exception:  # The cluster is lost, or the session over: the other thread sees to that.
            logger.info("new nodes could not be asked", exc_info=True)
            return
        for node in new:
            why = wrong.get(node.id) or "it does not answer"
            facts = looked_at.get(node.id, NodeFacts("", why, frozenset(), (0, 0)))
            if facts.engine != self.engine:
                self.notes.put(f"the node {node.name} gets no attempts: {facts.description}")
            self._facts[node.id] = facts

    def _place(self) -> None:
        for name, needs in ({} if self._some_are_unknown else self._placement.impossible()).items():
            wanted = ", ".join(f"{amount:g} {resource}" for resource, amount in needs.custom)
            self._give_up(self._units[name], f"no node of the cluster has {wanted or 'an environment for it'}")
        while (found := self._placement.next()) is not None:
            name, node = found
            unit = self._units[name]
            try:
                self._start(unit, node)
            except (EvocodeError, OSError) as error:
                self._placement.ended(name)
                self._give_up(unit, str(error))

    def _start(self, unit: AttemptUnit, node: ClusterNode) -> None:
        directory = unit.attempt.task.directory
        if directory not in self._archives:
            self._archives[directory] = hash_directory(directory), self._cluster.keep(pack_task(directory))
        task_hash, archive = self._archives[directory]
        if unit.order is None:
            unit.order = order_of(self._session, unit, self.engine, task_hash)
        order = replace(unit.order, spent=self._spending.cost_usd)
        if unit.tries or self._session.settings.resume is not None:
            order = replace(order, resume=True, files=read_tree(unit.directory.path))
        unit.tries += 1
        unit.refused, unit.was_begun = "", False
        logger.info("%s begins on %s, try %d", unit.shown, node.name, unit.tries)
        self._running[self._cluster.start(order, unit.tries, archive, unit.needs, node)] = unit, unit.tries

    def _receive(self, sent: Sent) -> None:
        name, number, node, message = sent
        unit, kind = self._units.get(name), message[0]
        if unit is not None:
            unit.was_begun |= number == unit.tries
        if kind == orders.SPENT:
            self._spending.add(message[1])
        elif kind == orders.MEMORY:
            self._see_memory(node, *message[1:])
        elif unit is None or number != unit.tries or unit.trial.has_ended or unit.refused:
            return  # Of a try that counts as lost.
        elif kind in (orders.FILE, orders.REMOVED):
            self._files[name].take(message)
        elif kind == orders.BEGUN:
            unit.trial.begin(message[1])
        elif kind == orders.RECORD:
            record = RoundRecord.model_validate(message[1])
            if record.outcome == "error" and unit.trial.has_verdict(record.index):
                unit.refused = record.cause  # It is given to a round that is over.
            else:
                unit.trial.deliver(record, message[2])
                self.changed.put(unit)
        elif kind == orders.PROGRESS:
            unit.trial.progress = None if message[1] is None else Progress(**message[1])
        elif kind == orders.NOTE:
            self.notes.put(f"{unit.shown}: {message[1]}")
        elif kind == orders.FAILED:
            unit.refused = message[1]
        elif kind == orders.ENDED and not (unit.gives_way or self._stopping.is_set()):
            if unit.trial.missing([item.index for item in list(unit.items)]):
                unit.refused = "its process was told to stop"  # By somebody on the node: a signal.
                return
            unit.trial.end(message[1])
            self.changed.put(unit)

    def _see_memory(self, node: str, left: int, total: int) -> None:
        """Take what a node has left of its memory; where that is hardly anything, its youngest attempt gives way."""
        found = self._placement.nodes.get(node)
        if found is None or not found.ramp.see(left, total, len(found.running)):
            return
        youngest = self._units[list(found.running)[-1]]
        if not youngest.gives_way:
            youngest.gives_way = True
            self.notes.put(f"{youngest.shown} stops because {found.name} has hardly any memory left, and goes on later")
            self._cluster.stop(youngest.name, youngest.tries)

    def _conclude(self, reference: Any) -> None:
        """See to an attempt whose try is over: it has ended, was lost, or gave way to others."""
        unit, number = self._running.pop(reference)
        self._cluster.forget(unit.name, number)
        node = self._placement.node_of(unit.name)
        self._placement.ended(unit.name)
        why, with_node = self._cluster.why_lost(reference)
        if unit.trial.has_ended:
            self._drop(unit)
        if unit.trial.has_ended or self._stopping.is_set():
            return
        gave_way, unit.gives_way = unit.gives_way and not why, False
        if not gave_way:
            where = f"on {node.name}" if node is not None else "on a node that has gone"
            if node is not None:
                self._placement.shun(unit.name, node.id)
            if not unit.count_loss(where, unit.refused or why or "it ended early", with_node=with_node):
                logger.info("%s was given to a node that was gone", unit.shown)
                self._set_nodes(self._cluster.nodes())
            elif len(unit.losses) > RETRIES:
                self._give_up(unit, "worker lost (" + "; before that ".join(reversed(unit.losses)) + ")")
                return
            else:
                self.notes.put(f"{unit.shown} was lost {unit.losses[-1]}; it begins once more")
        self._placement.add(unit.name, unit.needs, float("inf"))

    def _give_up(self, unit: AttemptUnit, why: str) -> None:
        """Have the rounds of an attempt reported that no node will run."""
        if unit.trial.has_ended:
            return
        for record in give_up(unit, why):
            unit.trial.deliver(record)
        unit.trial.end()
        self._drop(unit)
        self.changed.put(unit)

    def _drop(self, unit: AttemptUnit) -> None:
        """Keep nothing more of an attempt that is over: there may be thousands in a run."""
        self._units.pop(unit.name, None)
        self._files.pop(unit.name, None)
        self._placement.forget(unit.name)


def _with_facts(node: ClusterNode, facts: NodeFacts) -> ClusterNode:
    """Return a node with what it says of itself."""
    declared = node.total.get(STORAGE)
    node.total = {**node.total, DISK: facts.disk if declared is None else declared * 2**20}
    node.has = set(facts.has)
    node.ramp.see(*facts.memory, 0)
    return node


def join_cluster(session: EvocodeSession, text: str) -> ClusterRun:
    """Return the run on the cluster that ``--evocode-cluster`` names.

    Raises:
        UsageError: As :class:`ClusterRun`, and where the option names no cluster.
    """
    engine, colon, address = text.partition(":")
    if engine != "ray" or (colon and not address):
        raise UsageError(
            f"--evocode-cluster={text}: write ray for a cluster that is started here, ray:auto for the one that this "
            "machine belongs to, or ray:HOST:PORT"
        )
    return ClusterRun(session, address)


_WAIT = 0.2
"""Seconds without news after which notes are printed; between two waits, a signal can end the session."""


class ClusterPlugin:
    """Runs a session's tests: those that are no rounds here, and the rounds in the order in which their records come.

    pytest takes one test's fixtures down with a view to the next test, which is not known here; so what rounds share is
    made anew for each, but for what lasts for the session.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Make the attempts, as pytest's own loop runs tests."""
        cluster = self._session.elsewhere
        if not isinstance(cluster, ClusterRun) or stops_before_tests(session):
            return None
        cluster.begin(session.items)
        try:
            run_others(session)
            self._run_rounds(session, cluster, sum(isinstance(item, RoundItem) for item in session.items))
        finally:
            cluster.stop()
            self._tell(cluster)
        return True

    def _run_rounds(self, session: pytest.Session, cluster: ClusterRun, left: int) -> None:
        while left:
            self._tell(cluster)
            try:
                unit = cluster.changed.get(timeout=_WAIT)
            except queue.Empty:
                continue
            while unit.items and unit.trial.is_ready(unit.items[0].index, is_last=len(unit.items) == 1):
                item = unit.items.pop(0)
                unit.reported.append(item)
                left -= 1
                unit.trial.is_reported = not unit.items
                run_item(session, item, later(session, goes_on=bool(unit.items)) if left else None)
                if not unit.items:
                    self._take_repeated(unit)
                    cluster.forget(unit)
            del unit  # It may be the last reference to one that is over.

    def _take_repeated(self, unit: AttemptUnit) -> None:
        """Count the rounds that were repeated after they were reported as the results directory has them."""
        for item in unit.reported:
            record = unit.trial.record_of(item.index)
            if record is not None and record != self._session.rounds.record(item.nodeid):
                self._session.rounds.add(item.nodeid, record)

    def _tell(self, cluster: ClusterRun) -> None:
        terminal = self._session.config.pluginmanager.getplugin("terminalreporter")
        with contextlib.suppress(queue.Empty):
            while True:
                note = self._session.scrubber.text(cluster.notes.get_nowait())
                if terminal is not None:
                    terminal.ensure_newline()
                    terminal.write_line(f"evocode: {note}")
