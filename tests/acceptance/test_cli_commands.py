"""The commands of docs/clis.md: what they name is accepted, and by night the real programs are run with them.

A program comes from its registry into a container, and asks a server on this machine that answers as its provider does.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents.declarations import read_declarations
from pytest_evocode.agents.installed.base import InstalledAgent
from pytest_evocode.agents.installed.npm_program import latest_version
from pytest_evocode.agents.specs import FORMS, make_agent, options_of
from pytest_evocode.agents.tried import agent_kinds
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.records import total_usage
from tests.acceptance.command_pages import CLIS, ROOT, blocks
from tests.model_scripts import Asked, Run, Say, has_shell
from tests.providers.exchanges import Step
from tests.providers.server import KEY, ProviderServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

WORD = "heliotrope"
BLOCKS = blocks(CLIS)
KINDS = {kind.program: kind for kind in agent_kinds() if kind.program}
APIS = {"messages": "Messages", "chat": "Chat Completions", "responses": "Responses", "gemini": "generateContent"}
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
#: Its library is found by the loader, and not by a link, which virtual environments would take for their home.
WITH_PYTHON = """\
COPY python /opt/python
RUN echo /opt/python/lib >/etc/ld.so.conf.d/python.conf && ldconfig
RUN rm -f /usr/local/bin/python3
RUN printf '#!/bin/sh\\nexec /opt/python/bin/python3 "$@"\\n' >/usr/local/bin/python3
RUN chmod 755 /usr/local/bin/python3
"""
API = 'api = "openai"'
PINS = {"npm": "@", "PyPI": "=="}
#: A file that gets a line for each program whose newest version has passed, in place of the one that was tried.
NEWEST = os.environ.get("EVOCODE_NEWEST_CLIS")
#: Programs of which newer versions fail; their rows say so.
HELD = {"Gemini CLI"}
PLAYED = [
    pytest.param(heading, marks=pytest.mark.xfail(strict=False) if NEWEST and heading in HELD else ())
    for heading in BLOCKS
    if KINDS[heading].rounds
]
BASE, BASES = "python:3.11-slim-bookworm", {"OpenHands": "python:3.12-slim-bookworm"}
REQUESTS = (
    f"The word is {WORD}. Write hello to hello.txt.\n",
    "Write the word to word.txt.\n",
    "Write the word to again.txt, too.\n",
)
#: What the rounds write; by the third one, only a conversation that still has the first one knows the word.
FILES = {"hello.txt": "hello", "word.txt": WORD, "again.txt": WORD}
#: US dollars for a million tokens.
RATES = {"input": 3.0, "cached_input": 0.3, "cache_write": 3.75, "output": 15.0}
#: What programs ask for, beside the model that they are told to.
MODELS = ("gpt-5.2", "gpt-4.1", "gpt-5.2-codex", "claude-sonnet-4-5", "gemini-2.5-pro")


def test_every_agent_that_can_be_named_is_told_of() -> None:
    assert set(FORMS) <= {kind.agent for kind in agent_kinds()}


def test_every_program_has_a_section_with_its_command() -> None:
    assert {program: kind.agent.partition(":")[0] for program, kind in KINDS.items() if kind.agent} == {
        heading: block.spec.partition(":")[0] for heading, block in BLOCKS.items()
    }


@pytest.mark.parametrize("heading", [heading for heading in BLOCKS if KINDS[heading].rounds])
def test_what_a_section_installs_is_the_version_that_was_tried(heading: str) -> None:
    kind, block = KINDS[heading], BLOCKS[heading]
    registry, _, package = kind.package.partition(":")
    if block.toml:
        assert f"{package}{PINS[registry]}{kind.version}" in block.toml
    else:
        made = make_agent(block.spec)
        assert isinstance(made, InstalledAgent)
        assert (made.npm.package, made.version) == (package, kind.version)


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
@pytest.mark.parametrize("heading", PLAYED)
def test_the_real_program_keeps_its_conversation_and_costs_what_the_server_says(
    heading: str,
    run_tasks: RunTasks,
    write_task: WriteTask,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block, kind = BLOCKS[heading], KINDS[heading]
    version = newest_version(kind.package) if NEWEST else kind.version
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    files = {f"steps/round-{number}/instruction.md": text for number, text in enumerate(REQUESTS, 1)}
    files["environment/certificates.pem"] = Path(bundle).read_text()
    checks = [f"grep -qx {text} {name}" for name, text in FILES.items()]
    tests = {n: f"{' && '.join(checks[:n])}; echo $((1 - $?)) > /logs/verifier/reward.txt" for n in (1, 2, 3)}
    toml = '[environment]\nnetwork_mode = "no-network"\n[agent]\nuser = "worker"\ntimeout_sec = 300\n'
    image = BASES.get(heading, BASE)
    copied = image != BASE and not has_image(image)
    dockerfile = f"{IMAGE.format(base=BASE)}{WITH_PYTHON}" if copied else IMAGE.format(base=image)
    task = write_task("a", 3, toml=toml, dockerfile=dockerfile, files=files, test=tests)
    if copied:
        copy_python("3.12", task / "environment" / "python")
    for name, value in block.variables.items():
        monkeypatch.setenv(name, KEY if value == "..." else value)
    prices = pytester.path / "prices.json"
    prices.write_text(json.dumps({"models": dict.fromkeys(MODELS, RATES)}))
    with ProviderServer(SCRIPTS.get(heading, solve)) as server:
        reached = f'{API}\nbase_url = "{server.url}/v1"\nprices = "{prices}"'
        pytester.makepyprojecttoml(block.toml.replace(API, reached).replace(kind.version, version))
        arguments = block.arguments
        if heading in BASE_URLS:
            options = {"base_url": f"{server.url}{BASE_URLS[heading]}", "prices": prices, "version": version}
            arguments = [*arguments, *(f"--evocode-agent-option={name}={value}" for name, value in options.items())]
        session = run_tasks(*arguments, agent=None, env="docker")
    assert [exchange.refused for exchange in server.exchanges if exchange.refused] == []
    assert session.outcomes == {"passed": 3}, session.text
    [agent] = [path.name for path in (session.results / "a" / "harbor_jobs").iterdir()]
    usage, billed = total_usage(record.usage for record in session.record("a", agent).rounds), server.billed()
    assert {exchange.asked.model for exchange in server.exchanges} <= set(MODELS)
    assert {APIS[exchange.asked.api] for exchange in server.exchanges} == {kind.api}
    assert usage is not None
    told = (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens or 0, usage.completion_tokens)
    assert told == (billed.prompt, billed.cached, billed.written, billed.output)
    assert usage.cost_usd == pytest.approx(billed.cost(*RATES.values()), rel=1e-9)
    assert not usage.at_least
    for number, name in enumerate(FILES, 1):
        check_steps(session.attempt("a", agent) / f"steps/round-{number}/agent/trajectory.json", name)
    assert not [path for path in session.results.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    if NEWEST:
        with Path(NEWEST).open("a") as file:
            file.write(f"- {heading} {version} passes; {kind.version} is told in tried.toml\n")


def newest_version(package: str) -> str:
    """The newest version in a package's registry."""
    registry, _, name = package.partition(":")
    if registry == "npm":
        return latest_version(name) or pytest.fail(f"npm does not tell the newest version of {name}")
    # OpenHands needs Python 3.12, whatever runs this.
    asked = ["index", "versions", "--python-version=3.12", "--only-binary=:all:", name]
    told = subprocess.run([sys.executable, "-m", "pip", *asked], check=True, capture_output=True, text=True)
    return told.stdout.partition("(")[2].partition(")")[0]


