"""The formulas of docs/metrics.md by plain loops, for :mod:`tests.metrics.reference`.

A task is a table: ``own`` has the rounds that were selected, by attempt, ``made`` the records by attempt and round,
``indices`` the rounds that count, ``chain`` those that an attempt goes through, ``selected`` those of them that any was
to make, where that may be a part, and ``length`` is N_t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Values = dict[str, Any]


def narrowed(tasks: list[Values], counts: Callable[[str, int], bool]) -> list[Values]:
    parts = [each | {"indices": [index for index in each["indices"] if counts(each["task"], index)]} for each in tasks]
    return [each for each in parts if each["indices"]]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def mean_or_none(values: list[float]) -> float | None:
    return mean(values) if values else None


def passed(task: Values, number: int, index: int) -> bool:
    record = task["made"][number].get(index)
    return record is not None and record["outcome"] == "passed"


def cells(task: Values) -> list[tuple[int, int]]:
    """Attempt and index of each round that counts."""
    return [(number, index) for number in task["own"] for index in task["indices"] if index in task["own"][number]]


def records_of(tasks: list[Values]) -> list[Values]:
    return [
        task["made"][number][index] for task in tasks for number, index in cells(task) if index in task["made"][number]
    ]


def over_cells(task: Values, value: Callable[[Values], float]) -> float:
    """The mean of a value over all rounds that count; one without a record is worth 0."""
    found = [task["made"][number].get(index) for number, index in cells(task)]
    return mean([0.0 if record is None else value(record) for record in found])


def case_ratio(record: Values, pins: bool = False) -> float | None:
    """None is a round that passed without cases."""
    verdict = record["verdict"]
    if verdict is None or record["outcome"] not in ("passed", "failed"):
        return 0.0
    pinned = verdict["pinned"] if (verdict["pinned"] or (0, 0))[1] else None
    good, of = (pinned if pins else None) or verdict["counts"] or (0, 0)
    if not of and is_passed(record) and not pinned:
        return None
    return float(good / of) if of else 0.0


def reports_cases(task: Values) -> bool:
    """Whether no verdict tells that the task's suites report no cases."""
    if {*task["loud"]} & {*task["indices"]}:
        return True
    records = [each for each in records_of([task]) if each["verdict"]]
    verdicts = [each["verdict"] for each in records if each["outcome"] in ("passed", "failed")]
    numbers = [each["verdict"][name] or (0, 0) for each in records for name in ("counts", "pinned")]
    return any(of for _, of in numbers) or not any(
        not each.get("timed_out") and not each.get("void") for each in verdicts
    )


def loud_in(made: dict[int, Values]) -> set[int]:
    """The rounds of an attempt whose suites report cases, or have pinned ones."""
    verdicts = {index: record["verdict"] for index, record in made.items() if record["verdict"]}
    return {
        index for index, each in verdicts.items() if any((each[name] or (0, 0))[1] for name in ("counts", "pinned"))
    }


def case_score(tasks: list[Values], pins: bool = False) -> float | None:
    found = []
    for each in filter(reports_cases, tasks):
        records = [(index, each["made"][number].get(index)) for number, index in cells(each)]
        ratios = [0.0 if record is None else case_ratio(record, pins) for _, record in records]
        # Where another attempt's suite of the round reports cases, one without them counts 0.
        loud = {*each["loud"], *(index for made in each["made"].values() for index in loud_in(made))}
        ratios = [
            0.0 if ratio is None and index in loud else ratio for ratio, (index, _) in zip(ratios, records, strict=True)
        ]
        found.append(mean([ratio for ratio in ratios if ratio is not None]))
    return 100 * mean(found) if found else None


def reward(record: Values) -> float:
    return float(record["verdict"]["reward"]) if record["verdict"] else 0.0


def is_passed(record: Values) -> float:
    return float(record["outcome"] == "passed")


def tries(task: Values, index: int) -> int:
    return sum(index in own for own in task["own"].values())


def passes(task: Values, index: int) -> int:
    return sum(passed(task, number, index) for number in task["own"])


def round_is_got(task: Values, index: int, fail_stop: bool) -> bool:
    for number, own in task["own"].items():
        before = [each for each in own if each < index] if fail_stop else []
        if index in own and all(passed(task, number, each) for each in (*before, index)):
            return True
    return False


def is_whole(task: Values) -> bool:
    """Whether any attempt was to make all rounds, of a part of the rounds all of that."""
    every = task["chain"] if task["indices"] == task.get("selected") else task["indices"]
    return any({*every} <= {*own} for own in task["own"].values())


