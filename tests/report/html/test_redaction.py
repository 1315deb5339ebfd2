"""What a report must not tell: where the evaluator's files lie, and the secrets of the host."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html.contents import Redaction, ReportContents, found_tasks, short_title, with_foreign_cases
from pytest_evocode.report.html.writing import WrittenReport, write_report, write_single_file
from pytest_evocode.results.loading import load_results
from tests.report.html.reports import unpacked, value_in
from tests.result_trees import RUN, write_attempt, write_files, write_session
from tests.results.foreign.harbor_trials import result_of

KEY = "sk-evo-0123456789-abcdefghijklmnop"
NAME = "EVO_SERVICE_API_KEY"


def contents(*roots: Path) -> ReportContents:
    found = load_results(roots)
    return ReportContents(with_foreign_cases(found, roots), score_table(found), roots, tasks=found_tasks(found, None))


def bytes_of(report: Path) -> dict[str, bytes]:
    """All that a report's files say, decompressed, by their paths."""
    return {
        path.relative_to(report).as_posix(): json.dumps(unpacked(path.read_bytes()), ensure_ascii=False).encode()
        if path.parent.name in ("data", "tasks", "attempts", "trajectories")
        else path.read_bytes()
        for path in report.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The evaluator's home directory, with a project in it that is the working directory."""
    home = tmp_path / "home" / "alice"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "project")
    return home


def test_no_path_of_the_evaluators_machine_is_in_a_report(home: Path, tmp_path: Path) -> None:
    roots = home / "project" / "evocode-results", home / "other" / "results", tmp_path / "scratch" / "runs"
    for number, root in enumerate(roots):
        made_by = {"spec": f"replay:{home}/recorded", "options": {"rules": {"path": f"{home}/AGENTS.md"}}}
        path = write_attempt(root, "a", f"gpt-{number}", "pfe", cases=["p", "f"], made_by=made_by)
        record = json.loads((path / "result.json").read_text())
        record["rounds"][2]["cause"] = f"{home}/project/tasks/a/steps: cannot be copied to {home}"
        record["rounds"][0]["stopped"] = "see /home/somebody-else/log"
        record["rounds"][0]["verdict"]["flags"] = [f"{root}/a is full"]
        (path / "result.json").write_text(json.dumps(record))
        (path / "steps" / "round-1" / "verifier" / "cases.json").write_text("[")
        (path / "steps" / "round-1" / "agent").mkdir()
        (path / "steps" / "round-1" / "agent" / "trajectory.json").write_text("{")
        write_attempt(root, "b", "gpt", "p")
        next((root / "b").rglob("result.json")).write_text("{")
        arguments = ("--evocode-agent=gpt", f"{home}/project/tasks/a::gpt", f"--evocode-results={root}")
        named = {f"gpt-{number}": made_by}
        run_path = write_session(root, {"a": {f"gpt-{number}": [1]}, "c": {"gpt": [1]}}, agents=named)
        run = json.loads(run_path.read_text())
        run_path.write_text(json.dumps({**run, "arguments": arguments}))
    write_files(home / "project" / "tasks", {"a/task.toml": "nonsense = "})
    trial = home / "other" / "results" / "job" / "trial__x"
    write_files(trial, {"result.json": result_of("trial__x", exception_info={"exception_message": f"{home}: full"})})

    written = write_report(tmp_path / "report", contents(*roots))
    write_single_file(tmp_path / "single.html", contents(*roots), most=10_000_000)
    found = bytes_of(written.page.parent)
    single = (tmp_path / "single.html").read_bytes()
    for number, chunk in enumerate(re.findall(rb'evocode\.receive\("[^"]*","[^"]*"\);\n', single)):
        found[f"single {number}"] = json.dumps(unpacked(chunk)).encode()
    assert len(found) > 25
    for forbidden in (str(tmp_path), "alice", "somebody-else"):
        assert [name for name, content in found.items() if forbidden.encode() in content] == []
    index = value_in(written.page.parent, "index")
    assert index["title"] == "evocode-results, results, runs"
    assert index["directories"] == ["evocode-results", "~/other/results", "runs"]
    told = "\n".join(index["problems"])
    for shown in ("evocode-results/b/harbor_jobs", "~/other/results/b/harbor_jobs", "runs/b/harbor_jobs"):
        assert shown in told
    commands = {command for run in index["runs"] for _, command in run["commands"]}
    assert "pytest --evocode-agent=gpt tasks/a::gpt --evocode-results=evocode-results" in commands
    assert f"evocode results ~/other/results --run {RUN}" in commands
    # The terminal's reader has to find the files.
    assert all(line.startswith(tuple(f"{root}/" for root in roots)) for line in written.problems)