def check_steps(path: Path, file: str) -> None:
    """A round's trajectory has what the model did for a file, in so many steps as it gave replies."""
    steps = [step for step in json.loads(path.read_text())["steps"] if step["source"] == "agent"]
    assert any(file in json.dumps(step) for step in steps), path.read_text()
    assert any(step.get("metrics", {}).get("completion_tokens") for step in steps), path.read_text()


def has_image(name: str) -> bool:
    """Whether the engine has an image."""
    from pytest_evocode.environments.docker.engine import connect

    client = connect()
    try:
        return bool(client.images(name))
    finally:
        client.close()


def copy_python(version: str, target: Path) -> None:
    """Copy a Python that pyenv has made on this machine, where no image with it can be had."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # The variable HOME is the test's.
    found = sorted(home.glob(f".pyenv/versions/{version}.*"))
    if not found:
        pytest.skip(f"there is neither an image with Python {version} nor one of pyenv's")
    left_out = shutil.ignore_patterns("test", "tests", "site-packages", "__pycache__", "*.a", "share", "include")
    shutil.copytree(found[-1], target, symlinks=True, ignore=left_out)


def next_file(asked: Asked) -> tuple[str, str]:
    """The file that is asked for last, and its contents as far as the conversation has them."""
    names = [name for name, request in zip(FILES, REQUESTS, strict=True) if request.strip() in "\n".join(asked.said)]
    return names[-1], remembered(asked) if len(names) > 1 else "hello"


def remembered(asked: Asked) -> str:
    """The word, where the conversation has round 1: what was asked there, and what the model said then."""
    return WORD if any(REQUESTS[0].strip() in text for text in asked.said) and asked.replies else "forgotten"


def solve(asked: Asked) -> Step:
    """What a model does that remembers round 1 only if it is told again what was said there."""
    if not has_shell(asked):  # A title for the conversation, or the like.
        return Say("A title.")
    name, text = next_file(asked)
    done = len(asked.results) > [*FILES].index(name)
    return Say("Done.") if done else [Say("I write it."), Run(f"echo {text} > {name}")]


def edit(asked: Asked) -> Step:
    """The same for aider, which takes edits out of the text."""
    name, text = next_file(asked)
    return Say(f"I write it.\n\n{name}\n```\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n```\n")


def solve_and_submit(asked: Asked) -> Step:
    """The same for mini-swe-agent, which ends by a command, and is told what was asked before."""
    name, text = next_file(asked)
    if text == "forgotten" and any(REQUESTS[0].strip() in each for each in asked.said):
        text = WORD
    return Run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" if asked.results else f"echo {text} > {name}")


SCRIPTS: dict[str, Callable[[Asked], Step]] = {"aider": edit, "mini-swe-agent": solve_and_submit}
