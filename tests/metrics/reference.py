"""The numbers of ``evocode results`` and ``leaderboard`` once more, by plain loops over JSON files.

Nothing here comes from the package: neither how records are read, nor which attempts count, nor the formulas. It is
written from docs/read-results.md and docs/metrics.md, for sessions of one agent per name at unchanged tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.metrics.reference_formulas import (
    loud_in,
    mt_at_k,
    narrowed,
    of_chains,
    of_single_rounds,
    rewards,
    scores,
    without_faults,
)

VERSION = 4
"""The last version of records that can be read."""

Values = dict[str, Any]
"""JSON, and attempts: a record, where it was found, and the rounds that were selected for it."""
Row = tuple[str, str, str | None]
"""Agent, mode and the first round."""


# Reading.


def read_json(path: Path) -> Values | None:
    """A JSON object of a version that can be read, else None."""
    try:
        values = json.loads(path.read_text())
    except ValueError:
        return None
    return values if values["version"] <= VERSION else None


def chain_of(record: Values) -> list[int]:
    """The rounds that an attempt goes through if nothing is left out."""
    names = record["declared_rounds"]
    begin = 1
    if record["from_round"] is not None and record["mode"] != "single-round":
        begin = names.index(record["from_round"]) + 1
    return list(range(begin, len(names) + 1))


def read_runs(directories: list[Path]) -> list[tuple[Path, Values]]:
    found = []
    for directory in directories:
        for path in sorted(directory.glob("runs/*.json")):
            run = read_json(path)
            if run is not None:
                found.append((directory, run))
    return found


def read_attempts(directories: list[Path], runs: list[tuple[Path, Values]]) -> list[Values]:
    found = []
    for directory in directories:
        for place in sorted(directory.glob("*/harbor_jobs/*/*/*")):
            of_name = [run for root, run in runs if root == directory and run["run"] == place.parent.name]
            attempt = read_attempt(place, of_name[0] if of_name else None)
            if attempt is not None:
                found.append(attempt)
    return without_copies(found)


def read_attempt(place: Path, run: Values | None) -> Values | None:
    if (place / "result.json").exists():
        record = read_json(place / "result.json")
        if record is None or len({each["index"] for each in record["rounds"]}) < len(record["rounds"]):
            return None
        rounds = {each["index"]: each for each in record["rounds"]}
        finished = record["mode"] != "single-round" or len(rounds) == len(record["declared_rounds"])
        interrupted = False
    else:
        rounds = {}
        for path in place.glob("steps/*/round.json"):
            each = read_json(path)
            if each is not None:
                rounds[each["index"]] = each
        if not rounds:
            return None
        any_round = next(iter(rounds.values()))
        record = {key: any_round[key] for key in ("task", "agent", "attempt")}
        names = [f"round-{index}" for index in range(1, any_round["declared_rounds"] + 1)]
        assert run is not None
        record |= {"declared_rounds": names, "mode": run["mode"], "from_round": run["from_round"], "started": ""}
        known = run["tasks"].get(record["task"])
        record |= {"facts": known["facts"] if known else None, "regraded": None}
        finished, interrupted = False, True
    chain = chain_of(record)
    selected = chain
    if finished and rounds:
        selected = sorted(rounds)
    elif not finished and run is not None:
        part = run["partial"].get(record["task"], {}).get(record["agent"], {}).get(str(record["attempt"]))
        if part is not None:
            first = 1 if record["mode"] == "single-round" else min(rounds, default=1)
            selected = sorted({*rounds, *(index for index in part if index in chain and index >= first)})
        finished = bool(record["started"]) and set(selected) <= set(rounds)
        interrupted = broke_off(run)
    return {
        "record": record,
        "place": place,
        "run": place.parent.name,
        "finished": finished,
        "apart": not finished and interrupted,
        "rounds": rounds,
        "selected": selected,
        "partial": len(selected) < len(chain),
    }


def broke_off(run: Values) -> bool:
    """Whether a session was interrupted or killed; no score counts what it has left unfinished or not begun."""
    return run["interrupted"] or run["finished"] is None


def without_copies(attempts: list[Values]) -> list[Values]:
    """The attempts, each once: that which has ended, is whole, was regraded last, and comes first."""

    def rank(each: Values) -> tuple[bool, bool, bool, int, Path]:
        regraded = bool(each["record"].get("regraded"))
        return not each["finished"], each["partial"], not regraded, -len(each["rounds"]), each["place"]

    kept: dict[tuple[object, ...], Values] = {}
    for each in sorted(attempts, key=rank):
        record = each["record"]
        key = each["run"], record["task"], record["agent"], record["attempt"], record["mode"], record["from_round"]
        kept.setdefault(key, each)
    return list(kept.values())


# Which attempts count.


def row_of(record: Values, agent: str) -> Row:
    return agent, record["mode"], None if record["mode"] == "single-round" else record["from_round"]


def count_attempts(directories: list[Path], all_runs: bool) -> tuple[dict[Row, Values], dict[str, Values]]:
    """For each row the attempts that count by task and number, and those that left nothing; and facts by task."""
    runs = read_runs(directories)
    attempts = sorted(read_attempts(directories, runs), key=lambda each: (each["run"], str(each["place"])))
    rows: dict[Row, Values] = {}
    scored = [each for each in attempts if not each["apart"]]
    for each in scored:
        row = rows.setdefault(row_of(each["record"], each["record"]["agent"]), {"found": [], "missing": {}})
        row["found"].append(each)
    facts: dict[str, Values] = {}
    lengths: dict[str, int] = {}
    for _, run in runs:
        for task, known in run["tasks"].items():
            facts[task] = known["facts"]
    for each in attempts:
        record = each["record"]
        lengths[record["task"]] = len(record["declared_rounds"])
        if record["facts"]:
            facts[record["task"]] = record["facts"]
    lengths |= {task: len(known["rounds"]) for task, known in facts.items()}

    wanted = []
    for _, run in runs:
        for task, agents in run["selected"].items():
            for agent, numbers in agents.items():
                for number in numbers:
                    of_number = [
                        each
                        for each in attempts
                        if each["run"] == run["run"] and each["record"]["agent"] == agent and is_at(each, task, number)
                    ]
                    if all(each["apart"] for each in of_number) and (of_number or broke_off(run)):
                        continue
                    part = run["partial"].get(task, {}).get(agent, {}).get(str(number))
                    wanted.append((row_of(run, agent), run["run"], task, number, part))
    if not all_runs:
        count_what_was_selected(rows, wanted)
    for key, run_name, task, number, part in wanted:
        row = rows.setdefault(key, {"found": [], "missing": {}})
        same = [each for each in row["found"] if is_at(each, task, number)]
        is_made = any(each["run"] == run_name for each in same) if all_runs else bool(same)
        if is_made or (part is not None and any(not each["partial"] for each in same)):
            continue
        missing_key = (run_name if all_runs else "", task, number)
        before = row["missing"].get(missing_key, part)
        row["missing"][missing_key] = None if part is None or before is None else sorted({*part, *before})
    loud: dict[str, set[int]] = {}
    for each in attempts:
        loud.setdefault(each["record"]["task"], set()).update(loud_in(each["rounds"]))
    for row in rows.values():
        choose(row, all_runs)
        row["lengths"] = lengths
        row["loud"] = loud
    return {key: row for key, row in rows.items() if row["found"] or row["missing"]}, facts


def is_at(each: Values, task: str, number: int) -> bool:
    return bool(each["record"]["task"] == task and each["record"]["attempt"] == number)


def count_what_was_selected(rows: dict[Row, Values], wanted: list[Any]) -> None:
    """A partial attempt counts over all rounds where another run was to make the whole one and left nothing."""
    for key, run_name, task, number, part in wanted:
        same = [each for each in rows.get(key, {"found": []})["found"] if is_at(each, task, number)]
        left_nothing = all(each["run"] != run_name for each in same)
        if part is None and left_nothing and all(each["partial"] for each in same):
            for each in same:
                each["made whole"] = True
    for row in rows.values():
        for each in row["found"]:
            if each.get("made whole"):
                each["selected"], each["partial"], each["finished"] = chain_of(each["record"]), False, False


def choose(row: Values, all_runs: bool) -> None:
    """Choose of the attempts with one number the newest whole one, else the newest; or give all new numbers."""
    counting, row["beside"] = [], []
    for each in row["found"]:
        record = each["record"]
        same = [
            other
            for other in row["found"]
            if is_at(other, record["task"], record["attempt"]) and other["record"]["from_round"] == record["from_round"]
        ]
        whole = [other for other in same if not other["partial"]]
        last = (whole or same)[-1]
        if each in (whole or same) if all_runs else each is last:
            counting.append(each)
        elif whole and each["partial"] and (all_runs or same.index(each) > same.index(last)):
            row["beside"].append(each)
    row["attempts"] = {}
    for each in counting:
        task, number = each["record"]["task"], each["record"]["attempt"]
        if all_runs:
            number = 1 + sum(key[0] == task for key in row["attempts"])
        row["attempts"][task, number] = each
    row["parts"] = {}
    for (_, task, number), part in sorted(row["missing"].items(), key=lambda item: item[0]):
        while (task, number) in row["attempts"] or (task, number) in row["parts"]:
            number += 1
        row["parts"][task, number] = part


# The rounds that count.


def tasks_of(row: Values, from_round: str | None) -> list[Values]:
    """For each task its rounds: ``own`` are those selected, by attempt, and ``made`` the records, by attempt."""
    tasks = []
    for task in sorted({task for task, _ in (*row["attempts"], *row["parts"])}):
        known = row["lengths"].get(task)
        mine = [number for name, number in row["parts"] if name == task]
        length = known or max([1, *(index for number in mine for index in row["parts"][task, number] or ())])
        chain = list(range(2 if from_round is not None and length > 1 else 1, length + 1))
        own, made = {}, {}
        for (name, number), each in row["attempts"].items():
            if name == task:
                own[number], made[number] = [index for index in chain if index in each["selected"]], each["rounds"]
        for number in mine:
            part = row["parts"][task, number]
            own[number], made[number] = chain if part is None else [i for i in chain if i in part], {}
        indices = [index for index in chain if any(index in each for each in own.values())]
        # What any attempt's suites reported, whoever made it; the trees have one version of each task.
        loud = row["loud"].get(task, set()) if any(name == task for name, _ in row["attempts"]) else set()
        found = {"task": task, "length": length, "chain": chain, "indices": indices, "own": own, "made": made}
        found["selected"] = indices
        tasks.append({**found, "loud": loud})
    return [each for each in tasks if each["indices"]]


# The tables.


def spending(row: Values) -> Values:
    records = [record for each in row["attempts"].values() for record in each["rounds"].values()]
    begun = [each for each in records if each["outcome"] != "not reached" or each["agent_seconds"] is not None]
    found: Values = {"rounds": len(begun)}
    for name in ("tool_calls", "agent_seconds", "verifier_seconds"):
        found[name] = amount([each[name] for each in begun])
    for name in ("prompt_tokens", "completion_tokens", "requests"):
        found[name] = amount([each["usage"][name] if each["usage"] else None for each in begun])
    return found | {"cached_tokens": None, "cost_usd": None}


def amount(values: list[float | None]) -> Values | None:
    known = [value for value in values if value is not None]
    return {"value": sum(known), "known": len(known), "of": len(values)} if known else None


def groups_of(tasks: list[Values], by: str, facts: dict[str, Values], mode: str) -> Values:
    def names(task: str, index: int) -> list[str]:
        known = facts.get(task, {})
        if by in ("task", "round"):
            return [task if by == "task" else str(index)]
        if by == "change":
            return known["change_types"][index - 1] if known and known["change_types"][index - 1] else ["not given"]
        return [known.get(by) or "not given"]

    every = {name for each in tasks for index in each["indices"] for name in names(each["task"], index)}
    found = {}
    for name in every:

        def counts(task: str, index: int, name: str = name) -> bool:
            return name in names(task, index)

        of_group = of_single_rounds if mode == "single-round" else of_chains
        found[name] = of_group(narrowed(tasks, counts))
        if by in ("round", "change"):
            found[name]["mt_at_k"] = None  # It is of whole chains.
    return found


def results(directories: list[Path], by: str, all_runs: bool = False) -> list[Values]:
    """What ``evocode results --json --by`` has of each row; ``all_runs`` as the option."""
    rows, facts = count_attempts(directories, all_runs)
    tasks = {key: tasks_of(row, key[2]) for key, row in rows.items()}

    def is_final(task: str) -> bool:
        return bool(facts.get(task, {}).get("reward_strategy") == "final")

    found = []
    for key in rows:
        agent, mode, from_round = key
        single = tasks.get((agent, "single-round", None), []) if from_round is None else []
        chain, single = ([], tasks[key]) if mode == "single-round" else (tasks[key], single)
        found.append(
            {
                "name": name_of(key),
                "agent": agent,
                "mode": mode,
                "from_round": from_round,
                "scores": scores(chain, single, is_final),
                "without_faults": without_faults(chain, single),
                "best_of_attempts": mt_at_k(tasks[key], fail_stop=False),
                "rewards": rewards(tasks[key], is_final),
                "spending": spending(rows[key]),
                "missing": [
                    {"task": task, "attempt": number, "rounds": rows[key]["lengths"].get(task)}
                    for task, number in sorted(rows[key]["parts"])
                ],
                "groups": groups_of(tasks[key], by, facts, mode),
                "partial": sum(each["partial"] for each in rows[key]["attempts"].values()),
            }
        )
    return sorted(found, key=lambda row: (row["agent"], row["mode"], row["from_round"] or ""))


def name_of(key: Row) -> str:
    agent, mode, from_round = key
    parts = [mode] * (mode != "chain") + ([f"from {from_round}"] if from_round is not None else [])
    return f"{agent} ({', '.join(parts)})" if parts else agent


def leaderboard(directories: list[Path]) -> list[Values]:
    """What ``evocode leaderboard --json`` has in each row, the best first."""
    rows = results(directories, "task")
    chains = {row["agent"] for row in rows if row["mode"] != "single-round" and row["from_round"] is None}
    rows = [row for row in rows if row["mode"] != "single-round" or row["agent"] not in chains]

    def order(row: Values) -> tuple[float, float, str]:
        first, second = (row["scores"][name] for name in ("dataset_score", "sr"))
        return 1.0 if first is None else -first, 1.0 if second is None else -second, row["name"]

    return sorted(rows, key=order)
