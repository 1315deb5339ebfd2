"""Attempts beyond one machine: what it costs to place them, and what three Ray nodes do beside one of the same size.

``placing``: 10,000 attempts of 26 tasks over 100 nodes of 16 CPUs, simulated with a clock of its own: attempts take 10
to 4,000 seconds, declare one to four CPUs and up to 8 GiB, and some are lost and begin again. Measured is the time that
the driver takes to decide, per attempt. ``throughput``: attempts of an agent that works for a second, on one node with
four CPUs and on three with one, two and one. All nodes are this machine, so no processor is added: what is compared is
the cost of having several nodes. One node makes fewer attempts, which show its rate as well. ``driver``: its resident
memory after a tenth of the time and when the last attempt ends, what that is for each attempt, and the most that it
takes while it sums up. Suites have a hundred cases.
"""

from __future__ import annotations

import heapq
import random
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from benchmarks.material import available, scratch, write_task
from benchmarks.tables import Table
from pytest_evocode.plugin.cluster.placement import ClusterNode, Needs, Placement
from pytest_evocode.results.records import AttemptRecord
from tests.ray_nodes import ray_nodes

ATTEMPTS, NODES, CPUS, TASKS = 10_000, 100, 16, 26
GIB = 2**30
_REAL: Mapping[str, int] = {"1 node": 300, "3 nodes": 1000}
_QUICK: Mapping[str, int] = {"1 node": 12, "3 nodes": 12}
"""Attempts of the real sessions, and of quick ones."""


def measure(runs: int) -> Table:
    """Milliseconds, attempts a minute and slot, megabytes, and kilobytes."""
    table = Table("attempts on many nodes", "see rows", ("simulated", "1 node", "3 nodes"), digits=3)
    table.add("placing, ms per attempt", "simulated", [simulate(seed) for seed in range(runs)], target=5.0)
    if available("sandbox"):
        for column, cpus in (("1 node", (4,)), ("3 nodes", (1, 2, 1))):
            attempts = (_REAL if runs > 1 else _QUICK)[column]
            seconds, (early, late, most) = run_attempts(attempts, cpus)
            table.add("attempts", column, [attempts])
            table.add("throughput, attempts a minute and slot", column, [60 * attempts / seconds / 4])
            table.add("driver, MB after a tenth", column, [early])
            table.add("driver, MB with the last attempt", column, [late])
            grown = 1024 * (late - early) / (0.9 * attempts)
            # What a session has once, and not for each attempt, is much of it where there are few.
            table.add("driver, KB per attempt", column, [grown], target=10.0 if attempts >= 1000 else None)
            table.add("driver, MB at most", column, [most])
    return table


def simulate(seed: int) -> float:
    """Return the milliseconds that a decision took, over all attempts of a simulated run."""
    chance = random.Random(seed)
    placement, now, spent = Placement(), 0.0, 0.0
    clock_of_run = [0.0]
    nodes = [ClusterNode(f"node-{index}", f"node-{index}", {"CPU": CPUS, "memory": 64 * GIB}) for index in range(NODES)]
    for node in nodes:
        node.ramp.clock = lambda: clock_of_run[0]
        node.ramp.see(60 * GIB, 64 * GIB, 0)
    placement.set_nodes(nodes)
    lasting = {}
    for index in range(ATTEMPTS):
        task = index % TASKS
        needs = Needs(1.0 + task % 4, (task % 3) * 4 * GIB, places=(f"image-{task}",))
        lasting[f"{index}"] = chance.uniform(10, 4000)
        placement.add(f"{index}", needs, lasting[f"{index}"])
    running: list[tuple[float, str]] = []
    decisions = 0
    while True:
        began = time.perf_counter()
        begun = []
        while (found := placement.next()) is not None:
            begun.append(found[0])
        spent += time.perf_counter() - began
        decisions += len(begun)
        for name in begun:
            heapq.heappush(running, (now + lasting[name], name))
        if not running:
            return 1000 * spent / decisions
        now, attempt = heapq.heappop(running)
        clock_of_run[0] = now
        place = placement.node_of(attempt)
        assert place is not None
        needs = place.running[attempt]
        began = time.perf_counter()
        placement.ended(attempt)
        place.ramp.see(64 * GIB - len(place.running) * 3 * GIB, 64 * GIB, len(place.running))
        spent += time.perf_counter() - began
        if decisions % 500 == 0:
            placement.shun(attempt, place.id)
            placement.add(attempt, needs, float("inf"))


def run_attempts(attempts: int, cpus: tuple[int, ...]) -> tuple[float, tuple[float, float, float]]:
    """Return the seconds from the first attempt to the last.

    And the driver's megabytes: after a tenth of that time, at its end, and at most.
    """
    with scratch() as directory, ray_nodes(cpus, cache=directory / "cache") as nodes:
        write_task(directory / "task", 1, suite=_CASES)
        (directory / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
        (directory / "one_second.py").write_text(_AGENT)
        command = [
            *(sys.executable, "-m", "pytest", "-q", "--tb=no", f"--evocode-cluster=ray:{nodes.address}"),
            *("--evocode-agent=one_second:Agent", "--evocode-env=sandbox", f"--evocode-attempts={attempts}", "task"),
        ]
        memory: list[tuple[float, float]] = []
        with subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL) as driver:
            watch = threading.Thread(target=_watch, args=(driver, memory))
            watch.start()
            driver.wait()
            watch.join()
        records = sorted(directory.glob("evocode-results/task/harbor_jobs/*/*/*/result.json"))
        assert len(records) == attempts, f"{len(records)} of {attempts}"
        read = [AttemptRecord.model_validate_json(path.read_bytes()) for path in records]
        outcomes = {round_.outcome for each in read for round_ in each.rounds}
        assert outcomes == {"failed"}, outcomes  # The agent writes nothing; an error would take other times.
        begun = min(datetime.fromisoformat(each.started).timestamp() for each in read)
        ended = max(datetime.fromisoformat(each.finished).timestamp() for each in read)
        early, late = (
            next(megabytes for now, megabytes in reversed(memory) if now <= moment)
            for moment in (begun + (ended - begun) / 10, ended)
        )
        return ended - begun, (early, late, max(megabytes for _, megabytes in memory))


_CASES = "for n in $(seq 99); do echo CASE_RESULT case_id=other-$n origin_step=round-1 status=success; done"
_AGENT = """
import time
from pytest_evocode.agents import RoundTranscript

class Agent:
    name = "one-second"

    def run_round(self, context):
        time.sleep(1)
        return RoundTranscript()
"""


def _watch(process: subprocess.Popen[bytes], found: list[tuple[float, float]]) -> None:
    while process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                found.append((time.time(), int(line.split()[1]) / 1024))
        time.sleep(1)
