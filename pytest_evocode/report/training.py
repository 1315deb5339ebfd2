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

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.process.attempts import read_trajectory
from pytest_evocode.report.export import require_pyarrow
from pytest_evocode.report.tables import values_of
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.identity import conditions_hash
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.rewards import reward_of
from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.trajectories.atif import Step, StepMetrics, Trajectory, tools_together

Kind = Literal["sft", "rl"]
_CANARY = re.compile(r"canary(?:\s+string)?\s+guid:?\s+(\S+)", re.IGNORECASE)
_SEARCHED = ("task.toml", "instruction.md", "README.md")


def training_rows(
    rows: Iterable[ScoreRow],
    kind: Kind,
    *,
    tasks: Path | None = None,
    min_score: float = 0.0,
    split: bool = False,
    told: Callable[[str], object] = lambda _: None,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each attempt that counts and that has something to learn from.

    Args:
        rows: The rows of a score table.
        kind: ``sft`` adds ``messages`` and ``tools``, see :func:`conversation`; ``rl`` adds ``sequences``, see
            :func:`token_sequences`.
        tasks: A directory of tasks, for their canaries.
        min_score: The least ``score`` of attempts that are wanted.
        split: See :func:`token_sequences`.
        told: Told a line about what is left out.

    Raises:
        RecordFault: A trajectory cannot be read.
        UsageError: See :func:`token_sequences`; it names the attempt's directory.
    """
    canaries = _canaries(tasks) if tasks is not None else {}
    left_out = 0
    for row in rows:
        for attempt in row.attempts:
            about = _about(row, attempt, canaries)
            if about["score"] < min_score:
                continue
            turns = _turns(attempt.path, attempt.record.rounds)
            found = conversation(turns) if kind == "sft" else _sequences(attempt.path, turns, split=split)
            if found is None:
                left_out += 1
            else:
                yield {**about, **found}
    if left_out:
        lack = (
            "trajectories" if kind == "sft" else "token ids, which the agent's option token_ids has vLLM and SGLang say"
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


Turns = Sequence[tuple[RoundRecord, Trajectory]]
"""The rounds of an attempt whose turns have a trajectory, in order."""


def _turns(directory: Path, rounds: Iterable[RoundRecord]) -> Turns:
    paths = ((record, directory / "steps" / record.round / "agent" / "trajectory.json") for record in rounds)
    return [(record, read_trajectory(path)) for record, path in paths if path.exists()]


def read_sequences(directory: Path | str, *, split: bool = False) -> dict[str, Any] | None:
    """Return what :func:`token_sequences` makes of an attempt that a :class:`~pytest_evocode.trial.Trial` has written.

    Args:
        directory: The attempt's.
        split: See :func:`token_sequences`.

    Raises:
        RecordFault: The record or a trajectory cannot be read.
        UsageError: There is no attempt, or see :func:`token_sequences`.
    """
    record = AttemptDirectory(Path(directory)).read_attempt()
    if record is None:
        raise UsageError(f"{directory}: no attempt has come to its end there; name the directory of result.json")
    return _sequences(Path(directory), _turns(Path(directory), record.rounds), split=split)


def _sequences(directory: Path, turns: Turns, *, split: bool) -> dict[str, Any] | None:
    try:
        return token_sequences(turns, split=split)
    except UsageError as error:
        raise UsageError(f"{directory}: {error}") from None


def conversation(turns: Turns) -> dict[str, Any] | None:
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
    definitions = tools_together(*(each.agent.tool_definitions for _, each in turns))
    return {"messages": messages, "turns": begins, "tools": list(definitions) or None}


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


def token_sequences(turns: Turns, *, split: bool = False) -> dict[str, Any] | None:
    """Return the tokens that a model's server read and wrote in an attempt; None where it did not tell all of them.

    A reply whose prompt begins with all tokens of a sequence goes on with that, and any other begins a new one: at the
    beginning, of a helper, or after a conversation was begun anew or shortened. So each token is what the server itself
    had at its place.

    A prompt that goes on with a conversation and has other tokens for what was read or written there is refused: the
    server's template leaves out or re-tokenises what the model wrote, so that the model was not asked to go on from its
    own tokens. A trainer that wants one sequence to a conversation, with its reward, would get pieces of it, and should
    rather mend the template.

    Args:
        turns: The rounds with their trajectories.
        split: Whether such a prompt begins a new sequence, too, in place of being refused.

    Returns:
        ``sequences``, each with ``token_ids``; ``mask``, 1 where the model wrote the token and 0 for all else;
        ``logprobs``, null where the mask is 0 or the server gave none; and ``steps``, of each reply its round's
        ``index``, ``begin`` and ``end`` (the places of its first token and behind its last one) and ``reward``, which
        is that of the round for its last reply, and 0 for the others.

    Raises:
        UsageError: A prompt has other tokens, unless ``split``; it names the round, the step, the position in the
            prompt, from 0, and both tokens there.
    """
    sequences: list[dict[str, Any]] = []
    for record, trajectory in turns:
        replies = [step for step in trajectory.steps if step.source == "agent" and not step.is_copied_context]
        is_shorter = False
        for step in trajectory.steps:
            is_shorter = is_shorter or _shortens(step)
            if step.source != "agent" or step.is_copied_context:
                continue
            metrics = step.metrics
            if metrics is None or not metrics.prompt_token_ids or not metrics.completion_token_ids:
                return None
            prompt = list(metrics.prompt_token_ids)
            sequence = _continued(sequences, prompt)
            if sequence is None:
                if not (split or is_shorter) and (where := _contradiction(sequences, prompt)):
                    raise UsageError(f"{record.round}, step {step.step_id}: {where}")
                sequence = {"token_ids": [], "mask": [], "logprobs": [], "steps": []}
                sequences.append(sequence)
            reward = reward_of(record) if step is replies[-1] else 0.0
            _add_reply(sequence, prompt, metrics, {"index": record.index, "reward": reward})
            is_shorter = False
    return {"sequences": sequences} if sequences else None


def _shortens(step: Step) -> bool:
    """Whether a step tells that the conversation was shortened, so that the next prompt has other tokens."""
    noted = (step.extra or {}).get("evocode", {})
    return step.source == "system" and not noted.keys().isdisjoint(("compaction", "elided"))


def _continued(sequences: Iterable[dict[str, Any]], prompt: list[int]) -> dict[str, Any] | None:
    """Return the longest sequence that a prompt begins with; None where there is none."""
    found = None
    for sequence in sequences:
        ids = sequence["token_ids"]
        # Most differ at their ends, and comparing all of them takes long.
        fits = len(ids) <= len(prompt) and prompt[len(ids) - 1] == ids[-1] and prompt[: len(ids)] == ids
        if fits and (found is None or len(ids) > len(found["token_ids"])):
            found = sequence
    return found


def _contradiction(sequences: Iterable[dict[str, Any]], prompt: list[int]) -> str:
    """Return where a prompt has other tokens than the conversation that it goes on with, in words; else nothing.

    It goes on with one whose first prompt it begins with. One that ends there, or further on, asks for a reply anew.
    """
    found = ""
    longest = 0
    for sequence in sequences:
        ids = sequence["token_ids"]
        begun = sequence["steps"][0]["begin"]
        if prompt[:begun] != ids[:begun]:
            continue
        at = next((at for at, (one, other) in enumerate(zip(prompt, ids, strict=False)) if one != other), len(prompt))
        if longest < at < len(prompt):
            longest = at
            by = "the model wrote" if sequence["mask"][at] else "was read"
            found = (
                f"at position {at} the prompt has token {prompt[at]}, where before {by} {ids[at]}. The server makes "
                "other tokens of the same conversation, or the agent has changed what was said; use a chat template "
                "that keeps what the model wrote, or begin new sequences at such places: --split"
            )
    return found


def _add_reply(sequence: dict[str, Any], prompt: list[int], metrics: StepMetrics, step: dict[str, Any]) -> None:
    """Add what was read since the last reply of a sequence, and a reply."""
    completion = list(metrics.completion_token_ids or ())
    read = prompt[len(sequence["token_ids"]) :]
    given = list(metrics.logprobs or ())
    known = given if len(given) == len(completion) else [None] * len(completion)
    sequence["token_ids"] += read + completion
    sequence["mask"] += [0] * len(read) + [1] * len(completion)
    sequence["logprobs"] += [None] * len(read) + known
    end = len(sequence["token_ids"])
    sequence["steps"].append({"begin": end - len(completion), "end": end, **step})


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

    The file is there with all of them or not at all. Raises UsageError without pyarrow, OSError, and what ``rows`` do.
    """
    if path.suffix != ".parquet":
        is_special = path.exists() and not path.is_file()  # Such as /dev/stdout.
        with path.open("wb") if is_special else replacing(path) as file:
            return sum(bool(file.write(f"{json.dumps(row, ensure_ascii=False)}\n".encode())) for row in rows)
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