def mt_at_k(tasks: list[Values], fail_stop: bool) -> float | None:
    whole = filter(is_whole, tasks)
    shares = [mean([float(round_is_got(each, i, fail_stop)) for i in each["indices"]]) for each in whole]
    return 100 * mean(shares) if shares else None


def sr(tasks: list[Values]) -> float:
    shares = [passes(each, index) / tries(each, index) for each in tasks for index in each["indices"]]
    return 100 * mean(shares)


def scaled(tasks: list[Values], name: str) -> float | None:
    """A number of the model's requests or tokens at the mean rate of the rounds where it is known, times N_t."""
    found = []
    for each in tasks:
        known = [record["usage"][name] for record in records_of([each]) if record["usage"]]
        known = [value for value in known if value is not None]
        if known:
            found.append(len(each["indices"]) * mean(known))
    return mean_or_none(found)


def pinned_score(tasks: list[Values]) -> float | None:
    if not any(record["verdict"] and record["verdict"]["pinned"] for record in records_of(tasks)):
        return None
    return case_score(tasks, pins=True)


def attempt_rewards(task: Values, number: int, final: bool) -> list[Values]:
    """The rewards by key of the rounds that count for an attempt: all, or with ``final`` the last."""
    own = task["own"][number]
    found = [task["made"][number].get(index) for index in own]
    keys = {key for each in found if each and each["verdict"] for key in each["verdict"]["rewards"]}
    tables = [dict(each["verdict"]["rewards"]) if each and each["verdict"] else {} for each in found]
    # The last round's own keys hold, where it has a verdict.
    if final and tables and tables[-1]:
        return [tables[-1]]
    return [{key: table.get(key, 0.0) for key in keys} for table in (tables if not final else [{}])]


def mean_tables(tables: list[Values]) -> Values:
    return {key: mean([table.get(key, 0.0) for table in tables]) for key in {key for table in tables for key in table}}


def rewards(tasks: list[Values], final: Callable[[str], bool]) -> Values:
    of_tasks = []
    for each in tasks:
        trials = [mean_tables(attempt_rewards(each, number, final(each["task"]))) for number in each["own"]]
        of_tasks.append(mean_tables(trials))
    return {key: 100 * value for key, value in mean_tables(of_tasks).items()}


def mean_reward(tasks: list[Values], final: Callable[[str], bool]) -> float:
    of_tasks = []
    for each in tasks:
        found = []
        for number, own in each["own"].items():
            for index in own[-1:] if final(each["task"]) else own:
                record = each["made"][number].get(index)
                found.append(0.0 if record is None else reward(record))
        of_tasks.append(mean(found))
    return 100 * mean(of_tasks)


def of_chains(tasks: list[Values]) -> Values:
    """What a breakdown shows of its groups, too."""
    whole = list(filter(is_whole, tasks))
    calls = [
        [record["tool_calls"] for record in records_of([each]) if record["tool_calls"] is not None] for each in tasks
    ]
    return {
        "tasks": len(tasks),
        "rounds": sum(len(each["indices"]) for each in tasks),
        "dataset_score": 100 * mean([over_cells(each, is_passed) for each in tasks]),
        "case_score": case_score(tasks),
        "pinned_case_score": pinned_score(tasks),
        "avg_rounds": mean_or_none([mean(each) for each in calls if each]),
        "perfect_tasks": sum(
            any(all(passed(each, number, index) for index in each["indices"]) for number in each["own"])
            for each in whole
        )
        if whole
        else None,
        "mt_at_k": mt_at_k(tasks, fail_stop=True),
        "whole_tasks": len(whole),
    }


def of_single_rounds(tasks: list[Values]) -> Values:
    """What a breakdown shows of groups of single rounds."""
    chains = of_chains(tasks)
    kept = {name: chains[name] for name in ("tasks", "rounds", "avg_rounds")}
    macro = 100 * mean([over_cells(each, is_passed) for each in tasks])
    return dict.fromkeys(chains) | kept | {"sr": sr(tasks), "sr_macro": macro, "whole_tasks": 0}


def reliability(tasks: list[Values]) -> tuple[float | None, int]:
    several = [(each, index) for each in tasks for index in each["indices"] if tries(each, index) > 1]
    any_passed = sum(passes(*place) > 0 for place in several)
    all_passed = sum(passes(*place) == tries(*place) for place in several)
    return (100 * all_passed / any_passed if any_passed else None), len({each["task"] for each, _ in several})


