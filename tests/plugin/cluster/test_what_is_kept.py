"""What the driver of a cluster keeps of attempts that were reported: there may be thousands in a run."""

from __future__ import annotations

import gc
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from pytest_evocode.plugin.cluster import driver
from pytest_evocode.plugin.cluster.driver import ClusterRun
from pytest_evocode.plugin.cluster.orders import BEGUN, ENDED, FILE, MEMORY, RECORD, SPENT, AttemptOrder, Message
from pytest_evocode.plugin.cluster.received import AttemptFiles
from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
from pytest_evocode.plugin.cluster.units import AttemptUnit
from pytest_evocode.results.records import RoundRecord
from tests.acceptance.tasks import task_writer
from tests.inner_sessions import UNUSED
from tests.plugin.cluster.test_joining_nodes import Ray

CASES = [{"id": f"case-{number}", "status": "passed"} for number in range(100)]
PASSED: dict[str, Any] = {
    **{"round": "round-1", "index": 1, "declared_rounds": 1, "outcome": "passed"},
    "verdict": {"reward": 1.0, "rewards": {"reward": 1.0}, "cases": CASES},
}
KINDS = (AttemptUnit, RemoteTrial, AttemptFiles, AttemptOrder, RoundRecord)


class PassingRay(Ray):
    """Stands in for Ray, with a node on which each attempt passes at once, and the last one is lost before that."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.made: list[str] = []
        self.sent: list[Any] = []
        self.is_lost = ""

    def keep(self, archive: bytes) -> object:
        return object()

    def start(self, order: AttemptOrder, number: int, *where: object) -> str:
        record = RoundRecord(task=order.task, agent=order.agent.id, attempt=order.number, **PASSED)
        messages: list[Message] = [(BEGUN, 1), (SPENT, 1.0), (FILE, "a.txt", b"a", True), (MEMORY, 1, 2)]
        if order.number == 5 and number == 1:
            self.is_lost = order.name
        else:
            messages += [(RECORD, record.model_dump(mode="json", exclude_defaults=True), "printed"), (ENDED, {}, "")]
        self.sent += [(order.name, number, "first", message) for message in messages]
        self.made.append(order.name)
        return order.name

    def ended(self, references: Sequence[object]) -> list[object]:
        return list(references)

    def take(self, seconds: float) -> list[Any]:
        self.sent, sent = [], self.sent
        return sent or super().take(seconds)

    def why_lost(self, reference: str) -> tuple[str, bool]:
        lost, self.is_lost = self.is_lost == reference, ""
        return ("the node was lost", True) if lost else ("", False)

    def forget(self, attempt: str, number: int) -> None: ...


class AtTheEnd:
    """Looks at what there is when all tests were run, and sends a late message."""

    def __init__(self, ray: PassingRay) -> None:
        self.found: list[str] = []
        self._before = [each for each in gc.get_objects() if isinstance(each, KINDS)]
        self.spent: float | None = None
        self.properties: list[dict[str, Any]] = []
        self._ray = ray

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Look when the loop has ended; when the session ends, all records are read once more."""
        result = yield
        (run,) = (each for each in gc.get_objects() if isinstance(each, ClusterRun))
        while not run.changed.empty():  # With the last test, the session stopped to look there.
            run.changed.get()
        gc.collect()
        known = set(map(id, self._before))
        found = (each for each in gc.get_objects() if isinstance(each, KINDS) and id(each) not in known)
        self.found = [type(each).__name__ for each in found]
        run._receive((self._ray.made[0], 1, "first", (SPENT, 1.0)))
        run._receive((self._ray.made[0], 1, "first", (FILE, "a.txt", b"b", True)))
        self.spent = run._spending.cost_usd
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = terminalreporter.stats["passed"]
        self.properties = [dict(report.user_properties) for report in reports]


def test_nothing_is_kept_of_attempts_that_were_reported_and_a_late_message_only_counts_what_it_cost(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = PassingRay("")
    monkeypatch.setattr(driver, "RayCluster", lambda address: ray)
    task_writer(pytester.path)("a", 1)
    end = AtTheEnd(ray)
    what = ("--evocode-cluster=ray", "--evocode-agent=oracle", "--evocode-attempts=5", "tasks")
    result = pytester.runpytest_inprocess(*UNUSED, *what, plugins=[end])
    result.assert_outcomes(passed=5)
    assert len(ray.made) == 6
    # The record of the last one may be asked for again.
    assert end.found == ["RoundRecord"]
    assert [len(each["evocode_cases"]) for each in end.properties] == [100] * 5
    assert end.spent == 7.0
    copies = list((pytester.path / "evocode-results").glob("a/harbor_jobs/oracle/*/a__a*/a.txt"))
    assert [path.read_text() for path in copies] == ["a"] * 5
