"""Tasks as an environment of verifiers, evaluated by its own command with a model that a server plays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow("each starts vf-eval, whose imports take seconds")
Policy = Callable[[list[dict[str, Any]]], str | None]
"""Returns a script to run after a conversation, or None to end the turn."""
MODULE = Path(__file__).parents[2] / "docs" / "examples" / "my_tasks.py"


@contextmanager
def model(policy: Policy) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server of a model; yields its address and the requests that come."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(request)
            script = policy(request["messages"])
            message: dict[str, Any] = {"role": "assistant", "content": "Done." if script is None else ""}
            if script is not None:
                function = {"name": "bash", "arguments": json.dumps({"command": script})}
                call_id = f"call-{len(requests)}"
                message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
            choice = {"index": 0, "message": message, "finish_reason": "stop" if script is None else "tool_calls"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
            body = json.dumps({**reply, "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
        server.shutdown()


def evaluate(task: Path, policy: Policy, *more: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Evaluate a model by verifiers' command; return the trace of the rollout and the requests to the model."""
    home = task.parent
    shutil.copy(MODULE, home)
    path = os.pathsep.join((str(home), os.environ.get("PYTHONPATH", "")))
    with model(policy) as (address, requests):
        command = [str(Path(sys.executable).with_name("vf-eval")), "my_tasks", "--no-push", "--no-rich"]
        command += ["--model", "m", "--client.base-url", address, "--env.agent.runtime.type", "subprocess"]
        command += ["--env.taskset.tasks", json.dumps([str(task)]), "--env.taskset.engine", "sandbox", *more]
        environment = {**os.environ, "PYTHONPATH": path, "HOME": str(home), "PRIME_API_KEY": ""}
        done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    traces = list(home.glob("outputs/*/traces.jsonl"))
    assert len(traces) == 1, done.stdout + done.stderr
    [episode] = [json.loads(line) for line in traces[0].read_text().splitlines()]
    [trace] = episode["traces"]
    return trace, requests


def solve(messages: list[dict[str, Any]]) -> str | None:
    last = messages[-1]
    return f"echo {last['content'].split()[1].strip('.')} >> work; cat work" if last["role"] == "user" else None


def test_a_model_that_solves_the_rounds_has_the_reward_of_all(task: Path) -> None:
    trace, requests = evaluate(task, solve)
    assert (trace["errors"], trace["stop_condition"]) == ([], "agent_completed")
    assert trace["rewards"]["episode"]["score"] == 1.0
    assert (trace["metrics"]["round/one"], trace["metrics"]["round/two"]) == (1.0, 1.0)
    said = [(each["role"], each.get("content")) for each in requests[-1]["messages"][1:]]
    assert said == [
        ("user", "Add one.\n"),
        ("assistant", ""),
        ("tool", "one\n[exit code 0]"),
        ("assistant", "Done."),
        ("user", "Add two.\n"),
        ("assistant", ""),
        ("tool", "one\ntwo\n[exit code 0]"),
    ]


def test_a_model_that_does_nothing_has_no_reward(task: Path) -> None:
    trace, requests = evaluate(task, lambda messages: None)
    assert (trace["errors"], trace["rewards"]["episode"]["score"]) == ([], 0.0)
    assert (trace["metrics"]["round/one"], trace["metrics"]["round/two"], len(requests)) == (0.0, 0.0, 2)


def test_rounds_that_the_model_may_not_take_count_0(task: Path) -> None:
    trace, requests = evaluate(task, solve, "--env.agent.max-turns", "1")
    assert (trace["errors"], trace["stop_condition"], len(requests)) == ([], "max_turns", 1)
    assert (trace["rewards"]["episode"]["score"], trace["metrics"]["round/one"]) == (0.5, 1.0)
    assert "round/two" not in trace["metrics"]


def test_a_call_that_cannot_be_run_is_answered(task: Path) -> None:
    _, requests = evaluate(task, lambda messages: "" if messages[-1]["role"] == "user" else None)
    assert "'command' has to be a text" in requests[1]["messages"][-1]["content"]


def test_a_fault_of_the_infrastructure_is_an_error_of_the_rollout(task: Path) -> None:
    suite = task / "steps" / "one" / "tests" / "test.sh"
    suite.write_text("exit 1\n")
    trace, _ = evaluate(task, solve)
    [error] = trace["errors"]
    assert "round one has no reward by no fault of the model's" in error["message"]
    assert (trace["ok"], trace["rewards"]) == (False, {})
