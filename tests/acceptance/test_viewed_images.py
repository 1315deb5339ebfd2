"""Images that a model looks at: in its requests, in the conversation of later rounds, in the trajectory."""

from __future__ import annotations

import base64
import json
import struct
import zlib

import pytest

from tests import atif
from tests.acceptance.models import at, in_rounds, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Run, Use
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

SEES = "--evocode-agent-option=view_image=true"
LOOK = Use("view_image", {"path": "dot.png"})


def png() -> bytes:
    """A red dot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


DATA = base64.b64encode(png()).decode()
DRAW = Run(f"echo line-1 >> log.txt; echo {DATA} | base64 -d > dot.png")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-tests")


@pytest.mark.parametrize(
    ("spec", "api", "shown"),
    [
        ("openai/gpt-5", "chat", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}),
        ("openai/gpt-5", "responses", {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"}),
        (
            "anthropic/claude-opus-4-5",
            "",
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        ),
    ],
)
@pytest.mark.matrix
def test_a_model_sees_an_image_in_this_round_and_the_next(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, api: str, shown: object
) -> None:
    write_task("a", 2)
    options = [SEES, *([f"--evocode-agent-option=api={api}"] if api else [])]
    with ModelServer(in_rounds([DRAW, LOOK], [Run("echo line-2 >> log.txt")])) as server:
        session = run_tasks(*at(server, spec), *options, "tasks", agent=None)
        bodies = [json.dumps(asked.body) for asked in server.asked]
        told = server.asked[2].last_result.strip()
    assert session.outcomes == {"passed": 2}
    assert told.startswith("[dot.png: image/png, ")
    assert [json.dumps(shown) in body.replace(', "cache_control": {"type": "ephemeral"}', "") for body in bodies] == [
        False,
        False,
        *[True] * 3,
    ]
    agent = spec.partition("/")[2]
    (step,) = [
        step
        for step in steps_of(session, "round-1", agent)
        for call in step.get("tool_calls", ())
        if call["function_name"] == "view_image"
    ]
    text, image = step["observation"]["results"][0]["content"]
    assert text == {"type": "text", "text": told}
    assert image["source"]["media_type"] == "image/png"
    directory = session.attempt("a", agent) / "steps/round-1/agent"
    assert (directory / image["source"]["path"]).read_bytes() == png()
    assert atif.violations(json.loads((directory / "trajectory.json").read_text())) == []


def test_what_is_no_image_or_too_large_is_told_and_not_shown(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    make = Run("echo line-1 >> log.txt; echo text > a.png; head -c 4000000 /dev/zero > b.png")
    looks = [Use("view_image", {"path": name}) for name in ("a.png", "b.png", "c.png")]
    with ModelServer(in_rounds([make, looks])) as server:
        session = run_tasks(*at(server, "openai/gpt-5"), SEES, "tasks", agent=None)
        told = [*server.asked[2].results.values()][1:]
    assert session.outcomes == {"passed": 1}
    assert told[0] == "[a.png is no PNG, JPEG, GIF or WebP image]"
    assert "4000000" in told[1] or "3750000" in told[1]
    assert told[2] == "[c.png: there is no such file]"


@pytest.mark.nightly
def test_without_the_option_there_is_no_such_tool(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    with ModelServer(in_rounds([DRAW, LOOK])) as server:
        run_tasks(*at(server, "openai/gpt-5"), "tasks", agent=None)
        assert set(server.asked[0].tools) == {"bash"}
        assert server.asked[2].last_result == "There is no tool 'view_image'; the only one is 'bash'."
