"""What is told case by case once more, by plain loops over JSON files: kinds of failures, survival, others' metrics.

Nothing here comes from the package. It is written from docs/metrics.md, for whole chains at unchanged tasks, and reads
what :class:`CaseTrees` wrote.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import exp, log, sqrt
from pathlib import Path
from random import Random
from typing import Any

Values = dict[str, Any]
Attempts = dict[int, dict[int, Values]]
"""The records by number and index; each with its ``cases``."""
RUN = "2026-01-01__00-00-00"
FAILING = ("failed", "error")


class CaseTrees:
    """A results directory of one session: tasks that add and retire cases, and suites that break off."""

    def __init__(self, root: Path, random: Random) -> None:
        self.root = root
        self._random = random
        agents = ["gpt", "other", *(name for name in ("oracle", "nop") if random.random() < 0.4)]
        for task in ("t1", "t2", "t3")[: random.randint(1, 3)]:
            rounds = random.randint(1, 4)
            # Of each case: the round that is the first to require it, and the one that no longer does.
            cases = {
                f"c{number}": (begin := random.randint(1, rounds), random.choice((99, 99, 99, begin + 1)))
                for number in range(random.randint(2, 6))
            }
            cases |= {f"first{index}": (index, 99) for index in range(1, rounds + 1) if random.random() < 0.7}
            with_origin = random.random() < 0.5
            self._names = {id: random.choice(("", "", "R1", "R2")) for id in cases}
            changes = [random.sample(("conflict", "extension"), random.randint(0, 2)) for _ in range(rounds)]
            names = [f"round-{index}" for index in range(1, rounds + 1)]
            self._facts = {"rounds": names, "change_types": changes} if random.random() < 0.8 else None
            for agent in agents:
                for number in range(1, random.randint(1, 2) + 1):
                    self._write(task, agent, number, rounds, cases, with_origin)

    def _write(
        self, task: str, agent: str, number: int, rounds: int, cases: dict[str, tuple[int, int]], with_origin: bool
    ) -> None:
        place = self.root / task / "harbor_jobs" / agent / RUN / f"{task}__a{number}"
        records: list[Values] = []
        ended = False
        for index in range(1, rounds + 1):
            name = f"round-{index}"
            required = [id for id, (begin, end) in cases.items() if begin <= index < end]
            found = [
                {"id": id, "status": self._status(agent), "origin": f"round-{cases[id][0]}" if with_origin else ""}
                | {"requirement": self._names[id]}
                for id in required
            ]
            how = (
                "played" if agent == "oracle" else self._random.choice((*["played"] * 8, "breaks off", "error", "end"))
            )
            how = "end" if ended else how
            ended = how == "end"
            if how == "breaks off":
                found = [{**each, "status": "passed"} for each in found[: self._random.randint(0, 1)]]
            good = how == "played" and all(each["status"] == "passed" for each in found)
            outcome = {"error": "error", "end": "not reached"}.get(how, "passed" if good else "failed")
            if outcome in ("error", "not reached"):
                found = []
            verdict = None
            if outcome in ("passed", "failed"):
                passing = sum(each["status"] == "passed" for each in found)
                verdict = {"reward": float(good), "rewards": {"reward": float(good)}, "counts": [passing, len(found)]}
                path = place / "steps" / name / "verifier" / "cases.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(found))
            fault = self._random.choice(("agent", "infrastructure")) if outcome == "error" else None
            timed_out = "agent" if outcome == "failed" and self._random.random() < 0.1 else None
            about = {
                "task": task,
                "agent": agent,
                "attempt": number,
                "round": name,
                "index": index,
                "timed_out": timed_out,
            }
            records.append({**about, "declared_rounds": rounds, "outcome": outcome, "fault": fault, "verdict": verdict})
        record = {"version": 4, "task": task, "agent": agent, "attempt": number, "mode": "chain", "from_round": None}
        record |= {
            "environment": "sandbox",
            "task_hash": "",
            "made_by": {"spec": agent},
            "rewards": {},
            "rounds": records,
        }
        record |= {"started": f"{RUN[:10]}T00:00:01+00:00", "finished": f"{RUN[:10]}T00:00:02+00:00", "strict": False}
        record |= {"facts": self._facts, "declared_rounds": [f"round-{index}" for index in range(1, rounds + 1)]}
        (place / "result.json").parent.mkdir(parents=True, exist_ok=True)
        (place / "result.json").write_text(json.dumps(record))

    def _status(self, agent: str) -> str:
        if agent == "oracle":
            return "passed"
        return self._random.choice(("passed",) * 6 + ("failed", "failed", "skipped", "error"))


def read(root: Path) -> dict[str, dict[str, Attempts]]:
    """The attempts by agent and task."""
    found: dict[str, dict[str, Attempts]] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(root.glob("*/harbor_jobs/*/*/*/result.json")):
        record = json.loads(path.read_text())
        rounds = {}
        for each in record["rounds"]:
            cases = path.parent / "steps" / each["round"] / "verifier" / "cases.json"
            known = record["facts"]["change_types"][each["index"] - 1] if record["facts"] else []
            rounds[each["index"]] = each | {"cases": json.loads(cases.read_text()) if cases.exists() else []}
            rounds[each["index"]]["changes"] = known
        found[record["agent"]][record["task"]][record["attempt"]] = rounds
    return found


# The words for what failed.


def case_kinds(attempts: Iterable[dict[int, Values]]) -> Values:
    """How many failing cases are new misses, regressions and carried."""
    found = {"new miss": 0, "regression": 0, "carried": 0, "stale": 0}
    for rounds in attempts:
        for index in rounds:
            for case in rounds[index]["cases"]:
                if case["status"] not in FAILING:
                    continue
                earlier = [rounds[i] for i in rounds if i < index]
                same = [each for record in earlier for each in record["cases"] if each["id"] == case["id"]]
                passed_before = any(each["status"] == "passed" for each in same)
                required_before = bool(same) or case["origin"] in [record["round"] for record in earlier]
                found["regression" if passed_before else "carried" if required_before else "new miss"] += 1
    return found


def round_kinds(agent: str, agents: dict[str, dict[str, Attempts]]) -> Values:
    """How many failed rounds of an agent there are of each kind, the first that holds.

    Where nobody's suites of a task report cases, and one of the agent's came to its end, it is not for the agent that
    none ran.
    """
    found = dict.fromkeys(("cases", "reward", "build", "timeout", "agent error", "infrastructure", "other"), 0)
    reporting = {
        task
        for tasks in agents.values()
        for task, attempts in tasks.items()
        if any(each["cases"] for rounds in attempts.values() for each in rounds.values())
    }
    for task, attempts in agents[agent].items():
        records = [each for rounds in attempts.values() for each in rounds.values()]
        decided = (each["verdict"] for each in records if each["outcome"] in ("passed", "failed"))
        silent = task not in reporting and any(verdict and not verdict.get("timed_out") for verdict in decided)
        for record in records:
            statuses = {case["status"] for case in record["cases"]}
            if record["outcome"] == "error":
                found["agent error" if record["fault"] == "agent" else "infrastructure"] += 1
            elif record["outcome"] == "failed" and record["timed_out"]:
                found["timeout"] += 1
            elif record["outcome"] == "failed" and silent and record["verdict"]:
                found["reward"] += 1
            elif record["outcome"] == "failed":
                found["build" if statuses <= {"skipped"} else "cases" if statuses != {"passed"} else "other"] += 1
    return found


# How far attempts get.


def pass_rates(tasks: dict[str, Attempts]) -> Values:
    shares: dict[int, list[float]] = defaultdict(list)
    for attempts in tasks.values():
        for index in next(iter(attempts.values())):
            passed = [rounds[index]["outcome"] == "passed" for rounds in attempts.values()]
            shares[index].append(sum(passed) / len(passed))
    return {str(index): 100 * sum(found) / len(found) for index, found in shares.items()}


def survival(tasks: dict[str, Attempts]) -> Values:
    """Kaplan-Meier's estimate and its interval, by round."""
    found: Values = {}
    share, greenwood = 1.0, 0.0
    for index in range(1, 9):
        at_risk = failed = 0.0
        for attempts in tasks.values():
            for rounds in attempts.values():
                before = [rounds[i]["outcome"] for i in rounds if i < index]
                here = rounds.get(index)
                if here is None or any(outcome != "passed" for outcome in before) or here["outcome"] == "not reached":
                    continue
                if here["outcome"] == "error" and here["fault"] != "agent":
                    continue
                at_risk += 1 / len(attempts)
                failed += (here["outcome"] != "passed") / len(attempts)
        if not at_risk or share < 1e-9:
            break
        share *= 1 - failed / at_risk
        interval = None
        if 1e-9 < share < 1 and len(tasks) >= 5:
            greenwood += failed / (at_risk * (at_risk - failed))
            width = 1.959963984540054 * sqrt(greenwood) / log(share)
            interval = [100 * share ** exp(-width), 100 * share ** exp(width)]
        found[str(index)] = {"percent": 100 * share, "at_risk": at_risk, "failed": failed, "interval": interval}
    return found


