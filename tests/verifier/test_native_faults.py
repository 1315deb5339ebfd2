"""What goes wrong beside tests' own failures: the author's error, unless the reference solution is known to pass."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.results.records import Verdict
from pytest_evocode.verifier import SuiteRun
from tests.verifier.conftest import RunNative, run_native_suite

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

GOOD = {"round-1/test_good.py": "def test_good():\n    pass\n"}
EXIT = "the suite ended with exit code {} and no report of its own in round-1/test_a.py::test_x; its last lines:\n"

#: What is wrong, by a name: files, where it is said to be, and what is said of it.
FAULTS: dict[str, tuple[dict[str, str], str, str]] = {
    "syntax": (
        {"round-1/test_a.py": "def test_x():\n    pass pass\n"},
        "steps/round-1/tests/test_a.py:2",
        "does not import: SyntaxError: invalid syntax (test_a.py, line 2)",
    ),
    "null bytes": (
        {"round-1/test_a.py": "def test_x():\n    '\0'\n"},
        "steps/round-1/tests/test_a.py",
        "source code string cannot contain null bytes",
    ),
    "missing module": (
        {"round-1/test_a.py": "import os\nimport nosuch\n\ndef test_x():\n    pass\n"},
        "steps/round-1/tests/test_a.py:2",
        "does not import: ModuleNotFoundError: No module named 'nosuch'",
    ),
    "module that raises": (
        {
            "round-1/test_a.py": "import books\n\ndef test_x():\n    pass\n",
            "tests/books.py": "\nraise ValueError('no')\n",
        },
        "tests/books.py:2",
        "does not import: ValueError: no",
    ),
    "module that exits": (
        {"round-1/test_a.py": "import sys\nsys.exit(0)\n\ndef test_x():\n    pass\n"},
        "steps/round-1/tests/test_a.py:2",
        "SystemExit: 0",
    ),
    "module that is skipped": (
        {"round-1/test_a.py": "import pytest\npytest.importorskip('nosuch')\n\ndef test_x():\n    pass\n"},
        "steps/round-1/tests/test_a.py:2",
        "skipped as a whole: Skipped: could not import 'nosuch': No module named 'nosuch'",
    ),
    "shared conftest": (
        {"round-1/test_a.py": "def test_x():\n    pass\n", "tests/conftest.py": "import nosuch\n"},
        "tests/conftest.py:1",
        "does not import: ModuleNotFoundError: No module named 'nosuch'",
    ),
    "conftest of a round": (
        {"round-1/test_a.py": "def test_x():\n    pass\n", "round-1/conftest.py": "\nx = (\n"},
        "steps/round-1/tests/conftest.py:2",
        "does not import: SyntaxError: '(' was never closed (conftest.py, line 2)",
    ),
    "hook that raises": (
        {
            "round-1/test_a.py": "def test_x():\n    pass\n",
            "tests/conftest.py": "def pytest_collection_modifyitems(items):\n    1 / 0\n",
        },
        "tests/conftest.py:2",
        "ZeroDivisionError: division by zero",
    ),
    "fixture that raises": (
        {"round-1/test_a.py": "import pytest\n\n@pytest.fixture\ndef f():\n    1 / 0\n\ndef test_x(f):\n    pass\n"},
        "steps/round-1/tests/test_a.py:5",
        "a fixture failed: ZeroDivisionError: division by zero",
    ),
    "fixture that raises at its end": (
        {
            "round-1/test_a.py": "import pytest\n\n@pytest.fixture\ndef f():\n    yield\n    1 / 0\n\n"
            "def test_x(f):\n    pass\n"
        },
        "steps/round-1/tests/test_a.py:6",
        "a fixture failed at its end: ZeroDivisionError: division by zero",
    ),
    "ids of parameters": (
        {
            "round-1/test_a.py": "import pytest\n\n"
            "@pytest.mark.parametrize('n', [1, 2], ids=['a', 'a'])\ndef test_x(n):\n    pass\n"
        },
        "steps/round-1/tests/test_a.py:3",
        "does not import: Duplicate parametrization IDs detected",
    ),
    "generated ids": (
        {
            "round-1/test_a.py": "def pytest_generate_tests(metafunc):\n    metafunc.parametrize('n', [1, 1])\n\n"
            "def test_x(n):\n    pass\n"
        },
        "steps/round-1/tests/test_a.py:",
        "does not import: Duplicate parametrization IDs detected",
    ),
    "session that a test ends": (
        {"round-1/test_a.py": "import pytest\n\ndef test_x():\n    pytest.exit('enough', 0)\n"},
        "steps/round-1/tests/test_a.py:4",
        "Exit: enough",
    ),
    "session that a conftest ends": (
        {
            "round-1/test_a.py": "def test_x():\n    pass\n",
            "tests/conftest.py": "def pytest_runtest_teardown(item):\n    item.session.shouldfail = 'enough'\n",
        },
        "steps/round-1/tests/test_good.py:1",
        "the session ended with exit code 1 before round-1/test_good.py::test_good",
    ),
    "hook that raises at the end": (
        {
            "round-1/test_a.py": "def test_x():\n    pass\n",
            "tests/conftest.py": "def pytest_sessionfinish():\n    1 / 0\n",
        },
        "tests/conftest.py:2",
        "ZeroDivisionError: division by zero",
    ),
    "interrupt": (
        {"round-1/test_a.py": "def test_x():\n    raise KeyboardInterrupt\n"},
        "steps/round-1/tests/test_a.py:2",
        "KeyboardInterrupt",
    ),
    "process that a test ends": (
        {"round-1/test_a.py": "import os\n\ndef test_x():\n    os._exit(0)\n"},
        "steps/round-1/tests/test_a.py:3",
        EXIT.format(0),
    ),
    "crash": (
        {"round-1/test_a.py": "import ctypes\n\ndef test_x():\n    ctypes.string_at(0)\n"},
        "steps/round-1/tests/test_a.py:3",
        EXIT.format(139),
    ),
    "killed runner": (
        {"round-1/test_a.py": "import os, signal\n\ndef test_x():\n    os.kill(os.getpid(), signal.SIGKILL)\n"},
        "steps/round-1/tests/test_a.py:3",
        EXIT.format(137),
    ),
    "test that changes the tests": (
        {
            "round-1/test_a.py": "from pathlib import Path\n\ndef test_x():\n"
            "    Path(__file__).with_name('expected.txt').write_text('')\n",
            "round-1/expected.txt": "something\n",
        },
        "steps/round-1/tests/expected.txt",
        "it was changed while the suite ran; tests copy what they change to tmp_path",
    ),
}
#: Faults that are found in the same way; by day the first of each.
KINDS = {
    "module": ("missing module", "syntax", "null bytes", "module that raises", "module that exits"),
    "skipped module": ("module that is skipped",),
    "conftest": ("conftest of a round", "shared conftest", "hook that raises", "hook that raises at the end"),
    "fixture": ("fixture that raises at its end", "fixture that raises"),
    "parameters": ("generated ids", "ids of parameters"),
    "session": ("session that a conftest ends", "session that a test ends", "interrupt"),
    "process": ("crash", "killed runner", "process that a test ends"),
    "files": ("test that changes the tests",),
}
assert sorted(name for names in KINDS.values() for name in names) == sorted(FAULTS)
PINNED = {"round-1/test_good.py::test_good": "good", "round-1/test_a.py::test_x": "x"}


def verdict(run: SuiteRun) -> Verdict:
    assert run.verdict is not None, run.fault
    return run.verdict


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
@pytest.mark.matrix("kind")
def test_without_pins_it_is_no_verdict_but_a_message_with_its_place(
    native: RunNative, kind: str, name: str, tmp_path: Path
) -> None:
    files, place, said = FAULTS[name]
    run = native({**GOOD, **files}, at="round-1")
    assert run.verdict is None
    first, *others = run.fault.split(f"{tmp_path}/task/")
    assert first == ""
    assert len(others) == 1, "the error is told once"
    assert others[0].startswith(place)
    assert said in others[0]
    assert run.fault.endswith(
        "That is no verdict, because nothing shows that the reference solution does better: correct "
        "the suite; if only what an agent made lets it fail, have that run in the test itself, or pin it with "
        "--evocode-pin."
    )


@pytest.mark.parametrize(
    ("test", "user"),
    [
        ("def test_x(postag):\n    pass\n", "test_x"),
        (
            "@pytest.fixture\ndef prices(postag):\n    pass\n\ndef test_x(prices):\n    pass\n",
            "test_x by its fixture 'prices'",
        ),
        ("def test_x(request):\n    request.getfixturevalue('postag')\n", "test_x"),
    ],
    ids=["test", "fixture", "call"],
)
def test_a_fixture_that_is_not_there_is_one_line(native: RunNative, test: str, user: str, tmp_path: Path) -> None:
    files = {
        "round-1/test_a.py": f"import pytest\n\n{test}",
        "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef postage():\n    pass\n",
    }
    said = f"fixture 'postag' not found, used by {user}; known: postage"
    run = native({**GOOD, **files}, at="round-1")
    (line,) = run.fault.splitlines()
    assert line.startswith(f"{tmp_path}/task/steps/round-1/tests/test_a.py:")
    assert line.endswith(f": {said}")

    # With pins it is the case's reason, for whoever sees the failed round.
    (case,) = [case for case in verdict(native({**GOOD, **files}, at="round-1", pinned=PINNED)).cases if case.failing]
    assert case.reason == said


@pytest.mark.parametrize(
    "name",
    [
        "syntax",
        "module that is skipped",
        "conftest of a round",
        "fixture that raises at its end",
        "session that a test ends",
        "crash",
        "test that changes the tests",
    ],
)
@pytest.mark.matrix
def test_with_pins_it_is_a_failed_round_that_has_all_pinned_cases(native: RunNative, name: str) -> None:
    files, place, said = FAULTS[name]
    found = verdict(native({**GOOD, **files}, at="round-1", pinned=PINNED))
    assert not found.passed
    assert {case.id for case in found.cases} == PINNED.keys()
    assert not any(flag.startswith("not counted") for flag in found.flags)
    told = "\n".join([*found.flags, *(case.reason for case in found.cases), ""])
    assert said.splitlines()[0].removeprefix("a fixture failed at its end: ") in told
    assert place in told or "fixture" in name
    assert found.pinned == (sum(case.status == "passed" for case in found.cases), 2)
    assert found.pinned < (2, 2)


def test_what_is_broken_beside_a_failure_is_noted_and_not_counted(native: RunNative) -> None:
    files, _, said = FAULTS["missing module"]
    found = verdict(native({**files, "round-1/test_good.py": "def test_good():\n    assert 0\n"}, at="round-1"))
    assert [(case.id, case.status) for case in found.cases] == [("round-1/test_good.py::test_good", "failed")]
    (flag,) = found.flags
    assert flag.startswith("not counted: ")
    assert said in flag


#: Of the suite alone, where nothing of an agent is.
APART = {
    "round-1/test_a.py": "import nosuch\n\ndef test_x():\n    pass\n",
    "round-1/test_good.py": "def test_good(workspace):\n    assert workspace.run('true').exit_code == CODE\n",
}


@pytest.mark.parametrize("code", [0, 1], ids=["beside-passed", "beside-failed"])
@pytest.mark.parametrize("pinned", [None, PINNED], ids=["no-pins", "pins"])
@pytest.mark.matrix
def test_apart_from_the_agent_a_module_that_does_not_import_is_wrong_whatever_else_happens(
    engine: Engine, tmp_path: Path, code: int, pinned: dict[str, str] | None
) -> None:
    files = {name: text.replace("CODE", str(code)) for name, text in APART.items()}
    run = run_native_suite(engine, tmp_path / "task", files, at="round-1", apart=True, pinned=pinned)
    assert run.verdict is None
    assert run.fault.splitlines() == [
        "the suite is wrong; correct it:",
        f"{tmp_path}/task/steps/round-1/tests/test_a.py:1: "
        "does not import: ModuleNotFoundError: No module named 'nosuch'",
    ]


ASKS = """
import gc

