"""A program with Claude Code's command line and last words, which gives its model the instruction line by line.

It runs what the model calls for, and tells it the result with the next line; at ``die: TEXT`` it ends with that on
stderr. As Claude Code does, it asks again ten times.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

TOOL = {
    "name": "Bash",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def end(session: str, **event: object) -> None:
    print(json.dumps({"type": "result", "session_id": session, **event}), flush=True)
    sys.exit(1 if event["is_error"] else 0)


def ask(session: str, messages: "list[Any]") -> "list[Any]":
    """Return the blocks of the model's reply."""
    body = {"model": "claude-fake-1", "max_tokens": 100, "tools": [TOOL], "messages": messages}
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    headers["x-api-key"] = os.environ["ANTHROPIC_API_KEY"]
    url, error = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", ""
    for _ in range(11):
        try:
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            reply: dict[str, Any] = json.load(urllib.request.urlopen(request))
            return list(reply["content"])
        except urllib.error.HTTPError as refused:
            error = f"API Error: {refused.code} {refused.read().decode()}"
            if refused.code < 429 and refused.code != 401:
                break
        except OSError as broken:
            error = f"API Error: {broken}"
        time.sleep(0.1)
    end(session, subtype="success", is_error=True, result=error)
    return []


def run(call: "dict[str, Any]") -> "dict[str, Any]":
    """Run a command that the model calls for, and return its result."""
    done = subprocess.run(
        ["bash", "-c", call["input"]["command"]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    failed = done.returncode != 0
    content = f"Exit code {done.returncode}\n{done.stdout}" if failed else done.stdout
    return {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": failed}


def main() -> None:
    arguments, lines = sys.argv[1:], sys.stdin.read().splitlines()
    home = os.path.expanduser("~/.claude/projects")
    resumed = "--resume" in arguments
    session = arguments[arguments.index("--resume" if resumed else "--session-id") + 1]
    log = os.path.join(home, session)
    if resumed and not os.path.exists(log):
        end(session, subtype="error_during_execution", is_error=True, errors=["No session"])
    os.makedirs(home, exist_ok=True)
    with open(log, "a") as file:
        call = {"arguments": arguments, "said": lines, "key": os.environ.get("ANTHROPIC_API_KEY")}
        print(json.dumps(call), file=file)
    messages: list[Any] = []
    results: list[Any] = []
    for line in lines:
        if line.startswith("die: "):
            sys.exit(line[5:])
        messages.append({"role": "user", "content": [*results, {"type": "text", "text": line}]})
        blocks = ask(session, messages)
        messages.append({"role": "assistant", "content": blocks})
        results = [run(block) for block in blocks if block["type"] == "tool_use"]
    end(session, subtype="success", is_error=False, result="Done.")


if __name__ == "__main__":
    main()
