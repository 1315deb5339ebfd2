"""Native tests that go past the fixture `workspace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from tests.checks.conftest import LintTask

SCRIPTS = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
PATH = "steps/round-1/tests/test_total.py"
CLEAN = '[metadata.evocode]\nverify_in = "clean"\n'
PRODUCT = {"environment/ledger.py": "", "steps/round-2/solution/project/prices/rates.py": ""}
GIVEN = "def test_total(workspace):\n"


class LintNative(Protocol):
    """Returns what lint says of a native suite beside a product of the modules `ledger` and `prices`."""

    def __call__(self, files: Mapping[str, str], toml: str = "") -> list[str]: ...


@pytest.fixture
def said(lint_task: LintTask) -> LintNative:
    """See :class:`LintNative`."""
    return lambda files, toml="": lint_task({**PRODUCT, **files}, toml=toml, without=SCRIPTS)


def test_all_lines_of_a_file_are_shown_at_its_first(said: LintNative) -> None:
    text = "import subprocess\n\ndef test_total():\n    subprocess.run(['ls'])\n\n    subprocess.run(['ls'])\n"
    assert said({PATH: text, "tests/conftest.py": "import os\nos.system('ls')\n"}) == [
        f"{PATH}:4: starts programs by subprocess.run (also in line 6); use workspace.run or workspace.popen, "
        'because nothing of the agent\'s is where this suite runs; or say verify_in = "clean"',
        "tests/conftest.py:2: starts programs by os.system; use workspace.run or workspace.popen, "
        'because nothing of the agent\'s is where this suite runs; or say verify_in = "clean"',
    ]


def test_a_suite_in_the_fork_is_advised_and_does_not_fail(said: LintNative) -> None:
    (advice,) = said({PATH: "import ledger\n"}, toml=CLEAN)
    assert advice.endswith(
        "imports the product's ledger; use workspace.call or workspace.python and leave out "
        'verify_in = "clean", so that no program can reach the suite'
    )


def test_advice_is_a_warning(lint_task: LintTask) -> None:
    files = {PATH: "import os\nos.system('ls')\n"}
    assert all(isinstance(line, CheckWarning) for line in lint_task(files, toml=CLEAN, without=SCRIPTS))


@pytest.mark.parametrize("verify_in", ["in-place"])
def test_a_suite_that_needs_live_processes_or_a_fresh_image_is_left_alone(said: LintNative, verify_in: str) -> None:
    toml = f'[metadata.evocode]\nverify_in = "{verify_in}"\n'
    assert said({PATH: "import ledger\n"}, toml=toml) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from subprocess import Popen as start\nstart(['ls'])\n", "starts programs by subprocess.Popen"),
        ("import subprocess as sp\nrun = sp.check_output\n", "starts programs by subprocess.check_output"),
        ("import os\nos.execvp('ls', ['ls'])\n", "starts programs by os.execvp"),
        ("import asyncio\nasyncio.create_subprocess_exec('ls')\n", "starts programs by asyncio.create_subprocess_exec"),
        ("from pexpect import spawn\nspawn('bash')\n", "starts programs by pexpect.spawn"),
        ("from ledger import total\n", "imports the product's ledger"),
        ("import prices.rates\n", "imports the product's prices.rates"),
        ("import importlib\nimportlib.import_module('prices')\n", "imports the product's prices"),
        ("import pytest\npytest.importorskip('ledger')\n", "imports the product's ledger"),
        ("import sys\nsys.path.insert(0, '/app/src')\n", "puts /app/src on sys.path"),
        ("open('/app/out.txt')\n", "looks at /app/out.txt"),
        ("APP = '/app'\nopen(f'{APP}/{name}.txt')\n", "looks at /app/"),
        ("from pathlib import Path\nAPP = Path('/app')\nnotes = APP / 'NOTES'\nnotes.read_text()\n", "/app/NOTES"),
        ("import os\nos.path.exists(os.path.join('/app', 'out'))\n", "looks at /app/out"),
        ("import shutil\nshutil.copy('/app/out', tmp_path)\n", "looks at /app/out"),
        (GIVEN + "    eval(workspace.read_text('out'))\n", "calls eval on what the workspace gave"),
        (GIVEN + "    import pickle\n    pickle.loads(workspace.read('out'))\n", "calls pickle.loads"),
        (GIVEN + "    done = workspace.run('x')\n    out = done.stdout\n    exec(out)\n", "calls exec"),
        (GIVEN + "    for line in workspace.read_text('a').split():\n        eval(line)\n", "calls eval"),
    ],
)
def test_what_goes_past_the_workspace_is_named(said: LintNative, text: str, words: str) -> None:
    (problem,) = said({PATH: text})
    assert words in problem


@pytest.mark.parametrize(
    "text",
    [
        GIVEN + "    assert workspace.run('python3 /app/ledger.py').stdout == ''\n",
        "from pathlib import Path\nAPP = Path('/app')\n" + GIVEN + "    workspace.read_text(APP / 'ledger.py')\n",
        GIVEN + "    workspace.exists('/app/out')\n",
        "import subprocess\nDONE = subprocess.PIPE\n",
        "import json\n" + GIVEN + "    json.loads(workspace.read_text('out'))\n",
        "open('/tests/data.txt')\n",
        "def test_total(tmp_path):\n    (tmp_path / 'a').read_text()\n    open(tmp_path / 'a')\n",
        "from .ledger import BOOKS\n",
        "eval('1 + 1')\n",
        "import json, journals\n",
        "run = print\nrun('subprocess.run')\n",
    ],
)
def test_what_keeps_to_it_is_passed_over(said: LintNative, text: str) -> None:
    assert said({PATH: text, "tests/journals.py": ""}) == []


def test_of_a_module_that_is_no_python_only_that_is_said(said: LintNative) -> None:
    (problem,) = said({PATH: "import subprocess\ndef test_(:\n"})
    assert problem.startswith(f"{PATH}:2: is not valid Python")


def test_running_what_the_agent_wrote_is_no_matter_of_the_place(said: LintNative) -> None:
    assert said({PATH: GIVEN + "    eval(workspace.read('out'))\n"}) == [
        f"{PATH}:2: calls eval on what the workspace gave, which runs code of the agent's in the suite; "
        "compare the bytes, or parse them as data"
    ]


def test_a_module_of_the_tests_is_none_of_the_products(said: LintNative) -> None:
    assert said({"tests/ledger.py": "BOOKS = 3\n", PATH: "from ledger import BOOKS\n"}) == []


def test_a_line_that_names_the_verifier_is_meant(said: LintNative) -> None:
    text = "import subprocess\nsubprocess.run(['openssl', 'genrsa'])  # in the verifier environment\n"
    assert said({PATH: text}) == []


def test_a_script_may_start_what_it_likes(lint_task: LintTask) -> None:
    assert lint_task({"tests/run.py": "import subprocess\nsubprocess.run(['ls'])\n"}) == []