def test_a_report_is_called_by_the_last_names_of_its_directories(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "results", tmp_path / "two" / "results"
    assert short_title([one]) == short_title([one, one]) == "results"
    assert short_title([one, two]) == "one/results, two/results"
    assert short_title([tmp_path / name for name in "abcde"]) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{here}/tasks/a: gone", "tasks/a: gone"),
        ("in {here}", "in ."),
        ("'{here}'.", "'.'."),
        ("{here}s/a, {here}-2 and x{here}/a stay", "~/projects/a, ~/project-2 and x{here}/a stay"),
        ("{home}/b and /Users/me/c and /home/you", "~/b and ~/c and ~"),
        ("--evocode-results={here}/results/x", "--evocode-results=results/x"),
        ("https://host{home}/ and /homes/x and /root/y stay", "https://host{home}/ and /homes/x and /root/y stay"),
    ],
)
def test_paths_are_replaced_at_their_borders_only(home: Path, text: str, shown: str) -> None:
    places = {"here": f"{home}/project", "home": str(home)}
    redaction = Redaction([home / "project" / "results"])
    assert redaction.values({"a": [text.format(**places)]}) == {"a": [shown.format(**places)]}


def test_a_secret_in_what_another_harness_wrote_is_not_in_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (
        f"CASE_RESULT case_id=c1 origin_step={KEY} requirement_ref={KEY} case_type=core status=fail intent={KEY} "
        f"scenario={KEY} input={KEY} expected={KEY} actual={KEY} failure_reason={KEY}\n{KEY}\n"
    )
    call = {"tool_call_id": KEY, "function_name": KEY, "arguments": {"command": f"echo {KEY}", KEY: [KEY]}}
    step: dict[str, Any] = {"step_id": 1, "source": "agent", "message": KEY, "reasoning_content": KEY}
    step |= {"model_name": KEY, "tool_calls": [call], "extra": {KEY: KEY}}
    step |= {
        "observation": {"results": [{"source_call_id": KEY, "content": f"{KEY} {base64.b64encode(KEY.encode())!r}"}]}
    }
    trajectory = {"schema_version": "ATIF-v1.4", "session_id": KEY, "agent": {"name": KEY}, "steps": [step]}
    agent = {"name": "terminus-2", "version": KEY, "model_info": {"name": KEY, "provider": KEY}}
    config = {"task": {"path": "data/mesh"}, "agent": {"name": "terminus-2", "kwargs": {"header": KEY}}}
    steps = [
        {"step_name": "round-1"},
        {"step_name": "round-2", "exception_info": {"exception_type": KEY, "exception_message": KEY}},
    ]
    write_files(
        tmp_path / "results" / "job" / "trial__x",
        {
            "result.json": result_of("trial__x", agent_info=agent, config=config, step_results=steps),
            "steps/round-1/verifier/reward.txt": "0",
            "steps/round-1/verifier/test-stdout.txt": line,
            "steps/round-1/agent/trajectory.json": trajectory,
            f"steps/round-1/artifacts/{KEY}": "",
            "steps/round-2/agent/trajectory.json": {"steps": "none", KEY: KEY},
        },
    )
    before = contents(tmp_path / "results")
    seen = bytes_of(write_report(tmp_path / "open", before).page.parent)
    places = {name.split("/")[1] for name, content in seen.items() if KEY.encode() in content and "/" in name}
    assert {"attempts", "tasks", "trajectories", "index.js", "rounds.csv"} <= places  # There is something to take out.
    monkeypatch.setenv(NAME, KEY)
    written: WrittenReport = write_report(tmp_path / "report", contents(tmp_path / "results"))
    found = bytes_of(written.page.parent)
    encoded = base64.b64encode(KEY.encode())[4:-4]
    assert [name for name, content in found.items() if KEY.encode()[:20] in content or encoded in content] == []
    assert f"[{NAME}]".encode() in found["summary.json"]
