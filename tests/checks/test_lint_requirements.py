"""Tests of native suites that no marker gives a requirement."""

from __future__ import annotations

import pytest

from tests.checks.conftest import LintTask

SCRIPTS = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
PATH = "steps/round-2/tests/test_second.py"
MARK = '@pytest.mark.requirement("total")\n'
FIRST = {"steps/round-1/tests/test_first.py": f"import pytest\n{MARK}def test_first(): ...\n"}
SAYS = 'has no requirement, while other tests of the task have one; write @pytest.mark.requirement("id") above it'


def in_native(lint_task: LintTask, text: str, files: dict[str, str] | None = None) -> list[str]:
    """What lint says of a second round with this module, in a task whose first round has a requirement."""
    return lint_task({**FIRST, PATH: text, **(files or {})}, without=SCRIPTS)


def test_a_test_without_a_requirement_is_named_with_its_line(lint_task: LintTask) -> None:
    assert in_native(lint_task, f"import pytest\n{MARK}def test_a(): ...\n\ndef test_b(): ...\n") == [
        f"{PATH}:5: test_b {SAYS}"
    ]


def test_a_task_that_uses_no_requirements_needs_none(lint_task: LintTask) -> None:
    plain = "def test_a(): ...\n"
    assert lint_task({"steps/round-1/tests/test_first.py": plain, PATH: plain}, without=SCRIPTS) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{MARK}async def test_a(): ...\n",
        'pytestmark = pytest.mark.requirement("a")\ndef test_a(): ...\nclass TestA:\n    def test_b(self): ...\n',
        'pytestmark = [pytest.mark.slow, pytest.mark.requirement("a")]\ndef test_a(): ...\n',
        f"{MARK}class TestA:\n    def test_a(self): ...\n    class TestB:\n        def test_b(self): ...\n",
        'class TestA:\n    pytestmark = pytest.mark.requirement("a")\n    def test_a(self): ...\n',
        f"{MARK}class Base:\n    def test_a(self): ...\nclass TestA(Base): ...\n",
        f"class Base:\n    {MARK}    def test_a(self): ...\nclass TestA(Base): ...\n",
        'total = pytest.mark.requirement("a")\n@total\ndef test_a(): ...\n',
        'MARKS = [pytest.mark.requirement("a")]\npytestmark = MARKS\ndef test_a(): ...\n',
        'def covers(id):\n    return pytest.mark.requirement("a")\n@covers("a")\ndef test_a(): ...\n',
        '@pytest.mark.parametrize("a", [pytest.param(1, marks=pytest.mark.requirement("a"))])\ndef test_a(a): ...\n',
        'A = [pytest.param(1, marks=[pytest.mark.requirement("a")])]\n@pytest.mark.parametrize("a", A)\n'
        "def test_a(a): ...\n",
        '@pytest.mark.parametrize("a", [pytest.param(a, marks=pytest.mark.requirement("a")) for a in (1, 2)])\n'
        "def test_a(a): ...\n",
        f"{MARK}@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a): ...\n",
        '@pytest.fixture(autouse=True)\ndef mark(request): request.applymarker(pytest.mark.requirement("a"))\n'
        "def test_a(): ...\n",
    ],
)
def test_a_requirement_may_come_from_anywhere_that_pytest_takes_marks_from(lint_task: LintTask, text: str) -> None:
    assert in_native(lint_task, f"import pytest\n{text}") == []


@pytest.mark.parametrize(
    "text",
    [
        "@pytest.fixture\ndef test_books(): ...\n",
        f"class Helper:\n    def test_a(self): ...\n{MARK}def test_b(): Helper().test_a()\n",
        "class TestA:\n    __test__ = False\n    def test_a(self): ...\n",
        "def check_test(): ...\n",
    ],
)
def test_what_pytest_does_not_collect_needs_none(lint_task: LintTask, text: str) -> None:
    assert in_native(lint_task, f"import pytest\n{text}") == []


def test_classes_name_their_tests(lint_task: LintTask) -> None:
    text = "class TestA:\n    def test_a(self): ...\n\nclass Books(TestCase):\n    def test_b(self): ...\n"
    assert in_native(lint_task, text) == [f"{PATH}:2: TestA.test_a {SAYS}", f"{PATH}:5: Books.test_b {SAYS}"]


def test_inherited_tests_are_named_where_they_are_inherited(lint_task: LintTask) -> None:
    shared = "class Contract:\n    def test_open(self): ...\n    def test_shut(self): ...\n"
    text = (
        "import pytest\nfrom contracts import Contract\n\n"
        f"class TestBooks(Contract):\n    {MARK}    def test_shut(self): ...\n"
    )
    assert in_native(lint_task, text, {"tests/contracts.py": shared}) == [
        f"{PATH}:4: TestBooks.test_open, from tests/contracts.py:2, {SAYS}"
    ]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("from contracts import test_open\n", "tests/contracts.py"),
        ("from contracts import *\n", "tests/contracts.py"),
        ("from deep.contracts import test_open as test_again\n", "tests/deep/contracts.py"),
        ("from .contracts import test_open\n", "steps/round-2/tests/contracts.py"),
        ("try:\n    from .contracts import test_open\nexcept ImportError: ...\n", "steps/round-2/tests/contracts.py"),
    ],
)
def test_tests_of_helper_modules_count_where_they_are_imported(lint_task: LintTask, line: str, place: str) -> None:
    (problem,) = in_native(lint_task, line, {place: "\ndef test_open(): ...\n"})
    at = 2 if line.startswith("try") else 1
    assert problem == f"{PATH}:{at}: test_open, from {place}:2, {SAYS}"
    marked = f"import pytest\n{MARK}def test_open(): ...\n"
    assert in_native(lint_task, line, {place: marked}) == []


