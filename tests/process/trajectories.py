"""Hand-made trajectories, call by call, with the changes of files recorded as our own agents record them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_evocode.process.attempts import RoundDeclaration, score_round
from pytest_evocode.process.protocols import ExecutedMeasures
from pytest_evocode.process.scores.rigor_score import RoundProcess
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.trajectories.atif import (
    AgentInfo,
    Observation,
    ObservationResult,
    Step,
    StepMetrics,
    ToolCall,
    Trajectory,
)
from pytest_evocode.trajectories.diffs import unified_diff

INSTRUCTION = (
    "Give the ledger a budget: `parse_budget()` in ledger.py reads monthly limits, and overdrafts are reported."
)
LEDGER = "def total(entries):\n    return sum(entries)\n"
BUDGET = f"{LEDGER}\n\ndef parse_budget(text):\n    return dict(line.split() for line in text.splitlines())\n"
REPORT = f"{BUDGET}\n\ndef overdrafts(budget):\n    return [name for name in budget if budget[name] < 0]\n"
PLAN = """# Budget of the ledger

1. Read the monthly limits with `parse_budget()` in ledger.py
2. Report overdrafts with `overdrafts()` in ledger.py
3. Run `pytest`
"""
FAILED = "FAILED tests/test_budget.py::test_limits - assert 1 == 2\n1 failed in 0.10s"
TESTS = """from ledger import parse_budget


def test_limits_are_read():
    assert parse_budget("food 100") == {"food": "100"}
"""
#: Nothing was run, and tests are taken as they read.
AS_READ = ExecutedMeasures(unverified="")


class Recording:
    """A round as an agent plays it; methods such as :meth:`say` add a step and return the recording."""

    def __init__(
        self, instruction: str = INSTRUCTION, files: Mapping[str, str] | None = None, *, name: str = "round-1"
    ) -> None:
        self.name = name
        self.instruction = instruction
        self.files = dict({"ledger.py": LEDGER} if files is None else files)
        """The current files of the workspace."""
        self.originals = dict(self.files)
        self._steps = [Step(step_id=1, source="user", message=instruction)]

    @property
    def step(self) -> int:
        """The id of the last step."""
        return self._steps[-1].step_id

    def say(self, text: str, *, tokens: int | None = None) -> Recording:
        """Add a message without a call."""
        self._steps.append(Step(step_id=self.step + 1, source="agent", message=text, metrics=_metrics(tokens)))
        return self

    def answered(self, question: str, answer: str) -> Recording:
        """Add a question, and the answer of a simulated user."""
        self.say(question)
        extra = {"evocode": {"simulated_user": {"question": question, "answer": answer}}}
        self._steps.append(Step(step_id=self.step + 1, source="system", message="answers", extra=extra))
        self._steps.append(Step(step_id=self.step + 1, source="user", message=answer))
        return self

    def bash(
        self,
        command: str,
        output: str = "",
        exit_code: int | None = 0,
        *,
        changes: Mapping[str, str | None] | None = None,
        tokens: int | None = None,
        say: str = "",
        timed_out: bool = False,
    ) -> Recording:
        """Add a shell line of our own agent; ``changes`` has the new texts, None for a deleted file."""
        action: dict[str, Any] = {"exit_code": exit_code, "seconds": 0.1, "timed_out": timed_out}
        action["changes"] = [self._change(path, text) for path, text in (changes or {}).items()]
        given = {"command": command, "input": "\n".join(text or "" for text in (changes or {}).values())}
        return self.call("bash", given, output, action=action, tokens=tokens, say=say)

    def write(self, path: str, text: str, *, tokens: int | None = None) -> Recording:
        """Add a here-document that writes a file."""
        end = "" if text.endswith("\n") else "\n"
        return self.bash(f"cat > {path} <<'EOF'\n{text}{end}EOF", changes={path: text}, tokens=tokens)

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        output: Any = "",
        *,
        action: Mapping[str, Any] | None = None,
        tokens: int | None = None,
        say: str = "",
    ) -> Recording:
        """Add a call of any tool."""
        number = self.step + 1
        call = ToolCall(tool_call_id=f"c{number}", function_name=tool, arguments=dict(arguments))
        result = ObservationResult(source_call_id=f"c{number}", content=output)
        extra = {"evocode": {"actions": [{"tool_call_id": f"c{number}", **action}]}} if action is not None else None
        self._steps.append(
            Step(
                step_id=number,
                source="agent",
                message=say,
                tool_calls=(call,),
                observation=Observation(results=(result,)),
                metrics=_metrics(tokens),
                extra=extra,
            )
        )
        return self

    def _change(self, path: str, text: str | None) -> dict[str, Any]:
        before = self.files.pop(path, None)
        if text is not None:
            self.files[path] = text
        kind = "deleted" if text is None else "added" if before is None else "modified"
        digest = hashlib.sha256(text.encode()).hexdigest() if text is not None else None
        return {"path": path, "kind": kind, "mode": "0644", "diff": unified_diff(path, before, text), "sha256": digest}

    def trajectory(self) -> Trajectory:
        """Return the recording in ATIF."""
        return Trajectory(session_id="s", agent=AgentInfo(name="hand", version="1"), steps=tuple(self._steps))

    def input(self, index: int = 1) -> RecordedRound:
        """Return the recording as the reader takes it."""
        return RecordedRound(self.name, index, self.trajectory(), self.instruction)


def _metrics(tokens: int | None) -> StepMetrics | None:
    return None if tokens is None else StepMetrics(prompt_tokens=tokens - tokens // 4, completion_tokens=tokens // 4)


def read(*recordings: Recording, context: TaskContext | None = None) -> list[RoundActivity]:
    """Return the activity of rounds, one for each recording; the files of the first one are the task's."""
    originals = recordings[0].originals

    def find(path: str) -> Iterable[str]:
        return [originals[path]] if path in originals else []

    context = context or TaskContext(workdir="/app", originals=find)
    return list(read_rounds([each.input(index) for index, each in enumerate(recordings, 1)], context))


def activity_of(recording: Recording) -> RoundActivity:
    """Return the activity of one round."""
    return read(recording)[0]


def score(
    recording: Recording, declared: RoundDeclaration | None = None, executed: ExecutedMeasures = AS_READ
) -> RoundProcess:
    """Score one round."""
    return score_round(activity_of(recording), FileRoles(), declared, executed)


def part(process: RoundProcess, pillar: str, name: str) -> float | None:
    """Return the value of a sub-metric."""
    return process.pillars[pillar].parts[name].value
