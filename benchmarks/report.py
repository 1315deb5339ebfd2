"""The HTML report: how long it takes to write, and how it does in a browser, from disk.

Written are results of 227 rounds by 13 agents (the published size of EvoCode-Bench), of 10,000 rounds by 3 agents, and
a trajectory of 50 MB; 100 cases a round. "again" writes after one attempt changed. The browser is Chromium without a
window: "interactive" is from the start of the navigation until the leaderboard has its rows and a click would be
handled; the trajectory is scrolled through from top to bottom, and searched for a word that is near its end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.material import scratch
from benchmarks.report_material import write_results, write_trajectory
from benchmarks.tables import Table

_TRAJECTORY = 50_000_000  # bytes
_SIZES = {
    "227 rounds x 13 agents": (13, [9] * 19 + [8] * 7),
    "10,000 rounds x 3 agents": (3, [10] * 1000),
    "trajectory of 50 MB": (1, [2]),
}
_WRITING = {"10,000 rounds x 3 agents": (20.0, 1000.0)}
_INTERACTIVE = {"227 rounds x 13 agents": 1.0, "10,000 rounds x 3 agents": 2.0}
_LONG_TASKS = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
}).observe({type: "longtask", buffered: true});
"""
_ROWS = "main table tbody tr:not([aria-hidden])"
#: Notes when there are rows and the next task is handled. Not by Playwright's waiting for an expression, which the
#: page's policy does not allow.
_READY = f"""
(function look() {{
  if (document.querySelector("{_ROWS}")) setTimeout(() => (window.readyAt = performance.now()));
  else requestAnimationFrame(look);
}})();
"""
#: Scrolls a fixed part of the page at each frame for some seconds.
_SCROLL = """
(seconds) => new Promise((resolve) => {
  const inner = [...document.querySelectorAll("main *")].find((each) => each.scrollHeight > each.clientHeight * 20);
  const view = inner || document.scrollingElement;
  const begin = performance.now();
  let frames = 0;
  function frame(now) {
    frames++;
    const part = (now - begin) / 1000 / seconds;
    if (part >= 1) return resolve(frames / seconds);
    view.scrollTop = part * (view.scrollHeight - view.clientHeight);
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);
})
"""


def measure(runs: int) -> Table:
    """Seconds, megabytes, frames per second and milliseconds."""
    columns = ("write, s", "again, s", "memory, MB", "interactive, s", "frames/s", "longest task, ms", "search, s")
    table = Table("an HTML report", "units by column", columns)
    with scratch() as directory:
        for name, (agents, rounds) in _SIZES.items():
            place = directory / str(len(table.rows))
            results = place / "evocode-results"
            write_results(results, agents, rounds)
            if "trajectory" in name:
                write_trajectory(results, _TRAJECTORY)
            _measure_writing(table, name, place, runs)
        _measure_browser(table, directory, runs)
    return table


def _measure_writing(table: Table, name: str, place: Path, runs: int) -> None:
    first, again = [], []
    for _ in range(runs):
        shutil.rmtree(place / "evocode-report", ignore_errors=True)
        first.append(_write(place))
        touched = next(place.glob("evocode-results/task-0000/*/*/*/*/steps/round-1/round.json"))
        os.utime(touched)
        again.append(_write(place))
    seconds, memory = _WRITING.get(name, (None, None))
    table.add(name, "write, s", [each for each, _ in first], target=seconds)
    table.add(name, "again, s", [each for each, _ in again])
    table.add(name, "memory, MB", [each for _, each in first], target=memory)


def _write(place: Path) -> tuple[float, float]:
    argv = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "report"]
    started = time.perf_counter()
    process = subprocess.Popen(argv, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode or not (place / "evocode-report" / "index.html").is_file():
        raise RuntimeError(f"evocode report ended with exit code {process.returncode}")
    return seconds, usage.ru_maxrss / 1024


def _measure_browser(table: Table, directory: Path, runs: int) -> None:
    """Measure in Chromium; nothing where there is none."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        executable = None
    if executable is None:
        print("the browser is not measured: it takes playwright, and chromium in the PATH")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for number, name in enumerate(_SIZES):
            report = directory / str(number) / "evocode-report"
            page = (report / "index.html").as_uri()
            if name in _INTERACTIVE:
                seconds = [_interactive(browser, page) for _ in range(runs)]
                table.add(name, "interactive, s", seconds, target=_INTERACTIVE[name])
            else:
                (attempt,) = (report / "data" / "attempts").iterdir()
                _measure_trajectory(table, name, browser, page, attempt.stem, runs)
        browser.close()


def _interactive(browser: Any, url: str) -> float:
    page = browser.new_page()
    page.add_init_script(_READY)
    page.goto(url)
    page.wait_for_selector(_ROWS, timeout=60_000)
    while (found := page.evaluate("window.readyAt")) is None:
        time.sleep(0.05)
    page.close()
    return float(found) / 1000


def _measure_trajectory(table: Table, name: str, browser: Any, url: str, attempt: str, runs: int) -> None:
    frames, longest, searches = [], [], []
    for _ in range(runs):
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(f"{url}#/trajectory/{attempt}/1")
        page.wait_for_selector("main .step:not(.pending)", timeout=60_000)
        page.evaluate(_LONG_TASKS)
        frames.append(page.evaluate(_SCROLL, 10))
        begun = time.perf_counter()
        page.fill("main input[type=search]", "NEEDLE")
        page.keyboard.press("Enter")
        page.wait_for_selector("main mark:has-text('NEEDLE')", timeout=60_000)
        searches.append(time.perf_counter() - begun)
        longest.append(page.evaluate("new Promise((done) => setTimeout(() => done(window.longest), 300))"))
        page.close()
    table.add(name, "frames/s", frames)
    table.add(name, "longest task, ms", longest, target=200)
    table.add(name, "search, s", searches)