def test_the_mark_of_a_module_holds_for_the_tests_that_it_imports(lint_task: LintTask) -> None:
    text = 'import pytest\nfrom contracts import test_open\npytestmark = pytest.mark.requirement("a")\n'
    assert in_native(lint_task, text, {"tests/contracts.py": "def test_open(): ...\n"}) == []


def test_modules_may_import_each_other(lint_task: LintTask) -> None:
    files = {"tests/a.py": "from b import *\ndef test_open(): ...\n", "tests/b.py": "from a import *\n"}
    assert len(in_native(lint_task, "from a import *\n", files)) == 1


def test_a_parameter_without_marks_among_others_is_named(lint_task: LintTask) -> None:
    text = (
        'import pytest\n@pytest.mark.parametrize("a", [\n    pytest.param(1, marks=pytest.mark.requirement("a")),\n'
        "    pytest.param(2),\n])\ndef test_a(a): ...\n"
    )
    assert in_native(lint_task, text) == [
        f"{PATH}:4: test_a has a parameter without a requirement, while others have one; give it marks, too"
    ]


def test_where_a_conftest_adds_marks_nothing_is_said(lint_task: LintTask) -> None:
    hook = "def pytest_collection_modifyitems(items):\n    for item in items: item.add_marker('requirement')\n"
    text = "def test_a(): ...\n"
    assert in_native(lint_task, text, {"tests/conftest.py": hook}) == []
    assert in_native(lint_task, text, {"tests/conftest.py": "", "steps/round-2/tests/conftest.py": hook}) == []
    assert in_native(lint_task, text, {"steps/round-2/tests/conftest.py": "", "steps/round-1/tests/conftest.py": hook})


def test_tests_that_a_script_runs_need_none(lint_task: LintTask) -> None:
    files = {**FIRST, "steps/round-2/tests/test.sh": "#!/bin/bash\npytest /tests\n", PATH: "def test_a(): ...\n"}
    assert lint_task(files, without=SCRIPTS[:1]) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            f"{MARK}def check_zone(): ...\n",
            "3: check_zone has a requirement and is not collected; call it test_check_zone",
        ),
        (f"{MARK}async def _zone(): ...\n", "3: _zone has a requirement and is not collected; call it test_zone"),
        (
            'total = pytest.mark.requirement("a")\n@total\ndef Test_zone(): ...\n',
            "4: Test_zone has a requirement and is not collected; call it test_Test_zone",
        ),
        (
            f"class TestA:\n    {MARK}    def zone(self): ...\n",
            "4: TestA.zone has a requirement and is not collected; call it test_zone",
        ),
        ("class Zones:\n    def test_x(self): ...\n", "2: Zones has tests and is not collected; call it TestZones"),
        (f"{MARK}class Zones:\n    def x(self): ...\n", "3: Zones has tests and is not collected; call it TestZones"),
        (
            f"class Zones:\n    {MARK}    def x(self): ...\n",
            "2: Zones has tests and is not collected; call it TestZones",
        ),
        (
            f"{MARK}class TestZones:\n    def __init__(self): ...\n    def test_x(self): ...\n",
            "3: TestZones has __init__, so that its tests are not collected; write a fixture in its place",
        ),
        (
            f"class Base:\n    def __init__(self): ...\n{MARK}class TestZones(Base):\n    def test_x(self): ...\n",
            "5: TestZones has __init__, so that its tests are not collected; write a fixture in its place",
        ),
    ],
)
def test_what_is_meant_as_a_test_is_collected(lint_task: LintTask, text: str, says: str) -> None:
    assert in_native(lint_task, f"import pytest\n{text}") == [f"{PATH}:{says}"]


@pytest.mark.parametrize(
    "text",
    [
        f"{MARK}def zone(): ...\ntest_zone = zone\n",
        f"{MARK}class Zones:\n    def test_x(self): ...\nclass TestZones(Zones): ...\n",
        f"{MARK}class Zones(TestCase):\n    def __init__(self): ...\n    def test_x(self): ...\n",
        f"{MARK}class Zones:\n    __test__ = True\n    def test_x(self): ...\n",
        "class TestServer:\n    def __init__(self): ...\n    def start(self): ...\n",
        f"class TestServer:\n    def __init__(self): ...\n    {MARK}    def test_it(self): ...\nTestServer()\n",
        "class Zones:\n    @pytest.fixture\n    def test_x(self): ...\n",
    ],
)
def test_what_may_be_collected_by_another_name_is_passed_over(lint_task: LintTask, text: str) -> None:
    assert in_native(lint_task, f"import pytest\n{text}") == []


def test_a_conftest_may_have_more_collected(lint_task: LintTask) -> None:
    files = {"tests/conftest.py": "def pytest_pycollect_makeitem(collector, name, obj): ...\n"}
    assert in_native(lint_task, f"import pytest\n{MARK}def check_zone(): ...\n", files) == []
