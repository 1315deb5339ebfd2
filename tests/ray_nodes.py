"""A Ray cluster of three nodes on this machine, as a program: it prints the address and obeys lines of its input.

``kill N`` kills the N-th node's raylet, as a machine that is switched off; the first node, 0, is the driver's. By
``add N`` a node of N CPUs joins. With the end of the input the cluster ends. In a process of its own, because Ray
starts threads and warns of this and that.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STORE = 80 * 2**20
_TRIES = 3
_LAST_PATH = "EVOCODE_TEST_LAST_PATH"
_CLIENT_PORT = "EVOCODE_TEST_CLIENT_PORT"


@dataclass(frozen=True)
class RayNodes:
    """The cluster, as a test sees it."""

    address: str
    client_address: str
    """Where Ray Client connects to, empty unless it was asked for."""
    process: subprocess.Popen[str]

    def kill(self, node: int) -> None:
        """Kill a node, and wait until it is dead."""
        self._have_done(f"kill {node}")

    def add(self, cpus: int) -> None:
        """Add a node, and wait until it is one of the cluster."""
        self._have_done(f"add {cpus}")

    def _have_done(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextlib.contextmanager
def ray_nodes(
    cpus: Sequence[int] = (1, 2, 1), *, last_path: str = "", cache: Path | None = None, client: bool = False
) -> Iterator[RayNodes]:
    """Start a cluster of nodes with so many CPUs, and end it after the block.

    ``last_path`` is a directory of modules that only the last node has, before all others. Nodes have caches beside
    ``cache``, by default beside the cache of the tests. With ``client`` it can be reached through Ray Client, too.
    """
    port = str(_free_port()) if client else ""
    environ = {**os.environ, _LAST_PATH: last_path, _CLIENT_PORT: port}
    if cache is not None:
        environ["EVOCODE_CACHE"] = str(cache)
    command = [sys.executable, "-W", "ignore", __file__, *map(str, cpus)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = next(line.removeprefix("address ") for line in process.stdout if line.startswith("address "))
        try:
            yield RayNodes(address.strip(), f"ray://127.0.0.1:{port}" if client else "", process)
        finally:
            process.stdin.close()
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _add_node(cluster: Any, number: int, cpus: int, *, is_last: bool) -> Any:
    # A cache of its own makes a node another machine, as far as sandboxes and their states are concerned.
    variables = {"EVOCODE_CACHE": f"{os.environ['EVOCODE_CACHE']}-{number}"}
    if (path := os.environ[_LAST_PATH]) and is_last:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (path, os.environ.get("PYTHONPATH", ""))))
    options: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": _STORE, "env_vars": variables}
    if number:  # By its address a driver finds the raylet that is its own.
        options["node_ip_address"] = f"127.0.0.{number + 1}"
    elif port := os.environ[_CLIENT_PORT]:
        options["ray_client_server_port"] = int(port)
    for _ in range(_TRIES):  # Tests run beside others, and it may take longer than Ray's 30 seconds.
        with contextlib.suppress(Exception):
            return cluster.add_node(include_dashboard=False, **options)
    return cluster.add_node(include_dashboard=False, **options)


def main() -> None:
    """Be the program."""
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    cpus = [int(argument) for argument in sys.argv[1:]]
    nodes = [_add_node(cluster, number, each, is_last=number == len(cpus) - 1) for number, each in enumerate(cpus)]
    print("address", cluster.address, flush=True)
    for line in sys.stdin:
        order, amount = line.split()
        if order == "kill":
            nodes[int(amount)].kill_raylet()
        else:
            nodes.append(_add_node(cluster, len(nodes), int(amount), is_last=False))
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
