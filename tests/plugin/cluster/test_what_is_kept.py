"""What the driver of a cluster keeps of attempts that were reported: there may be thousands in a run."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from pytest_evocode.plugin.cluster import driver
from pytest_evocode.plugin.cluster.driver import ClusterRun
from pytest_evocode.plugin.cluster.orders import BEGUN, ENDED, FILE, MEMORY, RECORD, SPENT, AttemptOrder, Message
from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
from pytest_evocode.plugin.cluster.units import AttemptFiles, AttemptUnit
from pytest_evocode.plugin.kept_rounds import KeptRound
from pytest_evocode.plugin.session import session_of
from pytest_evocode.results.records import RoundRecord
from tests.acceptance.tasks import task_writer
from tests.inner_sessions import UNUSED
from tests.plugin.cluster.test_joining_nodes import Ray

pytestmark = pytest.mark.every_python

CASES: list[dict[str, Any]] = [{"id": f"case-{number}", "status": "passed"} for number in range(100)]
ROUND: dict[str, Any] = {"round": "round-1", "index": 1, "declared_rounds": 1}
PASSED = ROUND | {"outcome": "passed", "verdict": {"reward": 1.0, "rewards": {"reward": 1.0}, "cases": CASES}}
MISSED = [*CASES[:7], {"id": "case-7", "status": "failed", "expected": "1", "actual": "2"}, *CASES[8:]]
FAILED = ROUND | {"outcome": "failed", "verdict": {"reward": 0.0, "rewards": {"reward": 0.0}, "cases": MISSED}}
KINDS = (AttemptUnit, RemoteTrial, AttemptFiles, AttemptOrder, KeptRound, RoundRecord)


class PassingRay(Ray):
    """Stands in for Ray, with a node on which each attempt ends at once, and the last one is lost before that."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.made: list[str] = []
        self.sent: list[Any] = []
        self.is_lost = ""

    def keep(self, archive: bytes) -> object:
        return object()

    def start(self, order: AttemptOrder, number: int, *where: object) -> str:
        outcome = FAILED if order.number == 4 else PASSED
        record = RoundRecord(task=order.task, agent=order.agent.id, attempt=order.number, **outcome)
        messages: list[Message] = [(BEGUN, 1), (SPENT, 1.0), (FILE, "a.txt", b"a", True), (MEMORY, 1, 2)]
        if order.number == 5 and number == 1:
            self.is_lost = order.name
        else:
            messages += [(RECORD, record.model_dump(mode="json", exclude_defaults=True), "printed"), (ENDED, "")]
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
        self.serialized: list[dict[str, Any]] = []
        self.properties: list[dict[str, Any]] = []
        self.of_items: list[object] = []
        self._ray = ray

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Look when the loop has ended; when the session ends, all records are read once more."""
        result = yield
        run = session_of(session.config).elsewhere
        assert isinstance(run, ClusterRun)
        while not run.changed.empty():  # With the last test, the session stopped to look there.
            run.changed.get()
        known = set(map(id, self._before))
        found = (each for each in gc.get_objects() if isinstance(each, KINDS) and id(each) not in known)
        self.found = [type(each).__name__ for each in found]
        run._receive((self._ray.made[0], 1, "first", (SPENT, 1.0)))
        run._receive((self._ray.made[0], 1, "first", (FILE, "a.txt", b"b", True)))
        self.spent = run._spending.cost_usd
        return result

    def pytest_exception_interact(self, report: pytest.TestReport) -> None:
        report.user_properties.append(("screenshot", "a.png"))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.of_items = [item.user_properties for item in session.items]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        reports = [*terminalreporter.stats["passed"], *terminalreporter.stats["failed"]]
        assert not any(isinstance(report.user_properties, list) for report in reports)
        self.properties = [dict(report.user_properties) for report in reports]
        serialized = [config.hook.pytest_report_to_serializable(config=config, report=report) for report in reports]
        self.serialized = json.loads(json.dumps([dict(each["user_properties"]) for each in serialized]))


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> PassingRay:
    made = PassingRay("")
    monkeypatch.setattr(driver, "RayCluster", lambda address: made)
    return made


@pytest.fixture
def end(ray: PassingRay) -> AtTheEnd:
    return AtTheEnd(ray)


@pytest.fixture
def result(pytester: pytest.Pytester, end: AtTheEnd) -> pytest.RunResult:
    """A session of five attempts, of which the fourth fails."""
    pytester.makeconftest(
        "import pytest\n@pytest.fixture(autouse=True)\ndef _ticket(record_property): record_property('ticket', 'T-1')\n"
    )
    task_writer(pytester.path)("a", 1)
    what = ("--evocode-cluster=ray", "--evocode-agent=oracle", "--evocode-attempts=5", "tasks")
    result = pytester.runpytest_inprocess(*UNUSED, *what, plugins=[end])
    result.assert_outcomes(passed=4, failed=1)
    return result


@pytest.mark.usefixtures("result")
def test_nothing_is_kept_of_attempts_that_were_reported_and_a_late_message_only_counts_what_it_cost(
    pytester: pytest.Pytester, ray: PassingRay, end: AtTheEnd
) -> None:
    assert len(ray.made) == 6
    # The record of the last one may be asked for again.
    assert Counter(end.found) == {"KeptRound": 5, "RoundRecord": 1}
    assert end.spent == 7.0
    copies = list((pytester.path / "evocode-results").glob("a/harbor_jobs/oracle/*/a__a*/a.txt"))
    assert [path.read_text() for path in copies] == ["a"] * 5


@pytest.mark.usefixtures("result")
def test_reports_and_items_have_their_properties_until_the_session_ends(end: AtTheEnd) -> None:
    assert [len(each["evocode_cases"]) for each in end.properties] == [100] * 5
    assert [each["evocode"]["outcome"] for each in end.properties] == ["passed"] * 4 + ["failed"]
    assert [each.get("screenshot") for each in end.properties] == [None] * 4 + ["a.png"]
    assert [each["ticket"] for each in end.properties] == ["T-1"] * 5
    assert end.serialized == end.properties
    assert end.of_items == [[("ticket", "T-1")]] * 5


def test_what_is_kept_without_cases_is_summed_up_with_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    result: pytest.RunResult = request.getfixturevalue("result")
    result.stdout.fnmatch_lines(["*a oracle round-1: 4 of 5 attempts passed (differing: case-7)*"])
    summary = (pytester.path / "summary.md").read_text()
    assert "differing: case-7" in summary
    assert "  case-7\n      expected: 1\n" in summary
