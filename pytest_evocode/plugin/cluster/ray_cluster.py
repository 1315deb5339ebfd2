"""The connection to a Ray cluster: all that asks Ray for something on the driver, and no decision."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import signal
import socket
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.cluster.node import Broker, NodeFacts, Sent, look_at_node, make_attempt
from pytest_evocode.plugin.cluster.orders import AttemptOrder
from pytest_evocode.plugin.cluster.placement import ClusterNode, Needs

_JOINING = 60.0  # seconds for a node to say what it has
_STORE = 128 * 2**20
"""Bytes of Ray's object store on a cluster that is started here: tasks and what attempts send pass through it."""
_TRIES = 2
"""How often the start of a cluster is tried again."""
STORAGE = "storage_mb"
"""The resource by which nodes declare to Ray how much disk they have, in MiB, if they do."""
_CONNECTING = 15.0  # seconds
_LONGEST_CAUSE = 300  # characters


def check_address(address: str) -> None:
    """Raise UsageError for the address of a dashboard, and for one where nothing listens: Ray tries for minutes."""
    if address.startswith(("http://", "https://")):
        raise UsageError(
            f"--evocode-cluster=ray:{address}: that is an address for jobs. Submit the session there as one (ray job "
            f"submit --address {address} -- pytest --evocode-cluster=ray:auto ...), or name ray://HOST:10001 instead"
        )
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return  # Ray says what is wrong with it.
    if not host or not port:
        return
    try:
        socket.create_connection((host, port), timeout=_CONNECTING).close()
    except OSError as error:
        raise UsageError(
            f"--evocode-cluster=ray:{address}: nothing answers there ({error}); start Ray there, or correct the address"
        ) from None


def refusal(address: str, error: Exception) -> UsageError:
    """Return the error of a cluster that could not be joined, or started where the address is empty."""
    where = f"ray:{address}" if address else "ray"
    # Ray shows its token at an address only if it is told to, and does not say that one is missing.
    shows_none = address not in ("", "auto") and "RAY_AUTH_MODE" not in os.environ
    hint = "; if the cluster wants a token, export RAY_AUTH_MODE=token" if shows_none else ""
    return UsageError(f"--evocode-cluster={where}: {error}{hint}")


