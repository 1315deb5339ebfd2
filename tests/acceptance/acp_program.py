"""An agent of the tests in plain Python that speaks the Agent Client Protocol, and has no model.

Each line of a request is one thing to do: ``run: COMMAND`` in a terminal of the client, ``write: PATH TEXT`` and
``read: PATH`` by its file system, ``say: TEXT``, ``plan: STEP``, ``remember: WORD``, ``recall: PATH`` (writes what it
remembers), ``model: TEXT`` (asks one at ``$OPENAI_BASE_URL``, and says the same), ``stop: REASON``, ``die``, ``sleep``.
With the argument ``loads`` it keeps sessions in its home and loads them; without, it remembers as long as it runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
import uuid
from typing import Any

LOADS = "loads" in sys.argv
HOME = os.path.expanduser("~/.tiny-agent")
sessions: dict[str, dict[str, Any]] = {}
count = 0


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(method: str, **params: Any) -> Any:
    """Ask the client; a request that comes meanwhile is a cancellation."""
    global count
    count += 1
    send(id=f"mine-{count}", method=method, params=params)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"mine-{count}" and "method" not in message:
            if "error" in message:
                return message["error"]
            return message["result"]
    return sys.exit()


def tell(session: str, update: str, /, **values: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": update, **values}})


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def in_terminal(session: str, call: str, command: str) -> None:
    option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
    no = {"optionId": "no", "name": "No", "kind": "reject_once"}
    granted = ask("session/request_permission", sessionId=session, toolCall={"toolCallId": call}, options=[no, option])
    assert granted == {"outcome": {"outcome": "selected", "optionId": "yes"}}, granted
    terminal = ask("terminal/create", sessionId=session, command="bash", args=["-c", command])["terminalId"]
    ask("terminal/wait_for_exit", sessionId=session, terminalId=terminal)
    shown = ask("terminal/output", sessionId=session, terminalId=terminal)
    ask("terminal/release", sessionId=session, terminalId=terminal)
    failed = shown["exitStatus"]["exitCode"] != 0
    content = [{"type": "terminal", "terminalId": terminal}]
    tell(session, "tool_call_update", toolCallId=call, status="failed" if failed else "completed", content=content)


def follow(session: str, memory: dict[str, Any], word: str, rest: str) -> str:
    """Do what a line says, and return the reason to stop, if it is one."""
    global count
    count += 1
    call = f"call-{count}"
    if word == "run":
        tell(session, "agent_message_chunk", content=text("I "))
        tell(session, "agent_message_chunk", content=text("run it."))
        tell(session, "tool_call", toolCallId=call, title=f"`{rest}`", kind="execute", status="pending")
        tell(session, "tool_call_update", toolCallId=call, rawInput={"command": rest}, status="in_progress")
        in_terminal(session, call, rest)
    elif word in ("write", "read"):
        path, _, written = rest.partition(" ")
        path = os.path.abspath(path)
        tell(session, "tool_call", toolCallId=call, title=word, kind=word, rawInput={"path": path}, status="pending")
        if word == "write":
            ask("fs/write_text_file", sessionId=session, path=path, content=f"{written}\n")
            found: Any = {"type": "diff", "path": path, "newText": written}
        else:
            answer = ask("fs/read_text_file", sessionId=session, path=path, line=1, limit=1)
            found = {"type": "content", "content": text(json.dumps(answer))}
        tell(session, "tool_call_update", toolCallId=call, status="completed", content=[found])
    elif word == "plan":
        entry = {"content": rest, "priority": "high", "status": "pending"}
        tell(session, "plan", entries=[entry])
    elif word == "remember":
        memory["word"] = rest
    elif word == "recall":
        with open(rest, "w") as file:
            print(memory.get("word", "forgotten"), file=file)
    elif word == "say":
        tell(session, "agent_thought_chunk", content=text("Hm."))
        tell(session, "agent_message_chunk", content=text(rest))
    elif word == "model":
        body = {"model": "gpt-5.2", "messages": [{"role": "user", "content": rest}]}
        headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).read()
        tell(session, "agent_message_chunk", content=text(rest))
    elif word == "die":
        sys.exit("I was told to end.")
    elif word == "sleep":
        time.sleep(600)
    return rest if word == "stop" else ""


def prompt(session: str, request: str) -> dict[str, Any]:
    memory = sessions[session]
    reason = "end_turn"
    for line in request.splitlines():
        word, _, rest = line.partition(": ")
        reason = follow(session, memory, word.strip(), rest) or reason
    memory["cost"] = memory.get("cost", 0.0) + 0.25
    if LOADS:
        os.makedirs(HOME, exist_ok=True)
        with open(f"{HOME}/{session}", "w") as file:
            json.dump(memory, file)
    cost = {"amount": memory["cost"], "currency": "USD"}
    tell(session, "usage_update", used=100, size=1000, cost=cost)
    usage = {"totalTokens": 130, "inputTokens": 80, "outputTokens": 20, "cachedReadTokens": 30}
    return {"stopReason": reason, "usage": usage}


def answer(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        about = {"name": "tiny", "version": "1.2"}
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": LOADS}, "agentInfo": about}
    if method == "session/new":
        session = str(uuid.uuid4())
        sessions[session] = {"servers": params["mcpServers"]}
        return {"sessionId": session}
    if method == "session/load":
        with open(f"{HOME}/{params['sessionId']}") as file:
            sessions[params["sessionId"]] = json.load(file)
        tell(params["sessionId"], "agent_message_chunk", content=text("What I said before."))
        return None
    if method == "session/prompt":
        return prompt(params["sessionId"], params["prompt"][0]["text"])
    raise LookupError(method)


def main() -> None:
    print("Not a message.", flush=True)
    while line := sys.stdin.readline():
        message = json.loads(line)
        if "id" not in message:
            continue
        try:
            send(id=message["id"], result=answer(message["method"], message["params"]))
        except LookupError as error:
            send(id=message["id"], error={"code": -32601, "message": f"there is no {error}"})


if __name__ == "__main__":
    main()
