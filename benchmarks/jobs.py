"""What an attempt costs beside others in one process: ``--evocode-jobs`` with as many as there are.

Each attempt asks a server on this machine six times, which takes a second for each answer, runs a command after three
of these, and has three suites of no work: six seconds at least. The memory is the most that was resident of pytest's
own process; an attempt's is the difference to a session with a single one, by the other attempts. Processes of
environments are not counted.
"""

from __future__ import annotations

import statistics

from benchmarks.material import run_pytest, scratch, write_task
from benchmarks.tables import Table
from tests.acceptance.models import in_rounds
from tests.model_scripts import Asked, Delay, Part, Run, Say
from tests.model_server import ModelServer

ATTEMPTS, ROUNDS, LATENCY = (1, 8, 32, 128), 3, 1.0
TARGET = 5.0
"""Megabytes of an attempt."""
_WATCH = """
import atexit, pathlib
@atexit.register
def write():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    peak = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
    (pathlib.Path(__file__).parent / "peak").write_text(peak)
"""


def measure(runs: int) -> Table:
    """Seconds and megabytes."""
    table = Table("attempts at once in one process", "s or MB", ("time", "memory", "of each attempt"), digits=1)
    play = in_rounds(*([Run(f"echo {index} >> lines.txt")] for index in range(1, ROUNDS + 1)))

    def script(asked: Asked) -> list[Part]:
        step = play(asked)
        assert isinstance(step, Run | Say)
        return [Delay(LATENCY), step]

    alone = 0.0
    with scratch() as directory, ModelServer(script) as server:
        with (directory / "conftest.py").open("a") as file:
            file.write(_WATCH)
        write_task(directory / "task", ROUNDS)
        options = ["--evocode-agent=openai/gpt-5.2", f"--evocode-agent-option=base_url={server.url}/v1"]
        options += ["--evocode-env=sandbox", "-o", "evocode_verifiers=8", "task"]
        for attempts in ATTEMPTS:
            seconds, peaks = [], []
            for _ in range(max(1, runs // 2)):
                number = [f"--evocode-attempts={attempts}", f"--evocode-jobs={attempts}"]
                seconds.append(run_pytest(directory, *options, *number, env={"OPENAI_API_KEY": "of-the-benchmark"}))
                peaks.append(int((directory / "peak").read_text()) / 1024)
            row = f"{attempts} attempts"
            table.add(row, "time", seconds)
            table.add(row, "memory", peaks)
            if attempts == 1:
                alone = statistics.median(peaks)
            else:
                table.add(row, "of each attempt", [(peak - alone) / (attempts - 1) for peak in peaks], TARGET)
    return table
