"""What the tests of native suites declare is read from their source, and wrong markers are errors with their line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Requirement, Task, load_task

WriteTask = Callable[..., Path]
THREE = "".join(f'[[steps]]\nname = "round-{index}"\n' for index in (1, 2, 3))
ROUNDS = ("round-1", "round-2", "round-3")
Declared = tuple[str, str, str, str, str]


@pytest.fixture
def load(write_task: WriteTask) -> Callable[..., Task]:
    """Load a task of three rounds that has no ``test.sh`` and these files; a name alone is a test of round 1."""

    def write_and_load(files: dict[str, str] | str) -> Task:
        if isinstance(files, str):
            files = {"steps/round-1/tests/test_a.py": files}
        scripts = [f"steps/{name}/tests/test.sh" for name in ROUNDS]
        return load_task(write_task(THREE, steps=ROUNDS, files=files, without=scripts))

    return write_and_load


def declared(task: Task) -> list[Declared]:
    return [(test.round, test.name, test.requirement, test.kind, test.retired) for test in task.tests]


def problems(load: Callable[..., Task], files: dict[str, str] | str) -> list[str]:
    """What is wrong, line by line, from the path of the tests on."""
    with pytest.raises(TaskError) as caught:
        load(files)
    return [line.partition("/ledger/")[2] for line in str(caught.value).splitlines()]


# What is read.


def test_markers_are_read_where_pytest_has_them(load: Callable[..., Task]) -> None:
    source = """
import pytest
from pytest import mark

pytestmark = [pytest.mark.slow, pytest.mark.requirement("module", kind="core")]

def test_of_the_module(): ...

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.requirement("own", kind="error", retired="round-3")
def test_own(n): ...

@mark.requirement("imported")
async def test_imported(): ...

@pytest.mark.requirement("upper")
@pytest.mark.requirement("lower")
def test_upper(): ...

@pytest.mark.requirement("class", kind="boundary")
class TestClass:
    def test_of_the_class(self): ...

    class TestInner:
        pytestmark: object = pytest.mark.requirement("inner")

        def test_of_the_inner_class(self): ...

    def helper(self): ...

@pytest.mark.requirement("decorator")
class TestBoth:
    pytestmark = pytest.mark.requirement("attribute")

    def test_of_the_decorator(self): ...

class Cases(unittest.TestCase):
    @pytest.mark.requirement("unittest")
    def test_of_unittest(self): ...

class Helper:
    def test_is_none(self): ...

def helper(): ...

if True:
    def test_below_if(): ...
else:
    try:
        def test_below_try(): ...
    except ImportError:
        def test_below_except(): ...
"""
    assert declared(load(source)) == [
        ("round-1", name, *rest)
        for name, *rest in [
            ("test_of_the_module", "module", "core", ""),
            ("test_own", "own", "error", "round-3"),
            ("test_imported", "imported", "", ""),
            ("test_upper", "upper", "", ""),
            ("test_of_the_class", "class", "boundary", ""),
            ("test_of_the_inner_class", "inner", "", ""),
            ("test_of_the_decorator", "decorator", "", ""),
            ("test_of_unittest", "unittest", "", ""),
            ("test_below_if", "module", "core", ""),
            ("test_below_try", "module", "core", ""),
            ("test_below_except", "module", "core", ""),
        ]
    ]


def test_parameters_may_have_requirements_of_their_own(load: Callable[..., Task]) -> None:
    source = """
import pytest

@pytest.mark.requirement("all")
@pytest.mark.parametrize("n", [
    1,
    pytest.param(2, marks=pytest.mark.requirement("two", retired="round-2")),
    pytest.param(3, marks=[pytest.mark.slow, pytest.mark.requirement("three")]),
    pytest.param(4, marks=pytest.mark.slow),
])
def test_each(n): ...
"""
    assert [(test.name, test.requirement, test.line) for test in load(source).tests] == [
        ("test_each", "all", 4),
        ("test_each", "two", 7),
        ("test_each", "three", 8),
    ]


def test_markers_under_other_names_introduce_their_requirements(load: Callable[..., Task]) -> None:
    source = """
import pytest

total = pytest.mark.requirement("total", kind="core")
CASES = [pytest.param(1, marks=pytest.mark.requirement("one"))]

