"""Random results directories, written as plain JSON, with everything that goes wrong with files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

VERSION = 4
"""The version of records that is written; files of a later one have the next."""
AGENTS = ("gpt", "other")

Values = dict[str, Any]


class RandomTrees:
    """Two results directories of a few sessions, some of whose files are missing, damaged, newer or there twice."""

    def __init__(self, root: Path, random: Random) -> None:
        self.directories = [root / "a", root / "b"]
        self._random = random
        self._lengths = {f"t{number}": random.randint(1, 4) for number in range(1, random.choice((1, 2, 3)) + 1)}
        self._facts = {task: self._make_facts(rounds) for task, rounds in self._lengths.items()}
        for directory in self.directories:
            directory.mkdir(parents=True)
        for month in range(1, random.choice((0, 1, 2, 2, 3)) + 1):
            self._write_session(f"2026-0{month}-01__00-00-00")

    def _happens(self, chance: float) -> bool:
        return self._random.random() < chance

    def _make_facts(self, rounds: int) -> Values:
        pick = self._random.choice
        return {
            "rounds": [f"round-{index}" for index in range(1, rounds + 1)],
            "change_types": [pick(([], ["extension"], ["conflict", "extension"])) for _ in range(rounds)],
            "activity": pick(("", "Build", "Migration")),
            "category": pick(("", "tools")),
            "reward_strategy": pick(("mean", "mean", "final")),
        }

    def _write_session(self, run: str) -> None:
        mode = self._random.choice(("chain", "chain", "fail-stop", "single-round"))
        begins_later = mode != "single-round" and min(self._lengths.values()) > 1 and self._happens(0.2)
        from_round = "round-2" if begins_later else None
        root = self._random.choice(self.directories)
        state = self._random.choices(("good", "damaged", "newer", "absent"), (8, 1, 1, 1))[0]
        k = self._random.choice((1, 1, 2, 3))
        selected: dict[str, dict[str, list[int]]] = {}
        partial: dict[str, dict[str, dict[int, list[int]]]] = {}
        for task, rounds in self._lengths.items():
            chain = list(range(2 if begins_later else 1, rounds + 1))
            for agent in AGENTS:
                numbers = list(range(1, self._random.randint(1, k) + 1)) if self._happens(0.8) else []
                if numbers or self._happens(0.1):
                    selected.setdefault(task, {})[agent] = numbers
                for number in numbers:
                    part = chain
                    if self._happens(0.2):
                        part = chain[: self._random.randint(1, len(chain))]
                        if mode == "single-round":
                            part = sorted(self._random.sample(chain, len(part)))
                    if part != chain:
                        partial.setdefault(task, {}).setdefault(agent, {})[number] = part
                    self._write_attempt(root, run, mode, from_round, task, agent, number, part, state == "good")
        if state != "absent":
            record = {
                "version": VERSION + (state == "newer"),
                "run": run,
                "started": f"{run[:10]}T00:00:00+00:00",
                "finished": f"{run[:10]}T01:00:00+00:00" if self._happens(0.7) else None,
                "interrupted": self._happens(0.2),
                "arguments": [],
                "environment": "sandbox",
                "mode": mode,
                "from_round": from_round,
                "selected": selected,
                "partial": partial,
                "strict": False,
                "agents": {agent: {"spec": agent} for agent in AGENTS},
                "tasks": {
                    task: {"task_hash": f"hash of {task}", "facts": self._facts[task]}
                    for task in (selected if self._happens(0.6) else ())
                },
            }
            text = json.dumps(record)
            write(root / "runs" / f"{run}.json", text if state != "damaged" else text[:-7])

    def _write_attempt(
        self,
        root: Path,
        run: str,
        mode: str,
        from_round: str | None,
        task: str,
        agent: str,
        number: int,
        part: list[int],
        has_run: bool,
    ) -> None:
        # What an unfinished attempt is of, its run's record tells.
        weights = (12, 4, 3 if has_run else 0, 1, 1, 1, 1)
        states = ("finished", "nothing", "unfinished", "damaged", "newer", "contradictory", "no rounds")
        state = self._random.choices(states, weights)[0]
        if state == "nothing":
            return
        place = root / task / "harbor_jobs" / agent / run / f"{task}__a{number}"
        rounds = [self._make_round(task, agent, number, index) for index in part]
        if state == "unfinished":
            for each in rounds:
                if self._happens(0.6):
                    text = json.dumps({**each, "version": VERSION})
                    write(place / "steps" / each["round"] / "round.json", text if self._happens(0.9) else text[:9])
            place.mkdir(parents=True, exist_ok=True)
            return
        record: Values = {
            "version": VERSION + (state == "newer"),
            "task": task,
            "agent": agent,
            "attempt": number,
            "mode": mode,
            "from_round": from_round,
            "environment": "sandbox",
            "strict": False,
            "task_hash": f"hash of {task}",
            "made_by": {"spec": agent},
            "started": f"{run[:10]}T00:00:01+00:00",
            "finished": f"{run[:10]}T00:00:02+00:00",
            "declared_rounds": self._facts[task]["rounds"],
            "facts": self._facts[task] if self._happens(0.5) else None,
            "rewards": {},
            "rounds": [] if state == "no rounds" else rounds + rounds[:1] * (state == "contradictory"),
        }
        text = json.dumps(record, indent=1 if self._happens(0.5) else None)
        write(place / "result.json", text if state != "damaged" else text[: len(text) // 2])
        if self._happens(0.15):
            (other,) = (each for each in self.directories if each != root)
            copy = other / place.relative_to(root)
            shutil.copytree(place, copy)
            if state == "finished" and self._happens(0.4):
                again = [self._make_round(task, agent, number, index) for index in part]
                write(copy / "result.json", json.dumps(record | {"rounds": again, "regraded": f"{run[:10]}T09:00:00"}))

    def _make_round(self, task: str, agent: str, number: int, index: int) -> Values:
        pick, draw = self._random.choice, self._random.randint
        outcome = pick(("passed", "passed", "passed", "failed", "error", "not reached"))
        verdict = None
        if outcome in ("passed", "failed") or (outcome == "error" and self._happens(0.2)):
            cases, pinned = draw(0, 3), draw(0, 3)
            reward = pick((0.0, 0.5, 1.0))
            verdict = {
                "reward": reward,
                "rewards": {"reward": reward, **({"style": 0.25} if self._happens(0.3) else {})},
                "counts": pick((None, [draw(0, cases), cases])),
                "pinned": pick((None, None, [draw(0, pinned), pinned])),
                "rests_on": pick((None, "clean", "in-place", "separate")),
                "trusts": pick(([], [], ["/usr/lib/plugin.so"])),
            }
        tokens = {"prompt_tokens": pick((None, 100)), "completion_tokens": draw(0, 50), "requests": pick((None, 3))}
        return {
            "task": task,
            "agent": agent,
            "attempt": number,
            "round": f"round-{index}",
            "index": index,
            "declared_rounds": self._lengths[task],
            "outcome": outcome,
            "fault": pick((None, "agent", "infrastructure")) if outcome == "error" else None,
            "verdict": verdict,
            "tool_calls": pick((None, draw(0, 9))),
            "usage": pick((None, tokens)),
            "agent_seconds": pick((None, 0.25, 2.0)) if outcome != "not reached" else None,
            "verifier_seconds": pick((None, 0.5)) if verdict else None,
        }


def write(path: Path, text: str) -> None:
    """Write a file and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
