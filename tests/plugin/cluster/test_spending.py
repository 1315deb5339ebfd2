"""What the attempts of a cluster's nodes spend, as one of them sees it."""

from __future__ import annotations

import contextlib
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from pytest_evocode.llm.budget import AttemptSpending, Budget
from pytest_evocode.plugin.cluster.attempt_process import ClusterSpending, Line
from pytest_evocode.plugin.cluster.node import BrokerAnswer
from pytest_evocode.plugin.cluster.orders import ASK, SPENT
from pytest_evocode.results.records import Usage

pytestmark = pytest.mark.every_python


def play_the_node(connection: Connection, others_spent: float) -> None:
    """Answer as the broker does that knows what others have spent, until the line is closed."""
    spent = others_spent
    with connection, contextlib.suppress(EOFError, OSError):
        while True:
            kind, value, *_ = connection.recv()
            spent += value if kind == SPENT else 0.0
            connection.send(BrokerAnswer(False, {value: spent} if kind == ASK else {}))


def test_a_budget_for_the_run_counts_what_other_nodes_have_spent() -> None:
    ours, theirs = Pipe()
    threading.Thread(target=play_the_node, args=(theirs, 4.0), daemon=True).start()
    line = Line(ours)
    line.begin(threading.Event())
    spending = AttemptSpending(Budget(total_cost=5.0), run=ClusterSpending(line, 1.0))  # type: ignore[arg-type]
    assert spending.exhausted == ""
    spending.charge(Usage(cost_usd=1.5))
    assert spending.run_exhausted == "budget: total-cost $5.5 of $5 used by the run"


@pytest.mark.parametrize("ending", ["stop", "end of the line"])
def test_an_attempt_stops_when_it_is_told_to_and_when_nobody_is_there(ending: str) -> None:
    ours, theirs = Pipe()
    stop = threading.Event()
    Line(ours).begin(stop)
    if ending == "stop":
        theirs.send(BrokerAnswer(True))
    else:
        theirs.close()
    assert stop.wait(10)
    theirs.close()
