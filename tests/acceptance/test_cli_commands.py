"""The commands of docs/clis.md: what they name is accepted, and by night the real programs are run with them.

A program comes from its registry into a container, and asks a server on this machine that answers as its provider does.
"""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents.declarations import read_declarations
from pytest_evocode.agents.specs import make_agent, options_of
from pytest_evocode.llm.budget import Budget
from tests.acceptance.command_pages import CLIS, ROOT, blocks, rows
from tests.model_scripts import Asked, Run, Say, Step, has_shell
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

KEY = "a-key-of-the-tests"
WORD = "heliotrope"
BLOCKS = blocks(CLIS)
#: Sections of programs that cannot be run here; their rows say so.
NOT_RUN = {"Cursor CLI"}
#: What comes after a server's address in the option base_url, for the CLIs that have it.
BASE_URLS = {"Claude Code": "", "Codex": "/v1", "Gemini CLI": "", "OpenCode": "/v1"}
#: Certificates as this machine has them, for where its registries are reached by way of a proxy with its own. A Python
#: that Debian has made lacks what makes virtual environments.
IMAGE = """\
FROM {base}
COPY certificates.pem /etc/ssl/certs/ca-certificates.crt
WORKDIR /app
RUN useradd --create-home worker && chown worker /app
RUN python3 -c "import ensurepip" || {{ apt-get -qq update && apt-get -qq --yes install python3-venv; }}
"""
API = 'api = "openai"'
BASE, BASES = "python:3.11-slim-bookworm", {"OpenHands": "python:3.12-slim-bookworm"}
REQUESTS = (f"The word is {WORD}. Write hello to hello.txt.\n", "Write the word to word.txt.\n")
CHECKS = ("grep -qx hello hello.txt", f"grep -qx hello hello.txt && grep -qx {WORD} word.txt")


def test_every_command_of_the_page_is_run_by_night_or_says_that_it_was_not() -> None:
    tried = {heading for heading, cells in rows(CLIS).items() if not cells[2].startswith("not tried")}
    assert set(BLOCKS) == set(rows(CLIS))
    assert tried == set(BLOCKS) - NOT_RUN


def test_every_cli_with_a_name_of_its_own_is_on_the_page() -> None:
    from pytest_evocode.agents.specs import _INSTALLED

    assert {block.spec.partition(":")[0] for block in BLOCKS.values()} >= set(_INSTALLED)


@pytest.mark.parametrize("heading", BLOCKS)
def test_what_the_command_of_the_page_names_is_accepted(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = BLOCKS[heading]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(block.extras) <= set(extras)
    environ = {name: KEY if value == "..." else value for name, value in block.variables.items()}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "pyproject.toml"
    file.write_text(block.toml)
    declarations = read_declarations([file])
    spec, options = block.spec, block.options
    if (declared := declarations.agents.get(spec)) is not None:
        spec, options = declared.values["spec"], options_of(declared) | options
    agent: Any = make_agent(spec, options, declarations)
    agent.check(environ, Budget())


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("heading", [heading for heading in BLOCKS if heading not in NOT_RUN])
def test_the_real_program_keeps_its_conversation_by_the_command_of_the_page(
    heading: str,
    run_tasks: RunTasks,
    write_task: WriteTask,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block, base = BLOCKS[heading], BASES.get(heading, BASE)
    if base != BASE and not has_image(base):
        pytest.skip(f"there is no image {base}; docker pull {base}")
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    files = {f"steps/round-{number}/instruction.md": text for number, text in enumerate(REQUESTS, 1)}
    files["environment/certificates.pem"] = Path(bundle).read_text()
    tests = {n: f"{check}; echo $((1 - $?)) > /logs/verifier/reward.txt" for n, check in enumerate(CHECKS, 1)}
    toml = '[environment]\nnetwork_mode = "no-network"\n[agent]\nuser = "worker"\ntimeout_sec = 300\n'
    write_task("a", 2, toml=toml, dockerfile=IMAGE.format(base=base), files=files, test=tests)
    for name, value in block.variables.items():
        monkeypatch.setenv(name, KEY if value == "..." else value)
    with ModelServer(SCRIPTS.get(heading, solve), key=KEY) as server:
        pytester.makepyprojecttoml(block.toml.replace(API, f'{API}\nbase_url = "{server.url}/v1"'))
        arguments = block.arguments
        if heading in BASE_URLS:
            arguments = [*arguments, f"--evocode-agent-option=base_url={server.url}{BASE_URLS[heading]}"]
        session = run_tasks(*arguments, agent=None, env="docker")
    assert session.outcomes == {"passed": 2}, session.text
    [agent] = [path.name for path in (session.results / "a" / "harbor_jobs").iterdir()]
    used = [record.usage for record in session.record("a", agent).rounds]
    counted = sum(tokens.prompt + tokens.completion for tokens in server.counted)
    assert sum(usage.tokens or 0 for usage in used if usage is not None) == counted > 0
    assert not [path for path in session.results.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def has_image(name: str) -> bool:
    """Whether the engine has an image."""
    from pytest_evocode.environments.docker.engine import connect

    client = connect()
    try:
        return bool(client.images(name))
    finally:
        client.close()


def solve(asked: Asked) -> Step:
    """What a model does that remembers round 1 only if it is told again what was said there."""
    if not has_shell(asked):  # A title for the conversation, or the like.
        return Say("A title.")
    commands = ["echo hello > hello.txt"]
    if any(REQUESTS[1].strip() in text for text in asked.said):
        commands.append(f"echo {remembered(asked)} > word.txt")
    done = len(asked.results)
    return [Say("I write it."), Run(commands[done])] if done < len(commands) else Say("Done.")


def remembered(asked: Asked) -> str:
    return WORD if any(WORD in text for text in asked.said) else "forgotten"


def edit(asked: Asked) -> Step:
    """The same for aider, which takes edits out of the text."""
    second = any(REQUESTS[1].strip() in text for text in asked.said)
    name, text = ("word.txt", remembered(asked)) if second else ("hello.txt", "hello")
    return Say(f"I write it.\n\n{name}\n```\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n```\n")


def solve_and_submit(asked: Asked) -> Step:
    """The same for mini-swe-agent, which ends by a command."""
    second = any(REQUESTS[1].strip() in text for text in asked.said)
    command = f"echo {remembered(asked)} > word.txt" if second else "echo hello > hello.txt"
    return Run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" if asked.results else command)


SCRIPTS: dict[str, Callable[[Asked], Step]] = {"aider": edit, "mini-swe-agent": solve_and_submit}