@total
@pytest.mark.parametrize("n", CASES)
def test_each(n): ...
"""
    assert {each.id for each in load(source).requirements} == {"total", "one"}


def test_a_test_without_a_marker_has_the_line_of_its_function(load: Callable[..., Task]) -> None:
    (test,) = load("\n\n@decorated\ndef test_x(): ...\n").tests
    assert (test.requirement, test.line) == ("", 4)
    assert test.path.parts[-4:] == ("steps", "round-1", "tests", "test_a.py")


def test_tests_belong_to_the_round_that_brings_them_and_shared_ones_to_the_first(load: Callable[..., Task]) -> None:
    task = load(
        {
            "tests/test_shared.py": "def test_a(): ...\n",
            "tests/deep/test_shared.py": "def test_b(): ...\n",
            "tests/conftest.py": "def test_no(): ...\n",
            "steps/round-1/tests/test_c.py": "def test_c(): ...\n",
            "steps/round-3/tests/sub/test_d.py": "def test_d(): ...\n",
            "steps/round-3/tests/cases.py": "def test_no(): ...\n",
        }
    )
    assert [(test.round, test.name) for test in task.tests] == [
        ("round-1", "test_a"),
        ("round-1", "test_b"),
        ("round-1", "test_c"),
        ("round-3", "test_d"),
    ]


def test_shared_tests_belong_to_the_first_round_that_no_script_verifies(write_task: WriteTask) -> None:
    files = {"tests/test_shared.py": "def test_a(): ...\n"}
    task = load_task(write_task(THREE, steps=ROUNDS, files=files, without=["steps/round-2/tests/test.sh"]))
    assert [(test.round, test.name) for test in task.tests] == [("round-2", "test_a")]
    assert [round_.has_script for round_ in task.rounds] == [True, False, True]


def test_a_requirement_lives_from_its_first_test_until_its_last_is_retired(load: Callable[..., Task]) -> None:
    def test(name: str, *arguments: str) -> str:
        return f"@pytest.mark.requirement({', '.join(arguments)})\ndef test_{name}(): ...\n"

    task = load(
        {
            "steps/round-1/tests/test_a.py": test("a", '"kept"', 'kind="core"')
            + test("b", '"half"', 'retired="round-2"')
            + test("c", '"gone"', 'retired="round-2"')
            + test("d", '"gone"', 'retired="later"'),
            "steps/round-2/tests/test_b.py": test("e", '"half"', 'kind="error"'),
            "steps/round-3/tests/test_c.py": test("f", '"later"'),
        }
    )
    assert task.requirements == (
        Requirement("kept", "core", "round-1", ""),
        Requirement("half", "", "round-1", ""),
        Requirement("gone", "", "round-1", "round-3"),
        Requirement("later", "", "round-3", ""),
    )


@pytest.mark.parametrize(
    "source", ["def test_x(:\n", "\0", "x = '\\d'\ndef test_x(): ...\n", "\ufeffdef test_x(): ...\n"]
)
def test_what_this_python_cannot_parse_is_left_to_that_of_the_image(load: Callable[..., Task], source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task = load(source)
    assert [test.name for test in task.tests] == (["test_x"] if source.endswith("...\n") else [])


def test_nothing_of_a_task_is_imported(load: Callable[..., Task], tmp_path: Path) -> None:
    load(f"open({str(tmp_path / 'imported')!r}, 'w')\ndef test_x(): ...\n")
    assert not (tmp_path / "imported").exists()


# What is refused.

USAGE = 'write @pytest.mark.requirement("id", kind="core", retired="round-9"), kind and retired only where needed'


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("requirement", f"the requirement marker takes one id, not 0 arguments; {USAGE}"),
        ("requirement()", f"the requirement marker takes one id, not 0 arguments; {USAGE}"),
        ('requirement("a", "b")', f"the requirement marker takes one id, not 2 arguments; {USAGE}"),
        ('requirement("")', f"id must be a non-empty string literal, because the file is read and not run; {USAGE}"),
        ("requirement(1)", f"id must be a non-empty string literal, because the file is read and not run; {USAGE}"),
        ("requirement(ID)", f"id must be a non-empty string literal, because the file is read and not run; {USAGE}"),
        ("requirement(*IDS)", f"id must be a non-empty string literal, because the file is read and not run; {USAGE}"),
        ('requirement("a b")', f"the id \"a b\" is not made of letters, digits, '.', '_' and '-'; {USAGE}"),
        ('requirement("a", kidn="core")', f"the requirement marker has no argument kidn; {USAGE}"),
        ('requirement("a", **MORE)', f"the requirement marker has no argument **; {USAGE}"),
        ('requirement("a", kind="best")', 'kind="best" is none of core, boundary, error, integration'),
        (
            'requirement("a", kind=f"core")',
            f"kind must be a non-empty string literal, because the file is read and not run; {USAGE}",
        ),
        (
            'requirement("a", retired=LAST)',
            f"retired must be a non-empty string literal, because the file is read and not run; {USAGE}",
        ),
        (
            'requirement("a", retired="round-9")',
            'retired="round-9" names no round of the task and no requirement; '
            "there are: round-1, round-2, round-3, a, known",
        ),
        (
            'requirement("a", retired="round-1")',
            'retired="round-1" means from round-1 on, but the test comes with round-1; name a later round, or remove '
            "the test",
        ),
        (
            'requirement("a", retired="known")',
            'retired="known" means from round-1 on, but the test comes with round-1; name a later round, or remove '
            "the test",
        ),
    ],
)  # fmt: skip
def test_a_wrong_marker_is_an_error_with_its_line(load: Callable[..., Task], marker: str, message: str) -> None:
    known = '@pytest.mark.requirement("known")\ndef test_known(): ...\n'
    found = problems(load, f"{known}\n@pytest.mark.slow\n@pytest.mark.{marker}\ndef test_x(): ...\n")
    assert found == [f"steps/round-1/tests/test_a.py:5: {message}"]


@pytest.mark.parametrize(
    "source",
    [
        "pytestmark = pytest.mark.requirement(1)\n",
        "@pytest.mark.requirement(1)\nclass TestX: ...\n",
        "class TestX:\n    pytestmark = [pytest.mark.requirement(1)]\n",
        "@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.requirement(1))])\ndef test_x(n): ...\n",
        "CASES = [pytest.param(1, marks=(pytest.mark.requirement(1),))]\n",
        "if True:\n    @pytest.mark.requirement(1)\n    def test_x(): ...\n",
    ],
)
def test_a_wrong_marker_is_found_wherever_it_is(load: Callable[..., Task], source: str) -> None:
    (found,) = problems(load, source)
    assert "id must be a non-empty string literal" in found


def test_all_wrong_markers_are_told_at_once(load: Callable[..., Task]) -> None:
    found = problems(
        load,
        {
            "tests/test_shared.py": "@pytest.mark.requirement()\ndef test_x(): ...\n",
            "steps/round-1/tests/test_a.py": "@pytest.mark.requirement(1)\ndef test_x(): ...\n" * 2,
            "steps/round-2/tests/test_b.py": '@pytest.mark.requirement("a", retired="round-1")\ndef test_x(): ...\n',
        },
    )
    assert [line.partition(": ")[0] for line in found] == [
        "tests/test_shared.py:1",
        "steps/round-1/tests/test_a.py:1",
        "steps/round-1/tests/test_a.py:3",
        "steps/round-2/tests/test_b.py:1",
    ]


def test_shared_tests_may_not_lie_where_those_of_a_round_are_put(load: Callable[..., Task]) -> None:
    files = {"steps/round-1/tests/test_a.py": "", "tests/round-2/data.txt": ""}
    assert problems(load, files) == [
        "tests/round-2: has the name of a round, whose tests are put there; move what is in it to the round's own "
        "tests, or rename it"
    ]


def test_a_module_that_cannot_be_read_is_an_error(load: Callable[..., Task], tmp_path: Path) -> None:
    (tmp_path / "ledger/steps/round-1/tests/test_b.py").mkdir(parents=True)
    files = {"steps/round-1/tests/test_a.py": "def test_x(): ...\n"}
    link = tmp_path / "ledger/steps/round-1/tests/test_c.py"
    link.symlink_to("nowhere")
    assert problems(load, files) == [
        "steps/round-1/tests/test_c.py: cannot be read (No such file or directory); check its permissions"
    ]
