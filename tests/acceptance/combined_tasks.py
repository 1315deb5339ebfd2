"""Tasks of Harbor's that combine what its format has: every two values of two dimensions are in one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

#: What tasks differ in; more values go here and into :func:`write`.
DIMENSIONS: Mapping[str, Sequence[str]] = {
    "verifier": ("shared", "separate"),
    "network": ("no-network", "allowlist"),
    "steps": ("none", "two"),
    "rewards": ("text", "several"),
    "user": ("root", "nobody"),
    "cases": ("none", "declared", "found"),
    "extras": ("plain", "healthcheck", "collect"),
    "services": ("alone", "image", "build"),
}
Combination = Mapping[str, str]
#: A service that keeps each line which it is told, and answers with all of them.
_STORE = """\
import pathlib, socketserver
kept = pathlib.Path("/var/lib/kept/lines")
kept.parent.mkdir(exist_ok=True)
kept.touch()
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        with kept.open("ab") as lines:
            lines.write(self.rfile.read())
        self.wfile.write(kept.read_bytes())
socketserver.TCPServer(("", 5000), Handler).serve_forever()
"""
_ASK = """\
#!/usr/bin/env python3
import socket, sys
with socket.create_connection(("store", 5000), 20) as asked:
    asked.sendall("".join(each + "\\n" for each in sys.argv[1:]).encode())
    asked.shutdown(socket.SHUT_WR)
    print(asked.makefile().read(), end="")
"""
_COMPOSE = """\
services:
  main:
    depends_on: {store: {condition: service_healthy}}
  store:
    %s
    command: [python3, /store.py]
    volumes: [%s]
    healthcheck:
      test: [CMD, python3, -c, "import socket; socket.create_connection(('localhost', 5000))"]
      interval: 1s
"""
_CTRF = '{"results": {"tests": [{"name": "lines", "status": "%s"}]}}'


def pairwise() -> list[Combination]:
    """Few combinations that have every two values of two dimensions, the same at every call."""
    every = [dict(zip(DIMENSIONS, values, strict=True)) for values in product(*DIMENSIONS.values())]
    left = {pair for each in every for pair in _pairs(each)}
    found: list[Combination] = []
    while left:
        best = max(every, key=lambda each: len(left.intersection(_pairs(each))))
        found.append(best)
        left -= set(_pairs(best))
    return found


def _pairs(combination: Combination) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    yield from combinations(combination.items(), 2)


def name_of(combination: Combination) -> str:
    """The task's name, from its values."""
    return "-".join(combination.values())


def write(root: Path, combination: Combination) -> Path:
    """Write the task, of which the reference solution passes all rounds and nothing else passes any."""
    task = root / name_of(combination)
    names = ["step one", "step two"] if combination["steps"] == "two" else [""]
    files = {
        "task.toml": _toml(combination, names),
        "environment/Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\nRUN chmod 777 /app\n",
    }
    if has_services(combination):
        files |= _services(combination)
    for index, name in enumerate(names, 1):
        place = f"steps/{name}/" if name else ""
        files[f"{place}instruction.md"] = f"Write line {index}."
        files[f"{place}solution/solve.sh"] = _solution(combination, index)
        files[f"{place}tests/test.sh"] = _suite(combination, index)
    for path, text in files.items():
        (task / path).parent.mkdir(parents=True, exist_ok=True)
        (task / path).write_text(text + "\n")
    return task


def has_services(combination: Combination) -> bool:
    """Whether the task has a compose file."""
    return combination["services"] != "alone"


def _services(combination: Combination) -> dict[str, str]:
    """A compose file with a service from an image and with a volume, or one that is built and has none."""
    built = combination["services"] == "build"
    base = "FROM python:3.11-slim-bookworm"
    volumes = "" if built else '"./store/store.py:/store.py:ro", "/var/lib/kept"'
    made_from = "build: ./store" if built else "image: python:3.11-slim-bookworm"
    return {
        "environment/Dockerfile": f"{base}\nCOPY ask /usr/local/bin/\n"
        "WORKDIR /app\nRUN chmod 777 /app && chmod 755 /usr/local/bin/ask\n",
        "environment/ask": _ASK,
        "environment/docker-compose.yaml": _COMPOSE % (made_from, volumes),
        "environment/store/Dockerfile": f"{base}\nCOPY store.py /\n",
        "environment/store/store.py": _STORE,
    }


def _solution(combination: Combination, index: int) -> str:
    if has_services(combination):
        return f"ask 'line {index}' > /app/log.txt"
    return f"echo line {index} >> /app/log.txt"


def _toml(combination: Combination, names: Sequence[str]) -> str:
    extras = combination["extras"]
    artifacts = '"/app/log.txt"'
    if extras == "collect" and has_services(combination):
        artifacts += ', { source = "/dump", service = "store" }'
    lines = [f"artifacts = [{artifacts}]", "[environment]", f'network_mode = "{combination["network"]}"']
    if combination["network"] == "allowlist":
        lines.append('allowed_hosts = ["example.org"]')
    if extras == "healthcheck":
        command = "ask" if has_services(combination) else "test -d /app"
        lines += ["[environment.healthcheck]", f'command = "{command}"', "interval_sec = 0.1"]
    lines += ["[verifier]", f'environment_mode = "{combination["verifier"]}"', f'user = "{combination["user"]}"']
    if extras == "collect":
        lines += ["[[verifier.collect]]", 'command = "echo collected > /logs/artifacts/collected"']
        if has_services(combination):
            lines += ["[[verifier.collect]]", 'command = "cp /var/lib/kept/lines /dump"', 'service = "store"']
    lines.append("[metadata.evocode]")
    if combination["cases"] == "declared":
        lines.append('case_reports = ["/tmp/cases.json"]')
    if combination["rewards"] == "several":
        lines.append('reward_key = "tests"')
    for name in filter(None, names):
        lines += ["[[steps]]", f'name = "{name}"', "min_reward = 0.0"]
    return "\n".join(lines)


def _suite(combination: Combination, index: int) -> str:
    expected = "".join(f"line {each}\\n" for each in range(1, index + 1))
    lines = [f"printf '{expected}' | cmp -s - /app/log.txt && good=1 word=passed || good=0 word=failed"]
    if has_services(combination):
        # Separate verifiers have the services as they were built.
        kept = "" if combination["verifier"] == "separate" else expected
        lines.append(f"""[ "$(ask; echo .)" = "$(printf '{kept}.')" ] || {{ good=0; word="failed"; }}""")
    if combination["extras"] == "collect":
        lines.append('grep -qx collected /logs/artifacts/collected || { good=0; word="failed"; }')
    if combination["cases"] != "none":
        path = "/tmp/cases.json" if combination["cases"] == "declared" else "/logs/verifier/of-any-name.json"
        lines.append(f"printf '{_CTRF}' $word > {path}")
    if combination["rewards"] == "several":
        lines.append("""printf '{"tests": %s, "style": 0.5}' $good > /logs/verifier/reward.json""")
    else:
        lines.append("echo $good > /logs/verifier/reward.txt")
    return "\n".join(lines)