# How requirements fare.


def letters(rounds: dict[int, Values], cases: set[str], required: dict[int, tuple[set[str], set[str], bool]]) -> str:
    """By round, whether a requirement passes, fails, or is not known to do either."""
    found = ""
    for index, record in rounds.items():
        new, old, told = required[index]
        here = cases & (new | old)
        statuses = {case["id"]: case["status"] for case in record["cases"] if case["id"] in here}
        if not here or record["outcome"] not in ("passed", "failed"):
            found += "?"
        elif not record["cases"] and record["outcome"] == "passed":
            found += "p"
        elif any(status in FAILING for status in statuses.values()) or (told and here - {*statuses}):
            found += "f"
        else:
            found += "p" if "passed" in statuses.values() else "?"
    return found


BEFORE = {"break": (r"(?:^|f)(p+)", "f"), "repair": (r"p(f+)", "p"), "catch-up": (r"^(f+)", "p")}
"""What stands before a round in which each may happen, and the letter of a round in which it did."""


def hazard(agent: str, agents: dict[str, dict[str, Attempts]]) -> Values:
    """What ``evocode results --view hazard`` has of an agent, but for the intervals: numbers by event and key."""
    found: Values = {event: defaultdict(lambda: [0, 0, 0]) for event in BEFORE}
    for task, attempts in agents[agent].items():
        every = [
            record for tasks in agents.values() for each in tasks.get(task, {}).values() for record in each.values()
        ]
        if not any(record["cases"] for record in every):
            continue
        required = required_rounds(task, agents)
        names = {case["id"]: case["requirement"] or case["id"] for record in every for case in record["cases"]}
        # What the first round that is known requires is of before it, as 0.
        came = {id: 0 for index in required for id in required[index][1]}
        came |= {id: index for index in reversed(required) for id in required[index][0]}
        for unit in {(names[id], came[id]) for id in came}:
            cases = {id for id in came if (names[id], came[id]) == unit}
            for rounds in attempts.values():
                line = ("?" + letters(rounds, cases, required) + "?")[unit[1] :]
                for event, (before, happens) in BEFORE.items():
                    for place in range(1, len(line)):
                        if match := re.search(before + "$", line[:place]):
                            what = 0 if line[place] == "?" else 2 if line[place] == happens else 1
                            index = unit[1] + place
                            changes = rounds[index]["changes"] if index in rounds else []
                            for key in ("all", len(match[1]), *changes):
                                found[event][key][what] += 1
    return found