class RayCluster:
    """A Ray cluster that this process has joined, or has started for itself."""

    def __init__(self, address: str) -> None:
        """Join the cluster at an address, or start one here where that is empty.

        Raises:
            UsageError: Ray is not installed, there is no such cluster, or it has another version of Ray or Python.
        """
        if importlib.util.find_spec("ray") is None:
            raise UsageError("--evocode-cluster=ray needs the package ray: pip install 'pytest-evocode[ray]'")
        self.address = address
        check_address(address)
        with _quiet():
            import ray

            self._ray: Any = ray
            if ray.is_initialized():
                raise UsageError("--evocode-cluster: this process has joined a Ray cluster already")
            here = {"num_cpus": os.cpu_count() or 1, "object_store_memory": _STORE, "include_dashboard": False}
            options: dict[str, Any] = {"address": address} if address else {"address": "local", **here}
            for tries_left in range(0 if address else _TRIES, -1, -1):
                try:
                    ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
                    break
                except Exception as error:  # Ray raises plain ones, too, as after 30 seconds on a busy machine.
                    ray.shutdown()
                    if not tries_left:
                        raise refusal(address, error) from None
        self._broker: Any = None

    def close(self) -> None:
        """Leave the cluster, which ends all that this process has there, and end it if it was started here."""
        with contextlib.suppress(Exception):  # What is gone cannot be left.
            self._ray.shutdown()

    # Nodes.

    def nodes(self) -> list[ClusterNode]:
        """Return the nodes that are alive, with what Ray knows of them."""
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        hosts = [node["NodeManagerHostname"] for node in alive]
        return [
            ClusterNode(
                node["NodeID"],
                host if hosts.count(host) == 1 else f"{host}/{node['NodeID'][:6]}",
                node["Resources"],
            )
            for node, host in zip(alive, hosts, strict=True)
        ]

    def ask_versions(self, nodes: Sequence[ClusterNode]) -> dict[str, dict[str, str]]:
        """Return the versions that nodes have, by the nodes' names; none where pytest-evocode is not installed."""

        def versions() -> dict[str, str]:  # A nested function, which Ray sends whole: nothing is imported from us.
            import contextlib
            import platform
            from importlib.metadata import PackageNotFoundError, version

            found = {"Python": platform.python_version()}
            with contextlib.suppress(PackageNotFoundError):
                found["pytest-evocode"] = version("pytest-evocode")
            return found

        return {node.name: answer for node, answer in self._ask(nodes, versions)}

    def look_at(self, nodes: Sequence[ClusterNode], environment: str) -> list[tuple[ClusterNode, NodeFacts]]:
        """Return what nodes say of themselves; without those that do not answer."""
        return self._ask(nodes, look_at_node, environment)

    def _ask(self, nodes: Sequence[ClusterNode], function: Any, *arguments: Any) -> list[tuple[ClusterNode, Any]]:
        remote = self._ray.remote(max_retries=0, num_cpus=0)(function)
        asked = [remote.options(scheduling_strategy=self._on(node.id)).remote(*arguments) for node in nodes]
        found = []
        for node, reference in zip(nodes, asked, strict=True):
            with contextlib.suppress(self._ray.exceptions.RayError, TimeoutError):
                found.append((node, self._ray.get(reference, timeout=_JOINING)))
        return found

    def _on(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(node, soft=False)

    # The broker.

    def begin(self, spent: float) -> None:
        """Start the run's broker beside the driver, with whom it ends."""
        here = self._on(self._ray.get_runtime_context().get_node_id())
        options = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": here, "max_concurrency": 10_000}
        self._broker = self._ray.remote(Broker).options(**options).remote(spent)

    def take(self, seconds: float) -> list[Sent]:
        """Return what attempts have sent, or wait for it; raises an exception of Ray's where the broker is lost."""
        return list(self._ray.get(self._broker.take.remote(seconds), timeout=seconds + _JOINING))

    def stop(self, attempt: str, number: int) -> None:
        """Have one try at an attempt stop."""
        self._broker.stop.remote(attempt, number)

    def forget(self, attempt: str, number: int) -> None:
        """Give back what a try at an attempt holds that is over."""
        self._broker.forget.remote(attempt, number)

    def stop_all(self) -> None:
        """Have all attempts stop."""
        self._broker.stop_all.remote()

    # Attempts.

    def keep(self, archive: bytes) -> Any:
        """Return a reference by which nodes get an archive, which stays as long as the reference does."""
        return self._ray.put(archive)

    def start(self, order: AttemptOrder, number: int, archive: Any, needs: Needs, node: ClusterNode) -> Any:
        """Begin an attempt on a node, and return the reference by which its end is known."""
        options: dict[str, Any] = {
            "num_cpus": min(needs.cpus, node.total.get("CPU", 0.0)),
            "scheduling_strategy": self._on(node.id),
        }
        if needs.memory:
            options["memory"] = min(needs.memory, int(node.total.get("memory", 0)))
        resources = dict(needs.custom)
        if needs.storage and (declared := node.total.get(STORAGE)):
            resources[STORAGE] = min(needs.storage / 2**20, declared)
        if resources:
            options["resources"] = resources
        return self._make_attempt.options(**options).remote(self._broker, node.id, order, number, [archive])

    @cached_property
    def _make_attempt(self) -> Any:
        """The one remote function of all attempts; Ray keeps each that it was ever given, here and on every node."""
        # Never again by Ray, which knows nothing of what was paid for.
        return self._ray.remote(max_retries=0, max_calls=0)(make_attempt)

    def ended(self, references: Sequence[Any]) -> list[Any]:
        """Return those of the references whose attempts have ended or were lost."""
        if not references:
            return []
        done, _ = self._ray.wait(list(references), num_returns=len(references), timeout=0)
        return list(done)

    def why_lost(self, reference: Any) -> tuple[str, bool]:
        """Return why an attempt that has ended was lost, empty where it was not, and whether its node was lost."""
        exceptions = self._ray.exceptions
        try:
            return str(self._ray.get(reference)), False
        except exceptions.RayTaskError as error:
            return f"its task failed: {_first_line(error.cause)}", False
        except (exceptions.NodeDiedError, exceptions.ObjectLostError, exceptions.TaskUnschedulableError):
            return "the node was lost", True
        except exceptions.RayError as error:
            return f"Ray's process was lost: {_first_line(error)}", False


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:_LONGEST_CAUSE]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Ray warns of itself from ending sessions that take warnings for errors, and our signal handlers."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
