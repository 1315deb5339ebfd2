"""Attempts as data to train on: conversations with tools, or the tokens of a model's server with rewards.

Rows of both kinds have what tells them apart: ``task``, ``agent``, ``attempt``, ``run``, ``mode``, ``task_hash``
(SHA-256 of the task's files, in hex), ``conditions`` (a hash of the conditions that it was made under), ``canary`` (the
strings by which the task's files can be found again; null where the task is not at hand), ``score`` (the share of
declared rounds that passed, 0 to 100), ``rewards`` (those of the attempt by key, by the task's strategy) and
``rounds``: of each that was played its ``round`` (the name), ``index`` (from 1), ``passed`` and ``reward``, which is
the deciding one. A reward is null where it is lacking by the infrastructure's fault, and so are ``rewards`` then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.process.attempts import read_trajectory
from pytest_evocode.report.export import require_pyarrow
from pytest_evocode.report.tables import values_of
from pytest_evocode.results.identity import conditions_hash
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.rewards import reward_of
from pytest_evocode.trajectories.atif import Step, Trajectory

Kind = Literal["sft", "rl"]
_CANARY = re.compile(r"canary(?:\s+string)?\s+guid:?\s+(\S+)", re.IGNORECASE)
_SEARCHED = ("task.toml", "instruction.md", "README.md")


def training_rows(
    rows: Iterable[ScoreRow],
    kind: Kind,
    *,
    tasks: Path | None = None,
    min_score: float = 0.0,
    told: Callable[[str], object] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each attempt that counts and that has something to learn from.

    Args:
        rows: The rows of a score table.
        kind: ``sft`` adds ``messages`` and ``tools``, see :func:`conversation`; ``rl`` adds ``sequences``, see
            :func:`token_sequences`.
        tasks: A directory of tasks, for their canaries.
        min_score: The least ``score`` of attempts that are wanted.
        told: Told a line about what is left out.

    Raises:
        RecordFault: A trajectory cannot be read.
    """
    canaries = _canaries(tasks) if tasks is not None else {}
    left_out = 0
    for row in rows:
        for attempt in row.attempts:
            about = _about(row, attempt, canaries)
            if about["score"] < min_score:
                continue
            turns = [(record, trajectory) for record in attempt.record.rounds if (trajectory := _read(attempt, record))]
            found = conversation(turns) if kind == "sft" else token_sequences(turns)
            if found is None:
                left_out += 1
            else:
                yield {**about, **found}
    if left_out:
        lack = (
            "trajectories" if kind == "sft" else "token ids, which vLLM and SGLang give where a model is asked for them"
        )
        told(f"{left_out} of the attempts left out: without {lack}")


def _about(row: ScoreRow, attempt: StoredAttempt, canaries: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    record = attempt.record
    rounds = [
        {**values_of(each, "round", "index", "passed"), "reward": reward_of(each)}
        for each in record.rounds
        if not each.brought_along
    ]
    passed = sum(each["passed"] for each in rounds)
    is_faulty = any(each["reward"] is None for each in rounds)
    return {
        **values_of(record, "task", "agent", "attempt"),
        "run": attempt.run,
        "mode": row.mode,
        "task_hash": record.task_hash or None,
        "conditions": conditions_hash(row.subject.conditions),
        "canary": list(canaries[record.task]) if record.task in canaries else None,
        "score": 100 * passed / len(record.declared_rounds),
        "rewards": None if is_faulty else dict(record.rewards),
        "rounds": rounds,
    }


def _read(attempt: StoredAttempt, record: RoundRecord) -> Trajectory | None:
    path = attempt.path / "steps" / record.round / "agent" / "trajectory.json"
    return read_trajectory(path) if path.exists() else None


def conversation(turns: Sequence[tuple[RoundRecord, Trajectory]]) -> dict[str, Any] | None:
    """Return the conversation of an attempt over all of its rounds; None where nobody answered.

    Returns:
        ``messages`` in the format of OpenAI's chat, with ``tool_calls`` and messages of the role ``tool``, and the
        model's reasoning, as far as it was shown, as ``reasoning_content``; ``turns``, of each round its ``index`` and
        the place of its first message, from 0; and ``tools``, the definitions of those that the agent had, null where
        they are not known.
    """
    messages: list[dict[str, Any]] = []
    begins = []
    for record, trajectory in turns:
        begins.append({"index": record.index, "first_message": len(messages)})
        for step in trajectory.steps:
            if not step.is_copied_context:
                messages += (each for each in _messages(step) if each["role"] != "system" or each not in messages)
    if not any(each["role"] == "assistant" for each in messages):
        return None
    definitions = next((each.agent.tool_definitions for _, each in turns if each.agent.tool_definitions), None)
    return {"messages": messages, "turns": begins, "tools": list(definitions) if definitions else None}


def _messages(step: Step) -> Iterator[dict[str, Any]]:
    if step.source != "agent":
        yield {"role": step.source, "content": step.message}
        return
    message: dict[str, Any] = {"role": "assistant", "content": step.message}
    if step.reasoning_content:
        message["reasoning_content"] = step.reasoning_content
    if step.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.function_name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in step.tool_calls
        ]
    yield message
    for result in step.observation.results if step.observation else ():
        if result.source_call_id is None:
            yield {"role": "user", "content": result.content}
        else:
            yield {"role": "tool", "tool_call_id": result.source_call_id, "content": result.content}


