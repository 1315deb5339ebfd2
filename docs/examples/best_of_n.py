"""Best of n by forks of a live episode: docs/api.md walks through it.

Run it in a clone of the repository: python docs/examples/best_of_n.py
"""

import asyncio
import base64
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_evocode.play import Episode, RoundResult, play

TASK = Path(__file__).parents[2] / "example_tasks" / "process" / "recipes"
SEED, TRIES = 3, 4
Policy = Callable[[Path], str]
"""Returns the command that takes the turn of a round, by its directory. A model would read the instruction."""


def write_files(paths: Sequence[Path], root: Path) -> str:
    """Return the command that writes files of the reference solution."""
    commands = []
    for path in paths:
        name = path.relative_to(root)
        content = base64.b64encode(path.read_bytes()).decode()
        commands.append(f"mkdir -p {name.parent} && echo {content} | base64 -d > {name}")
    return "\n".join(commands)


def scripted(round_directory: Path) -> str:
    """Do all that the reference solution does."""
    root = round_directory / "solution" / "project"
    return write_files(sorted(path for path in root.rglob("*") if path.is_file()), root)


def forgetful(chance: random.Random) -> Policy:
    """Return a policy that forgets each file at random."""

    def take(round_directory: Path) -> str:
        root = round_directory / "solution" / "project"
        files = sorted(path for path in root.rglob("*") if path.is_file())
        return write_files([path for path in files if chance.random() > 0.25], root)

    return take


def share(result: RoundResult) -> float:
    """Return the share of the round's cases that passed, which tells more than whether all did."""
    rewards = result.case_rewards.values()
    return sum(rewards) / len(rewards) if rewards else 0.0


async def attempt(episode: Episode, command: str) -> RoundResult:
    """Take a turn and have it verified."""
    await episode.exec(command)
    return await episode.finish_round()


async def play_round(episode: Episode, policy: Policy, tries: int) -> tuple[Episode, RoundResult]:
    """Take the turn so often, each time in a fork, and return the episode that came out best with its result."""
    assert episode.observation is not None
    directory = episode.task.directory / "steps" / episode.observation.round
    episodes = [episode, *[await episode.fork() for _ in range(tries - 1)]]
    commands = [policy(directory) for _ in episodes]
    results = await asyncio.gather(*map(attempt, episodes, commands))
    best = max(range(tries), key=lambda number: share(results[number]))
    await asyncio.gather(*(each.close() for each in episodes if each is not episodes[best]))
    return episodes[best], results[best]


async def rollout(policy: Policy, tries: int = 1) -> list[float]:
    """Play the task and return the reward of each round, the best of so many tries."""
    rewards = []
    async with play(TASK, "sandbox") as first:
        episode, observation = first, await first.reset()
        while observation is not None:
            episode, result = await play_round(episode, policy, tries)
            rewards.append(share(result))
            observation = result.observation
        await episode.close()
    return rewards


def plot(rewards: Mapping[str, Sequence[float]]) -> str:
    """Return bars of the rewards by round."""
    lines = []
    for number in range(max(map(len, rewards.values()))):
        lines.append(f"round {number + 1}")
        for name, of_rounds in rewards.items():
            bar = "#" * round(40 * of_rounds[number])
            lines.append(f"  {name:10} |{bar:40}| {of_rounds[number]:.2f}")
    return "\n".join(lines)


async def main() -> dict[str, list[float]]:
    """Play the task by three policies."""
    return {
        "scripted": await rollout(scripted),
        "forgetful": await rollout(forgetful(random.Random(SEED))),
        f"best of {TRIES}": await rollout(forgetful(random.Random(SEED)), TRIES),
    }


if __name__ == "__main__":
    print(plot(asyncio.run(main())))
