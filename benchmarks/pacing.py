"""How much of what a provider could answer attempts get from it that share a pace, by the faults it has.

The measure is answers per second as a part of attempts / latency, over a minute from the first request on; 1 is that a
request of every attempt is always under way. On a clock of their own 8, 32 and 128 attempts ask for one minute, with
faults at random: none, 5 % and 20 % of all requests, which are 429 with ``retry-after: 1`` and 503, or only such 429.
Then 32 clients of the loop ask a server on this machine that takes a second for each answer and has the same faults,
half of each. The bounds are 0.85 without faults, and 0.7 with 5 %.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time

from benchmarks.tables import Table
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection_limits import LocalConnections, connections_shared_by
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message
from tests.llm.paced_clients import Fault, failing, throughputs
from tests.model_scripts import Asked, Delay, Fail, Say, Step
from tests.model_server import ModelServer

ATTEMPTS, LATENCIES, PARTS = (8, 32, 128), (0.5, 1.0, 2.0), (0.0, 0.05, 0.2)
LIMIT = Fault(429, retry_after=1.0)
FAULTS = {"": (LIMIT, Fault(503)), ", all 429": (LIMIT,)}
CLIENTS, SECONDS, LATENCY = 32, 20.0, 1.0


def measure(runs: int) -> Table:
    """Parts of attempts / latency."""
    names = {
        f"{part:.0%} faults{of}": (part, faults) for of, faults in FAULTS.items() for part in PARTS if part or not of
    }
    table = Table("throughput by attempts and latency", "part of attempts / latency", tuple(names))
    for attempts, latency in itertools.product(ATTEMPTS, LATENCIES):
        for name, (part, faults) in names.items():
            row = f"{attempts} attempts, {latency:g} s"
            table.add(row, name, list(throughputs(part, attempts, latency, faults, runs)))
    for part in PARTS:
        row = f"{CLIENTS} clients of a real server, {LATENCY:g} s"
        table.add(row, f"{part:.0%} faults", [_real_throughput(part, seed) for seed in range(max(1, runs // 3))])
    return table


def _real_throughput(part: float, seed: int) -> float:
    provider = failing(part, *FAULTS[""], seed=seed)

    def script(asked: Asked) -> Step:
        fault = provider(0.0)
        return [Delay(LATENCY), Say("Done.")] if fault is None else Fail(fault.status, retry_after=fault.retry_after)

    answered = itertools.count()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ModelServer(script))
        stack.enter_context(connections_shared_by(LocalConnections(CLIENTS)))
        os.environ.setdefault("OPENAI_API_KEY", "a-key-of-the-benchmark")
        clients = []
        for _ in range(CLIENTS):
            clients.append(make_client("openai", "gpt-5.2", ModelOptions(api="chat", base_url=f"{server.url}/v1")))
            clients[-1].prepare()
            stack.callback(clients[-1].close)
        begun = time.monotonic()

        def ask(number: int) -> None:
            while time.monotonic() < begun + SECONDS:
                clients[number].complete((Message("user", "Solve it."),), [], timeout=SECONDS)
                if time.monotonic() < begun + SECONDS:
                    next(answered)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return next(answered) / SECONDS * LATENCY / CLIENTS