from pytest_evocode.verifier.in_container.workspace import Defaults, Workspace, WorkspaceReports

(plugin,) = (each for each in gc.get_objects() if isinstance(each, WorkspaceReports))
VALUE = int(Workspace(plugin._session, Defaults()).run("cat value").stdout)

def test_x():
    pass
"""


@pytest.mark.parametrize("kept", [False, True], ids=["asked", "kept"])
@pytest.mark.matrix
def test_what_a_module_asks_of_the_workspace_or_earlier_suites_kept_may_be_why_it_does_not_import(
    engine: Engine, tmp_path: Path, kept: bool
) -> None:
    toml = '[metadata.evocode]\nverifier_state = ["/var/kept"]\n' if kept else ""
    files = {**APART, **({} if kept else {"round-1/test_a.py": ASKS})}
    files = {name: text.replace("CODE", "1") for name, text in files.items()}
    run = run_native_suite(
        engine, tmp_path / "task", files, at="round-1", apart=True, workspace="echo no > value", toml=toml
    )
    assert [case.id for case in verdict(run).cases] == ["round-1/test_good.py::test_good"]
    (flag,) = verdict(run).flags
    assert flag.startswith("not counted: ")


def test_one_fault_of_many_cases_is_told_once_with_their_number(native: RunNative) -> None:
    fixture = "import pytest\n\n@pytest.fixture\ndef shop():\n    raise OSError('closed')\n\n"
    tests = "".join(f"def test_{name}(shop):\n    pass\n" for name in "abc")
    lost = "".join(f"def test_{name}(shp):\n    pass\n" for name in "de")
    run = native({"round-1/test_a.py": fixture + tests + lost}, at="round-1")
    raised, missing = [line for line in run.fault.splitlines() if "/test_a.py:" in line]
    assert raised.endswith("test_a.py:5: a fixture failed: OSError: closed (3 cases)")
    assert missing.endswith("fixture 'shp' not found, used by test_d; known: shop (2 cases)")


def test_no_failing_fixture_after_a_failed_test_and_no_talk_of_a_timeout_excuses_it(native: RunNative) -> None:
    test = "import pytest\n\n@pytest.fixture\ndef f():\n    yield\n    1 / 0\n\ndef test_x(f):\n    assert 0\n"
    timeout = "def test_x():\n    assert 0, 'Timeout (>60.0s) from pytest-timeout.'\n"
    found = verdict(native({"round-1/test_a.py": test, "round-1/test_b.py": timeout}))
    assert [case.failing for case in found.cases] == [True, True]
    assert found.reward == 0.0
    assert found.flags == ()


@pytest.mark.parametrize("pinned", [None, PINNED])
@pytest.mark.matrix
def test_a_suite_without_tests_is_an_error_that_says_so(native: RunNative, pinned: dict[str, str] | None) -> None:
    run = native({"round-1/test_a.py": "import os\n"}, pinned=pinned)
    if pinned:
        assert [case.reason for case in verdict(run).cases] == ["not run: it was not collected"] * 2
    else:
        assert run.fault == "the suite has no test: every round needs one that is still required"


@pytest.mark.nightly
def test_all_that_is_required_may_not_be_retired(native: RunNative) -> None:
    test = "import pytest\n\n@pytest.mark.requirement('a', retired='round-2')\ndef test_x():\n    pass\n"
    run = native({"round-1/test_a.py": test})
    assert run.fault == "the suite has no test: every round needs one that is still required"


WRONG_MARKERS = {
    "require": "pytest.mark.requirement() is wrong; write requirement(",
    "require('a', 'b')": "pytest.mark.requirement('a', 'b') is wrong",
    "require('a b')": "pytest.mark.requirement('a b') is wrong",
    "require('')": "pytest.mark.requirement('') is wrong",
    "require(1)": "pytest.mark.requirement(1) is wrong",
    "require('a', kind='best')": "pytest.mark.requirement('a', kind='best') is wrong",
    "require('a', kidn='core')": "pytest.mark.requirement('a', kidn='core') is wrong",
    "require('a', retired=['x'])": "pytest.mark.requirement('a', retired=['x']) is wrong",
    "require('a', retired='b' + 'c')": (
        'retired="bc" names no round of the task and no requirement; there are: round-1, round-2, known'
    ),
    "require('a', retired='round-1')": 'retired="round-1" means from round-1 on, and the test comes no earlier',
    "require('a', retired='known')": 'retired="known" means from round-1 on, and the test comes no earlier',
}


def test_wrong_markers_that_only_running_shows_are_the_authors(native: RunNative) -> None:
    test = "".join(f"@{marker}\ndef test_{number}(): pass\n" for number, marker in enumerate(WRONG_MARKERS))
    known = "import pytest\n\n@pytest.mark.requirement('known')\ndef test_known():\n    pass\n"
    head = "import pytest\nrequire = pytest.mark.requirement\n"
    run = native({"round-1/test_a.py": head + test, "round-1/test_b.py": known}, at="round-1", pinned=PINNED)
    first, *lines = run.fault.splitlines()
    assert first == "the suite is wrong; correct it:"
    for number, (said, line) in enumerate(zip(WRONG_MARKERS.values(), lines, strict=True)):
        assert re.match(rf"/.*/task/steps/round-1/tests/test_a\.py:{2 * number + 3}: ", line)
        assert said in line
    assert "PASSED" not in run.output


def test_two_cases_of_one_name_are_the_authors(native: RunNative) -> None:
    conftest = "def pytest_collection_modifyitems(items):\n    items += items[:1]\n"
    run = native({**GOOD, "tests/conftest.py": conftest})
    assert run.verdict is None
    assert "test_good.py:1: 2 cases are called round-1/test_good.py::test_good" in run.fault


# Output.


def test_of_a_flood_the_ends_are_kept_and_the_case_counts(native: RunNative) -> None:
    test = """