def token_sequences(turns: Sequence[tuple[RoundRecord, Trajectory]]) -> dict[str, Any] | None:
    """Return the tokens that a model's server read and wrote in an attempt; None where it did not tell all of them.

    A reply whose prompt begins with all tokens before goes on with the sequence of these, and any other begins a new
    one, as after a conversation was shortened, or where the server makes other tokens of what it wrote. So each token
    is what the server itself had at its place.

    Returns:
        ``sequences``, each with ``token_ids``; ``mask``, 1 where the model wrote the token and 0 for all else;
        ``logprobs``, null where the mask is 0 or the server gave none; and ``steps``, of each reply its round's
        ``index``, ``begin`` and ``end`` (the places of its first token and behind its last one) and ``reward``, which
        is that of the round for its last reply, and 0 for the others.
    """
    sequences: list[dict[str, Any]] = []
    for record, trajectory in turns:
        replies = [step.metrics for step in trajectory.steps if step.source == "agent" and not step.is_copied_context]
        for number, metrics in enumerate(replies, 1):
            if metrics is None or not metrics.prompt_token_ids or not metrics.completion_token_ids:
                return None
            prompt, completion = list(metrics.prompt_token_ids), list(metrics.completion_token_ids)
            ids = sequences[-1]["token_ids"] if sequences else []
            if not sequences or prompt[: len(ids)] != ids:
                sequences.append({"token_ids": [], "mask": [], "logprobs": [], "steps": []})
            sequence = sequences[-1]
            read = prompt[len(sequence["token_ids"]) :]
            given = list(metrics.logprobs or ())
            sequence["token_ids"] += read + completion
            sequence["mask"] += [0] * len(read) + [1] * len(completion)
            known = given if len(given) == len(completion) else [None] * len(completion)
            sequence["logprobs"] += [None] * len(read) + known
            end = len(sequence["token_ids"])
            reward = reward_of(record) if number == len(replies) else 0.0
            step = {"index": record.index, "begin": end - len(completion), "end": end, "reward": reward}
            sequence["steps"].append(step)
    return {"sequences": sequences} if sequences else None


def _canaries(tasks: Path) -> dict[str, list[str]]:
    """Return the canaries in the files of tasks that say what they are, by the tasks' names."""
    found = {}
    for file in sorted(tasks.rglob("task.toml")):
        texts = [file.parent / name for name in _SEARCHED]
        texts += sorted(file.parent.glob("steps/*/instruction.md"))
        seen = (_CANARY.findall(each.read_text("utf-8", "replace")) for each in texts if each.is_file())
        found[file.parent.name] = list(dict.fromkeys(each for some in seen for each in some))
    return found


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write rows as lines of JSON, or as Parquet where the name ends so, and return how many there are.

    Raises UsageError without pyarrow, and OSError.
    """
    if path.suffix != ".parquet":
        with path.open("w", encoding="utf-8") as file:
            return sum(bool(file.write(json.dumps(row, ensure_ascii=False) + "\n")) for row in rows)
    pyarrow = require_pyarrow()
    table = [{**row, **{name: _as_json(row[name]) for name in _LOOSE if name in row}} for row in rows]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), path)
    return len(table)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that :func:`write_rows` wrote, as they were; raises UsageError without pyarrow."""
    if path.suffix == ".parquet":
        for row in require_pyarrow().parquet.read_table(path).to_pylist():
            yield {**row, **{name: json.loads(row[name]) for name in _LOOSE if row.get(name) is not None}}
    else:
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


#: Columns whose values have no one form, which are JSON in Parquet.
_LOOSE = ("messages", "tools", "rewards")


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)
