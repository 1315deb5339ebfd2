"""A program with Claude Code's command line and events, which asks its model for each line of the instruction.

It does what the line says once the model has answered: ``run: COMMAND``, ``say: TEXT``, ``die: TEXT`` (it ends with
that on stderr); of other lines only the model knows the meaning. As Claude Code does, it asks again ten times.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid


def tell(session: str, kind: str, **event: object) -> None:
    print(json.dumps({"type": kind, "session_id": session, "parent_tool_use_id": None, **event}), flush=True)


def ask(session: str, said: "list[str]") -> None:
    """Ask the model for what is to be done by the last of these lines."""
    body = {"model": "claude-fake-1", "max_tokens": 100, "messages": [{"role": "user", "content": "\n".join(said)}]}
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    headers["x-api-key"] = os.environ["ANTHROPIC_API_KEY"]
    url, error = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", ""
    for _ in range(11):
        try:
            urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
            return
        except urllib.error.HTTPError as refused:
            error = f"API Error: {refused.code} {refused.read().decode()}"
            if refused.code < 429 and refused.code != 401:
                break
            tell(session, "system", subtype="api_retry", error_status=refused.code, error="overloaded_error")
        except OSError as broken:
            error = f"API Error: {broken}"
        time.sleep(0.1)
    tell(session, "result", subtype="success", is_error=True, result=error)
    sys.exit(1)


def answer(session: str, number: int, *blocks: object) -> None:
    for block in blocks:
        message = {"id": f"msg_{number}", "model": "claude-fake-1", "content": [block]}
        tell(session, "assistant", message=message)
    tell(session, "stream_event", event={"type": "message_stop"})


def follow(session: str, number: int, word: str, rest: str) -> None:
    """Do what a line says."""
    if word == "run":
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": rest}}
        answer(session, number, {"type": "text", "text": f"Step {number}."}, call)
        done = subprocess.run(["bash", "-c", rest], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        failed = done.returncode != 0
        content = f"Exit code {done.returncode}\n{done.stdout}" if failed else done.stdout
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": failed}
        tell(session, "user", message={"content": [result]}, tool_use_result={"stdout": done.stdout})
    elif word == "say":
        answer(session, number, {"type": "text", "text": rest})
    elif word == "die":
        sys.exit(rest)


def main() -> None:
    arguments, lines = sys.argv[1:], sys.stdin.read().splitlines()
    home = os.path.expanduser("~/.claude/projects")
    resumed = "--resume" in arguments
    session = arguments[arguments.index("--resume") + 1] if resumed else str(uuid.uuid4())
    log = os.path.join(home, session)
    if resumed and not os.path.exists(log):
        tell(session, "result", subtype="error_during_execution", is_error=True, errors=["No session"])
        sys.exit(1)
    os.makedirs(home, exist_ok=True)
    with open(log, "a") as file:
        call = {"arguments": arguments, "said": lines, "key": os.environ.get("ANTHROPIC_API_KEY")}
        print(json.dumps(call), file=file)
    tell(session, "system", subtype="init", model="claude-fake-1", claude_code_version="0.0.1")
    for number, line in enumerate(lines, 1):
        word, _, rest = line.partition(": ")
        if word != "die":
            ask(session, lines[:number])
        follow(session, number, word, rest)
    tell(session, "result", subtype="success", is_error=False, result="Done.")


if __name__ == "__main__":
    main()