import os
import sys

def test_descriptor():
    for _ in range(40):
        os.write(1, b"x" * 10**6)

def test_failing():
    for _ in range(40):
        print("y" * 10**6)
    assert 0

def test_uncaptured(capfd):
    with capfd.disabled():
        for _ in range(40):
            print("z" * 10**6)
"""
    run = native({"round-1/test_a.py": test})
    assert [case.status for case in verdict(run).cases] == ["passed", "failed", "passed"]
    assert len(run.output) < 32 * 2**20
    assert run.output.startswith("Python 3")
    assert "1 failed, 2 passed" in run.output[-1000:]


@pytest.mark.parametrize("left", ["x" * 70_000, "[]"])
@pytest.mark.matrix
def test_the_note_of_the_running_case_may_be_anything(native: RunNative, left: str) -> None:
    test = f"""
import os
from pathlib import Path

def test_x():
    Path("/tests/.evocode/running.json").write_text({left!r})
    os._exit(3)
"""
    run = native({"round-1/test_a.py": test})
    assert run.verdict is None
    assert "exit code 3" in run.fault


@pytest.mark.parametrize(
    "report",
    [
        "no JSON",
        "[]",
        '{"tests": [], "evocode": {}}',
        '{"tests": [], "evocode": {"problems": [], "errors": [7], "unlike": []}}',
    ],
    ids=["no JSON", "no object", "no notes", "no errors"],
)
def test_a_report_that_is_none_is_no_verdict(native: RunNative, report: str) -> None:
    """As code of the agent's may tell it that a test imports."""
    told = f"""
import gc, os
[door] = [each for each in gc.get_objects() if type(each).__name__ == "DoorClient"]
door.ask("report", {report!r}.encode())
os._exit(0)
"""
    test = "import sys\nsys.path.insert(0, '/app')\ndef test_it() -> None:\n    import told_by_agent\n"
    run = native(
        {"round-1/test_it.py": test},
        rounds=["round-1"],
        workspace=f"cat > /app/told_by_agent.py <<'END'\n{told}END\n",
    )
    assert run.verdict is None
    assert "ended with exit code 0 and no report of its own in round-1/test_it.py::test_it" in run.fault


def test_a_suite_whose_program_prints_much_has_a_verdict_all_the_same(native: RunNative) -> None:
    # A zero takes six characters of JSON, so that all these cases have more than a suite may report.
    tests = """
        import pytest

        @pytest.mark.parametrize("number", range(100))
        def test_long(number, record_property):
            for name in ("input", "actual"):
                record_property(name, "\\0" * 5000)
            assert number < 99
    """
    run = native({"round-1/test_a.py": textwrap.dedent(tests)})
    assert (run.fault, run.verdict and run.verdict.reward) == ("", 0.0)
    assert run.verdict is not None
    assert [case.status for case in run.verdict.cases] == ["passed"] * 99 + ["failed"]
    first, last = run.verdict.cases[0], run.verdict.cases[-1]
    assert first.actual.startswith("\0\0")
    assert (last.actual, last.scenario) == ("", "(left out: too long)")