def completion(tasks: list[Values]) -> float | None:
    last = [each for each in tasks if each["length"] in each["indices"]]
    return mean_or_none([100.0 * (passes(each, each["length"]) > 0) for each in last])


def is_hard(task: Values) -> bool:
    return 2 * sum(passes(task, index) for index in task["indices"]) <= len(cells(task))


def gap(chain: list[Values], single: list[Values]) -> float | None:
    first, second = ({each["task"]: each for each in tasks} for tasks in (chain, single))
    if first.keys() != second.keys():
        return None
    for task in first:
        sides = first[task], second[task]
        is_partial = any(own != each["chain"] for each in sides for own in each["own"].values())
        if is_partial and sides[0]["indices"] != sides[1]["indices"]:
            return None
    through = mt_at_k(chain, fail_stop=True)
    return None if through is None or not all(map(is_whole, chain)) else sr(single) - through


def scores(chain: list[Values], single: list[Values], final: Callable[[str], bool]) -> Values:
    either = chain or single
    records = [*records_of(chain), *records_of(single)]
    seconds = [record[name] for record in records_of(either) for name in ("agent_seconds", "verifier_seconds")]
    known = [value for value in seconds if value is not None]
    share, of = reliability(chain)
    none = dict.fromkeys(of_chains(either)) | {"whole_tasks": 0}
    return {
        **(of_chains(chain) if chain else none | {"avg_rounds": of_chains(single)["avg_rounds"]}),
        "tasks": len(either),
        "case_tasks": sum(map(reports_cases, chain)),
        "rounds": sum(len(each["indices"]) for each in either),
        "seconds": sum(known) if known else None,
        "attempts": max(len(each["own"]) for each in either),
        "fewest_attempts": min(tries(each, index) for each in either for index in each["indices"]),
        "mean_reward": mean_reward(chain, final) if chain else None,
        "reliability": share,
        "reliability_tasks": of,
        "final_round_completion": completion(chain),
        "hard_tasks": 100 * mean([float(is_hard(each)) for each in chain]) if chain else None,
        "sr": sr(single) if single else None,
        "sr_macro": 100 * mean([over_cells(each, is_passed) for each in single]) if single else None,
        "gap": gap(chain, single) if chain and single else None,
        "avg_turns": scaled(either, "requests"),
        "output_tokens": scaled(either, "completion_tokens"),
        "trusting": sum(bool(record["verdict"] and record["verdict"]["trusts"]) for record in records),
        "undecided": 0,
        "undecided_failed": 0,
        "decided_tasks": len(either),
    }


# Without infrastructure errors.


def without_faults(chain: list[Values], single: list[Values]) -> Values | None:
    """What is counted, and the scores, without rounds that an infrastructure error kept from a verdict."""
    errors = sum(is_fault(record) for record in records_of([*chain, *single]))
    if not errors:
        return None
    rest_of_chain = [left_of(each, in_chain=True) for each in chain]
    rest_of_single = [left_of(each, in_chain=False) for each in single]
    before, after = [*chain, *single], [*rest_of_chain, *rest_of_single]
    chain, single = ([each for each in rest if each["own"]] for rest in (rest_of_chain, rest_of_single))
    lost = sum(len(cells(each)) for each in before) - sum(len(cells(each)) for each in after)
    found = of_chains(chain) if chain else {}
    return {
        "errors": errors,
        "not_reached": lost - errors,
        "attempts": sum(len(each["own"]) for each in before) - sum(len(each["own"]) for each in after),
        "tasks": sum(not each["own"] for each in after),
        **{name: found.get(name) for name in ("dataset_score", "case_score", "pinned_case_score")},
        "sr": sr(single) if single else None,
        "sr_macro": 100 * mean([over_cells(each, is_passed) for each in single]) if single else None,
    }


def is_fault(record: Values) -> bool:
    return bool(record["outcome"] == "error" and record["fault"] != "agent")


def left_of(task: Values, in_chain: bool) -> Values:
    own = {}
    for number, indices in task["own"].items():
        left, after_fault = [], False
        for index in indices:
            record = task["made"][number].get(index)
            is_reached = record is not None and record["outcome"] != "not reached"
            if record is not None and is_reached:
                after_fault = is_fault(record)
            elif not in_chain:
                after_fault = False
            if not after_fault:
                left.append(index)
        if left:
            own[number] = left
    indices = [index for index in task["indices"] if any(index in each for each in own.values())]
    return task | {"own": own, "indices": indices}
