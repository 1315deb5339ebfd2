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

pytestmark = pytest.mark.slow

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
ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]


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


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_terminal_shows_what_programs_wrote_and_obeys_none_of_it(
    hostile: None, run_tasks: RunTasks, env: str
) -> None:
    session = run_tasks("-rA", "--junitxml=junit.xml", "tasks", env=env)
    require_shown(session)
    require_harmless(session.text)
    require_harmless("".join(ElementTree.parse(session.directory / "junit.xml").getroot().itertext()))
    values = [each.get("value", "") for each in ElementTree.parse(session.directory / "junit.xml").iter("property")]
    require_harmless("\n".join(values))


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


@pytest.mark.parametrize("arguments", [("-n2",), ("-o", "evocode_cases=subtests")], ids=["workers", "subtests"])
@pytest.mark.matrix
def test_what_workers_and_subtests_report_is_harmless(
    hostile: None, run_tasks: RunTasks, arguments: tuple[str, ...]
) -> None:
    # What a worker prints by itself is seen from outside only.
    session = run_tasks("-v", *arguments, "tasks", subprocess="-n2" in arguments)
    assert "pwned" in session.text
    require_harmless(session.text)


@pytest.mark.parametrize(
    "command",
    [("failures",), ("failures", "--json"), ("export", "--cases"), ("export", "--json"), ("export",), ("results",)],
    ids=" ".join,
)
@pytest.mark.matrix
def test_commands_print_what_programs_wrote_and_obey_none_of_it(
    hostile: None, run_tasks: RunTasks, command: tuple[str, ...]
) -> None:
    session = run_tasks("tasks")
    printed = CliRunner().invoke(main, [*command, str(session.results)])
    assert printed.exit_code == 0, printed.output
    require_harmless(printed.output + ("pwned" if command == ("results",) else ""))


def test_a_file_of_exported_cases_has_them_as_they_were(hostile: None, run_tasks: RunTasks, tmp_path: Path) -> None:
    session = run_tasks("tasks")
    file = tmp_path / "cases.csv"
    assert CliRunner().invoke(main, ["export", "--cases", "-o", str(file), str(session.results)]).exit_code == 0
    assert "\x1b[2J\rgone \u202egnorw" in file.read_bytes().decode()


@pytest.mark.parametrize(
    ("test", "setup"),
    [
        ("echo 0 > /logs/verifier/reward.txt", "head -c 10M /dev/zero | tr '\\0' x; exit 1"),
        ("head -c 10M /dev/zero | tr '\\0' x", "true"),
        pytest.param(
            "mkdir -p /logs/artifacts/x; cd /logs/artifacts; for i in $(seq 5000); do ln -s a $i; done",
            "true",
            marks=pytest.mark.nightly,
        ),
        ("head -c 10M /dev/zero > /logs/verifier/reward.txt", "true"),
        ("seq -f '\\\"%g\\\": 1' -s, 100000 | sed 's/^/{/; s/$/}/' > /logs/verifier/reward.json", "true"),
    ],
    ids=["set-up", "output", "artifacts", "reward", "rewards"],
)
def test_no_record_grows_with_what_programs_write(
    write_task: WriteTask, run_tasks: RunTasks, test: str, setup: str
) -> None:
    write_task("a", 1, test={1: test}, workdir={1: {"setup.sh": setup}})
    session = run_tasks("tasks")
    # What a suite itself left is kept as it was.
    records = [path for path in session.results.rglob("*.json") if path.parent.name != "logs"]
    assert max(path.stat().st_size for path in records) < 2**17
    assert len(session.text) < 2**18
