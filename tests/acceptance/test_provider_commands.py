"""The commands of docs/providers.md, run against a server on this machine that answers as the provider does."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.acceptance.command_pages import PROVIDERS, ROOT, blocks
from tests.acceptance.models import in_rounds
from tests.chat_dialects import DIALECTS
from tests.model_scripts import Run
from tests.model_server import ModelServer

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

KEY = "a-key-of-the-tests"
#: Where the SDK asks the provider itself, the variable that names another server, and what comes after its address.
OWN = {
    "OpenAI": ("OPENAI_BASE_URL", "/v1"),
    "Anthropic": ("ANTHROPIC_BASE_URL", ""),
    "Google Gemini": ("GOOGLE_GEMINI_BASE_URL", ""),
    "Amazon Bedrock": ("ANTHROPIC_BEDROCK_BASE_URL", ""),
    "Vertex AI": ("ANTHROPIC_VERTEX_BASE_URL", "/v1"),
}
PATHS = {
    "OpenRouter": "/api/v1/chat/completions",
    "vLLM": "/v1/chat/completions",
    "Ollama": "/v1/chat/completions",
    "LiteLLM proxy": "/chat/completions",
    "DeepSeek": "/chat/completions",
    "Moonshot": "/v1/chat/completions",
    "Zhipu": "/api/paas/v4/chat/completions",
    "Azure": "/openai/v1/chat/completions",
}


#: Only a provider of one's own needs no extra.
BLOCKS = {heading: block for heading, block in blocks(PROVIDERS).items() if block.extras}


def test_each_provider_and_server_has_a_command() -> None:
    assert set(BLOCKS) == set(DIALECTS) | set(OWN)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for block in BLOCKS.values() for extra in block.extras} <= set(extras)


@pytest.mark.parametrize("heading", BLOCKS)
@pytest.mark.matrix
def test_the_command_of_the_page_works(
    heading: str, run_tasks: RunTasks, write_task: WriteTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = BLOCKS[heading]
    write_task("a", 2)
    script = in_rounds([Run("echo line-1 >> log.txt")], [Run("echo line-2 >> log.txt")])
    has_key = any(value == "..." for value in block.variables.values())
    model = block.spec.partition("/")[2]
    dialect = DIALECTS.get(heading, lambda reply: reply)
    with ModelServer(script, key=KEY if has_key else None, models=[model], dialect=dialect) as server:
        for name, value in block.variables.items():
            monkeypatch.setenv(name, KEY if value == "..." else server.url if value.startswith("https://") else value)
        if heading in OWN:
            variable, after = OWN[heading]
            monkeypatch.setenv(variable, server.url + after)
        arguments = [at_server(argument, server) for argument in block.arguments]
        session = run_tasks(*arguments, agent=None)
    assert session.outcomes == {"passed": 2}
    assert len(server.asked) == 4
    assert {asked.model for asked in server.asked} == {model}
    if heading in PATHS:
        assert {asked.path for asked in server.asked} == {PATHS[heading]}
    [agent] = [path.name for path in (session.results / "a" / "harbor_jobs").iterdir()]
    usage = session.record("a", agent).rounds[0].usage
    assert usage is not None
    counts_cache = heading not in ("vLLM", "Ollama")
    assert (usage.prompt_tokens, usage.completion_tokens) == (2000, 100)
    assert usage.cached_tokens == (1200 if counts_cache else None)
    if usage.cost_usd is None:
        session.has(
            f"the cost of {agent} is not known: give the model's prices with --evocode-agent-option prices=FILE"
        )
    else:
        session.lacks("is not known: give the model's prices")
    if heading == "OpenRouter":
        assert usage.cost_usd == pytest.approx(0.025)


def at_server(argument: str, server: ModelServer) -> str:
    """An argument whose base_url is the server's, with the path of the one of the page."""
    name, _, url = argument.partition("=")
    return f"base_url={server.url}{urlsplit(url).path}" if name == "base_url" else argument


def test_the_provider_of_the_page_works_as_a_package(
    run_tasks: RunTasks, write_task: WriteTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = PROVIDERS.read_text().partition("## A provider of your own")[2]
    program = (PROVIDERS.parent / "examples" / "my_provider.py").read_text()
    [entry_points] = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    [(name, value)] = tomllib.loads(entry_points)["project"]["entry-points"]["pytest_evocode.providers"].items()
    info = tmp_path / "site" / "my_provider-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-provider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pytest_evocode.providers]\n{name} = {value}\n")
    (tmp_path / "site" / "my_provider.py").write_text(program)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write_task("a", 1)
    command = re.findall(r"^    pytest (.*)$", section, re.MULTILINE)[-1]
    session = run_tasks(*shlex.split(command), agent=None)
    assert session.outcomes == {"passed": 1}
