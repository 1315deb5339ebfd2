"""Best of n by forks of a live episode: docs/api.md walks through it.

Run it in a clone of the repository, with the extras sandbox and openai: python docs/examples/best_of_n.py
Its model is a made-up one; URL and NAME behind the command are those of a model on any server of OpenAI's API.
"""

import asyncio
import base64
import json
import random
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from openai import AsyncOpenAI

from pytest_evocode.play import Episode, RoundResult, play

TASK = Path(__file__).parents[2] / "example_tasks" / "process" / "recipes"
SOLUTIONS = {
    (directory / "instruction.md").read_text(): directory / "solution" / "project"
    for directory in (TASK / "steps").iterdir()
}
"""Where the reference solution of a request is."""
SEED, TRIES = 3, 4
BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a script in the workspace.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
Policy = Callable[[Episode, str], Awaitable[None]]
"""Takes the turn of a round, whose instruction it is given."""


def solution(instruction: str, forgets: Callable[[], bool] = lambda: False) -> str:
    """Return the command that writes the files of the reference solution, but for those that are forgotten."""
    root, commands = SOLUTIONS[instruction], []
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if not forgets():
            name, content = path.relative_to(root), base64.b64encode(path.read_bytes()).decode()
            commands.append(f"mkdir -p {name.parent} && echo {content} | base64 -d > {name}")
    return "\n".join(commands)


async def scripted(episode: Episode, instruction: str) -> None:
    """Do all that the reference solution does."""
    await episode.exec(solution(instruction))


def asking(url: str, name: str) -> Policy:
    """Return a policy that has a model call the tool bash until it says no more."""

    async def take(episode: Episode, instruction: str) -> None:
        said: list = [{"role": "user", "content": instruction}]
        async with AsyncOpenAI(base_url=url, api_key="none") as client:
            while True:
                reply = await client.chat.completions.create(model=name, messages=said, tools=[BASH])
                message = reply.choices[0].message
                said.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    done = await episode.exec(json.loads(call.function.arguments)["command"])
                    said.append({"role": "tool", "tool_call_id": call.id, "content": done.output})

    return take


@contextmanager
def forgetful_model() -> Iterator[Policy]:
    """Serve a model that does what the reference solution does, but forgets one file in four, and ask it."""
    chance, drawing = random.Random(SEED), threading.Lock()

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": "Done."}
            if asked["messages"][-1]["role"] == "user":
                with drawing:
                    command = solution(asked["messages"][-1]["content"], lambda: chance.random() < 0.25)
                call = {"name": "bash", "arguments": json.dumps({"command": command})}
                message |= {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": call}]}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "forgetful", "choices": [choice]}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield asking(f"http://127.0.0.1:{server.server_port}", "forgetful")
        finally:
            server.shutdown()


def share(result: RoundResult) -> float:
    """Return the share of the round's cases that passed, which tells more than whether all did."""
    rewards = result.case_rewards.values()
    return sum(rewards) / len(rewards) if rewards else 0.0


async def attempt(episode: Episode, policy: Policy, instruction: str) -> RoundResult:
    """Take a turn and have it verified."""
    await policy(episode, instruction)
    return await episode.finish_round()


async def play_round(episode: Episode, policy: Policy, instruction: str, tries: int) -> tuple[Episode, RoundResult]:
    """Take the turn so often, each time in a fork, and return the episode that came out best with its result."""
    episodes = [episode, *[await episode.fork() for _ in range(tries - 1)]]
    results = await asyncio.gather(*(attempt(each, policy, instruction) for each in episodes))
    best = max(range(tries), key=lambda number: share(results[number]))
    await asyncio.gather(*(each.close() for each in episodes if each is not episodes[best]))
    return episodes[best], results[best]


async def rollout(policy: Policy, tries: int = 1) -> list[float]:
    """Play the task and return the reward of each round, the best of so many tries."""
    rewards = []
    async with play(TASK, "sandbox") as first:
        episode, observation = first, await first.reset()
        while observation is not None:
            episode, result = await play_round(episode, policy, observation.instruction, tries)
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


async def main(*model: str) -> dict[str, list[float]]:
    """Play the task by a script, by a model, and by the best of several tries of the model."""
    rewards = {"scripted": await rollout(scripted)}
    for name, tries in (("model", 1), (f"best of {TRIES}", TRIES)):
        with forgetful_model() as forgetful:
            rewards[name] = await rollout(asking(*model) if model else forgetful, tries)
    return rewards


if __name__ == "__main__":
    print(plot(asyncio.run(main(*sys.argv[1:]))))