# Metrics of other benchmarks.


def required_rounds(task: str, agents: dict[str, dict[str, Attempts]]) -> dict[int, tuple[set[str], set[str], bool]]:
    """By index what a round is the first to require, what else it does, and whether any attempt tells all of it."""
    oracle = agents.get("oracle", {}).get(task, {})
    every = [rounds for tasks in agents.values() for rounds in tasks.get(task, {}).values()]
    found: dict[int, tuple[set[str], set[str], bool]] = {}
    last: set[str] = set()
    seen: set[str] = set()
    for index in every[0]:
        records = [rounds[index] for rounds in every]
        known = [case for rounds in oracle.values() for case in rounds[index]["cases"] if case["status"] == "passed"]
        told = bool(known)
        if not known:
            known = [case for record in records for case in record["cases"]]
            for record in records:
                failing = any(case["status"] in FAILING for case in record["cases"])
                told |= bool(record["cases"]) and (record["outcome"] == "passed" or failing)
        ids = {case["id"] for case in known}
        new = {
            case["id"]
            for case in known
            if (case["origin"] == f"round-{index}" if case["origin"] else case["id"] not in seen)
        }
        old = (ids if told else ids | last) - new
        found[index] = (new, old, told)
        last = new | old
        seen |= last
    return found


def of_attempt(rounds: dict[int, Values], required: dict[int, tuple[set[str], set[str], bool]], base: Any) -> Values:
    """The values of each round of one attempt; None is not measured."""
    found: Values = {name: [] for name in ("change", "recall", "precision", "f1", "fix", "lost", "standing")}
    held: set[str] = set()
    gone: set[str] = set()
    for index, record in rounds.items():
        new, old, told = required[index]
        judged = record["outcome"] in ("passed", "failed")
        by_word = record["outcome"] == "passed" and not record["cases"]
        statuses = {case["id"]: case["status"] for case in record["cases"]}
        passed = {id for id in new | old if statuses.get(id) == "passed" or by_word}
        ran = by_word or any(status != "skipped" for status in statuses.values())
        lost = {id for id in held & old if not by_word and statuses.get(id, "error") in FAILING} if judged else set()
        unknown = ran and not told and not by_word
        done, broken = len(new & passed), len(old - passed)
        recall = (done / len(new) if new else 1.0) if ran else 0.0
        precision = (done + 1) / (done + broken + 1) if ran else 0.0
        total, before = len(new | old), len((new | old) & base(index))
        n = len(passed)
        change = (
            0.0 if n == before or not judged or not total else (n - before) / (total - before if n > before else before)
        )
        found["change"].append(None if unknown and total else change)
        found["recall"].append(None if unknown else recall)
        found["precision"].append(None if unknown else precision)
        found["f1"].append(None if unknown else 2 * precision * recall / (precision + recall) if ran else 0.0)
        if unknown or (not new and told):
            found["fix"].append(None)
        elif not ran or lost:
            found["fix"].append(0.0 if new or not ran else None)
        else:
            found["fix"].append(done / len(new) if new else None)
        gone = (gone | lost) - passed
        held = (held | passed) - lost
        if judged:
            found["lost"].append(len(lost))
            found["standing"].append(len(gone & old))
    return found


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def neighbours(agent: str, agents: dict[str, dict[str, Attempts]]) -> Values:
    """What ``evocode metrics --json`` has of an agent, but for the cost."""
    of_tasks = []
    for task, attempts in agents[agent].items():
        records = [record for rounds in attempts.values() for record in rounds.values()]
        verdicts = [record for record in records if record["outcome"] in ("passed", "failed")]
        anybody = any(
            each["cases"] for tasks in agents.values() for a in tasks.get(task, {}).values() for each in a.values()
        )
        if verdicts and not any(record["cases"] for record in verdicts) and not anybody:
            continue
        required = required_rounds(task, agents)
        idle = agents.get("nop", {}).get(task, {})

        def base(index: int, idle: Attempts = idle) -> set[str]:
            suites = [rounds[index]["cases"] for rounds in idle.values() if rounds[index]["cases"]]
            return {case["id"] for case in suites[0] if case["status"] == "passed"} if suites else set()

        of_tasks.append([of_attempt(rounds, required, base) for rounds in attempts.values()])

    def over(value: Callable[[Values], float | None]) -> float | None:
        return mean(mean(map(value, attempts)) for attempts in of_tasks)

    def rounds_of(name: str) -> float | None:
        found = over(lambda attempt: mean(attempt[name]))
        return None if found is None else 100 * found

    return {
        "swe-ci": {"evo_score": rounds_of("change")},
        "evoclaw": None
        if rounds_of("recall") is None
        else {name: rounds_of(name) for name in ("recall", "precision", "f1")},
        "swe-evo": {"fix_rate": rounds_of("fix")},
        "regressions": None
        if (lost := over(lambda attempt: sum(attempt["lost"]) if attempt["lost"] else None)) is None
        else {"lost": lost, "standing": over(lambda attempt: attempt["standing"][-1] if attempt["standing"] else None)},
    }
