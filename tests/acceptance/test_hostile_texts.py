"""Whatever a program or an agent writes into what is shown of it: no terminal, no reader and no CI runner obeys it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

# A title for the terminal, a cleared screen, a carriage return, marks that turn the direction, and runners' commands.
HOSTILE = r"\033]0;pwned\007\033[2J\rgone \u202egnorw \u2066x\u2069 ##[error]pwned ##vso[task.complete]pwned"
SUITE = rf"""
printf '%b' 'x{HOSTILE}\n::error::pwned\n' >> /app/log.txt
python3 - <<'END'
import json
text = "x" + "{HOSTILE}" + "\n::error::pwned\n  ::stop-commands::pwned"
test = {{"name": "case " + text, "status": "failed", "message": text,
        "extra": {{"actual": text, "expected": text, "requirement_ref": "req" + text}}}}
with open("/logs/verifier/ctrf.json", "w") as file:
    json.dump({{"results": {{"tests": [test, {{**test, "name": "::warning::pwned"}}]}}}}, file)
END
echo 0 > /logs/verifier/reward.txt
"""


def require_harmless(text: str, *, own: tuple[str, ...] = ()) -> None:
    """Fail if a text has what a terminal or a runner obeys; ``own`` is how lines of ours begin that it may obey."""
    text = re.sub(r"(?m)\r?$", "", text)
    assert "pwned" in text
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.findall(r"##\w*\[", text)
    commands = [line for line in text.splitlines() if line.strip().startswith("::")]
    assert [line for line in commands if not line.startswith(own or ("-",))] == []


@pytest.fixture
def hostile(write_task: WriteTask) -> None:
    """Round 1 fails with hostile cases, round 2 ends in an error whose cause is hostile."""
    broken = rf"printf '%b' '{HOSTILE}\n::error::pwned\n'; exit 1"
    write_task("a", 2, test={1: SUITE}, workdir={2: {"setup.sh": broken}})


def require_shown(session: Session) -> None:
    assert session.outcomes == {"failed": 1, "errors": 1}
    session.has(r"*case x\x1b]0;pwned\x07\x1b[[]2J\x0dgone \u202egnorw \u2066x\u2069 \x23#[[]error]pwned*")
    assert r"\x3a:error::pwned" in session.text


@pytest.mark.parametrize("env", ["sandbox"])
def test_a_terminal_a_report_and_commands_show_what_programs_wrote_and_obey_none_of_it(
    hostile: None, run_tasks: RunTasks, tmp_path: Path, env: str
) -> None:
    session = run_tasks("-rA", "--junitxml=junit.xml", "tasks", env=env)
    require_shown(session)
    require_harmless(session.text)
    require_harmless("".join(ElementTree.parse(session.directory / "junit.xml").getroot().itertext()))
    values = [each.get("value", "") for each in ElementTree.parse(session.directory / "junit.xml").iter("property")]
    require_harmless("\n".join(values))
    for command in ("failures", "failures --json", "export --cases", "export --json", "export", "results"):
        printed = CliRunner().invoke(main, [*command.split(), str(session.results)])
        assert printed.exit_code == 0, printed.output
        require_harmless(printed.output + ("pwned" if command == "results" else ""))
    # A file of exported cases has them as they were.
    file = tmp_path / "cases.csv"
    assert CliRunner().invoke(main, ["export", "--cases", "-o", str(file), str(session.results)]).exit_code == 0
    assert "\x1b[2J\rgone \u202egnorw" in file.read_bytes().decode()


@pytest.mark.docker
@pytest.mark.nightly
def test_in_docker_nothing_of_it_is_obeyed_either(hostile: None, run_tasks: RunTasks, tmp_path: Path) -> None:
    test_a_terminal_a_report_and_commands_show_what_programs_wrote_and_obey_none_of_it(
        hostile, run_tasks, tmp_path, env="docker"
    )


def test_on_github_only_our_own_annotations_are_commands(
    hostile: None, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> None:
    summary = pytester.path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    session = run_tasks("tasks")
    require_shown(session)
    require_harmless(session.text, own=("::error file=tasks/a/",))
    require_harmless(summary.read_text(encoding="utf-8"))


def test_what_subtests_report_is_harmless(hostile: None, run_tasks: RunTasks) -> None:
    session = run_tasks("-v", "-o", "evocode_cases=subtests", "tasks")
    assert "pwned" in session.text
    require_harmless(session.text)


@pytest.mark.nightly
def test_what_workers_report_is_harmless(hostile: None, run_tasks: RunTasks) -> None:
    # What a worker prints by itself is seen from outside only.
    session = run_tasks("-v", "-n2", "tasks", subprocess=True)
    assert "pwned" in session.text
    require_harmless(session.text)


@pytest.mark.parametrize(
    "tests",
    [
        (
            "head -c 10M /dev/zero | tr '\\0' x",
            "head -c 10M /dev/zero > /logs/verifier/reward.txt",
            "seq -f '\\\"%g\\\": 1' -s, 100000 | sed 's/^/{/; s/$/}/' > /logs/verifier/reward.json",
        )
    ],
    ids=["output and rewards"],
)
def test_no_record_grows_with_what_programs_write(
    write_task: WriteTask, run_tasks: RunTasks, tests: tuple[str, ...]
) -> None:
    setup = "head -c 10M /dev/zero | tr '\\0' x; exit 1"
    rounds = len(tests) + 1
    write_task("a", rounds, test=dict(enumerate(tests, 1)), workdir={rounds: {"setup.sh": setup}})
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": rounds}
    # What a suite itself left is kept as it was.
    records = [path for path in session.results.rglob("*.json") if path.parent.name != "logs"]
    assert max(path.stat().st_size for path in records) < 2**17
    assert len(session.text) < 2**18


@pytest.mark.nightly
def test_no_record_grows_with_thousands_of_artifacts(write_task: WriteTask, run_tasks: RunTasks) -> None:
    links = "mkdir -p /logs/artifacts/x; cd /logs/artifacts; for i in $(seq 5000); do ln -s a $i; done"
    test_no_record_grows_with_what_programs_write(write_task, run_tasks, (links,))
