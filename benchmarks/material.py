"""Tasks and sessions to time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ENVIRONMENTS = ("docker", "sandbox")
#: The agent that takes so many seconds for a turn, and notes when its first turn began.
AGENT = """
import os, pathlib, time
from pytest_evocode.agents import RoundTranscript

class Sleeper:
    name = "sleeper"

    def run_round(self, context):
        first = pathlib.Path(__file__).parent / "first-turn"
        if not first.exists():
            first.write_text(repr(time.time()))
        time.sleep(float(os.environ.get("TURN", "0")))
        return RoundTranscript()

def pytest_evocode_make_agent(name):
    return Sleeper() if name == "sleeper" else None
"""


def write_task(directory: Path, rounds: int, *, suite: str = "") -> None:
    """A task whose round i wants line i in a file; ``suite`` is what its test.sh does before it looks."""
    toml = ['schema_version = "1.4"', "[environment]", 'network_mode = "no-network"']
    (directory / "environment").mkdir(parents=True)
    (directory / "environment" / "Dockerfile").write_text("FROM python:3.11-slim-bookworm\nWORKDIR /app\n")
    for index in range(1, rounds + 1):
        toml += ["[[steps]]", f'name = "round-{index}"']
        step = directory / "steps" / f"round-{index}"
        for name in ("solution", "tests"):
            (step / name).mkdir(parents=True)
        (step / "instruction.md").write_text(f"Add the line {index} to lines.txt.\n")
        (step / "solution" / "solve.sh").write_text(f"echo {index} >> lines.txt\n")
        (step / "tests" / "test.sh").write_text(
            f"{suite}\n"
            f"if grep -qsx {index} lines.txt; then r=1; s=success; else r=0; s=fail; fi\n"
            f"echo CASE_RESULT case_id=line-{index} origin_step=round-{index} status=$s\n"
            "echo $r > /logs/verifier/reward.txt\n"
        )
    (directory / "task.toml").write_text("\n".join(toml) + "\n")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory with the agent, on the disk that is used in earnest."""
    with tempfile.TemporaryDirectory(prefix="evocode-benchmark-") as directory:
        Path(directory, "conftest.py").write_text(AGENT)
        Path(directory, "pytest.ini").write_text("[pytest]\n")
        yield Path(directory)


def available(environment: str) -> bool:
    """Whether attempts can be made there, now."""
    from pytest_evocode.environments import choose_engine
    from pytest_evocode.errors import EvocodeError

    try:
        choose_engine(environment)[0].close()
    except EvocodeError as error:
        print(f"{environment} is not measured: {error}")
        return False
    return True


def working_cores(seconds: float = 1.0) -> float:
    """How many cores work while we do nothing for so long."""
    before = processor_seconds()
    time.sleep(seconds)
    return (processor_seconds() - before) / seconds


def processor_seconds() -> float:
    """The seconds that all cores have worked since the machine was started."""
    user, nice, system, _, _, interrupts, soft, steal = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, interrupts, soft, steal))) / os.sysconf("SC_CLK_TCK")


def run_pytest(
    directory: Path, *arguments: str, env: Mapping[str, str] = {}, statuses: tuple[int, ...] = (0,)
) -> float:
    """Seconds of a whole session, from process start to process end; raises RuntimeError for another exit status."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    # With that variable every run would compile every module again, which users of an installed package never see.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, env={**inherited, **env}, check=False)
    seconds = time.perf_counter() - started
    if done.returncode not in statuses:
        raise RuntimeError(
            f"pytest ended with exit code {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return seconds
