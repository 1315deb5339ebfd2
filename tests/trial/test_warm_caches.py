"""Suites find what the reference solutions' suites had downloaded, and nothing that an agent put in its place."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import Agent
from pytest_evocode.agents.nop import NopAgent
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Installation
from pytest_evocode.environments.cache_archives import CacheArchives
from pytest_evocode.tasks import Task
from pytest_evocode.trial.trial import RoundSelection, Trial, TrialOptions

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

WARM = TrialOptions(warm_caches=True)
ONLINE = '[verifier]\nnetwork_mode = "public"\n'
HTTP = "/root/.cache/pip/http-v2"
REWARD = "/logs/verifier/reward.txt"
SOLVED = {"steps/round-1/solution/solve.sh": "touch solved"}
BOTH_SOLVED = {**SOLVED, "steps/round-2/solution/solve.sh": "true"}


def downloading(name: str, cache: str = HTTP) -> str:
    """A suite that needs a package, which it takes from the cache where it is there; its output says so."""
    return f"""
        if [ -e {cache}/{name} ]; then echo found {name}; else echo downloaded {name}; fi
        mkdir -p {cache}; [ -e {cache}/{name} ] || echo genuine > {cache}/{name}
        echo "files: $(cd /root/.cache/pip 2>/dev/null && find . -type f | sort | tr '\\n' ' ')"
        [ "$(cat {cache}/{name})" = genuine ] && [ -e solved ] && echo 1 > {REWARD} || echo 0 > {REWARD}
    """


@pytest.fixture(autouse=True)
def _caches_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


class Play:
    """Plays a task to its end, and returns what the suites printed."""

    def __init__(self, engine: Engine, finish: Finish) -> None:
        self._engine = engine
        self._finish = finish

    def __call__(self, task: Task, agent: Agent, options: TrialOptions = WARM, *, last: int | None = None) -> list[str]:
        trial = Trial(task, agent, self._engine, rounds=RoundSelection(last=last), options=options)
        records = self._finish(trial)
        assert [record.outcome for record in records if record.outcome not in ("passed", "failed")] == []
        return [trial.output_of(record.index) for record in records]


@pytest.fixture
def play(engine: Engine, finish: Finish) -> Play:
    return Play(engine, finish)


def kept() -> list[str]:
    """The rounds for which something is kept."""
    return sorted(each.round for each in CacheArchives("sandbox").oldest_first())


def test_suites_of_any_agent_find_what_the_oracles_had_downloaded_and_nothing_of_an_agents_own(
    make_task: MakeTask, play: Play, scripted: type[Scripted]
) -> None:
    task = make_task(downloading("pytest"), toml=ONLINE, files=SOLVED)
    poison = f"touch solved; mkdir -p {HTTP} /root/.cache/pip/wheels; echo evil | tee {HTTP}/pytest {HTTP}/other"
    assert "found pytest" in play(task, scripted(poison))[0]
    assert kept() == []
    assert "downloaded pytest" in play(task, OracleAgent())[0]
    assert kept() == ["round-1"]
    for agent in (OracleAgent(), NopAgent()):
        assert "found pytest" in play(task, agent)[0]
    assert "files: ./http-v2/pytest \n" in play(task, scripted(poison))[0]


@pytest.mark.parametrize(
    "planted",
    [
        "mkdir -p /root elsewhere/pip/http-v2; ln -s /app/elsewhere /root/.cache; echo evil > elsewhere/pip/http-v2/x",
        "mkdir -p /root elsewhere/http-v2; mkdir /root/.cache; ln -s /app/elsewhere /root/.cache/pip",
        "mkdir -p /root elsewhere; echo file > /root/.cache",
        "rm -rf /root; ln -s /app/elsewhere /root; mkdir -p elsewhere",
    ],
)
@pytest.mark.matrix
def test_links_of_an_agents_lead_nowhere(
    make_task: MakeTask, play: Play, scripted: type[Scripted], planted: str
) -> None:
    suite = downloading("pytest") + "\necho there: $(find elsewhere -type f)"
    task = make_task(suite, toml=ONLINE, files=SOLVED)
    play(task, OracleAgent())
    output = play(task, scripted(f"{planted}; touch solved"))[0]
    assert "found pytest" in output
    assert "pytest" not in output.partition("there:")[2]


def test_round_two_of_the_oracle_finds_what_round_one_had_downloaded(make_task: MakeTask, play: Play) -> None:
    both = f"{downloading('pytest')}\n{downloading('hypothesis')}"
    task = make_task(downloading("pytest"), both, toml=ONLINE, files=BOTH_SOLVED)
    play(task, OracleAgent(), last=1)  # In one attempt the second suite may begin before the first has ended.
    outputs = play(task, OracleAgent())
    assert "found pytest\n" in outputs[1]
    assert "downloaded hypothesis" in outputs[1]
    outputs = play(task, NopAgent())
    assert "found hypothesis" in outputs[1]
    assert "hypothesis" not in outputs[0]


@pytest.mark.nightly
def test_a_later_round_without_downloads_of_its_own_has_those_of_the_nearest_before(
    make_task: MakeTask, play: Play
) -> None:
    task = make_task(downloading("pytest"), downloading("pytest"), toml=ONLINE, files=BOTH_SOLVED)
    play(task, OracleAgent(), last=1)
    play(task, OracleAgent())
    assert kept() == ["round-1"]
    assert "found pytest" in play(task, NopAgent())[1]


def test_what_a_tool_built_of_the_workspace_is_never_handed_on(make_task: MakeTask, play: Play) -> None:
    uv = "/root/.cache/uv"
    build = f"""
        echo before: $(find {uv})
        mkdir -p {uv}/sdists-v9/path/1/2 {uv}/archive-v0/built {uv}/archive-v0/fetched {uv}/wheels-v5/pypi/pytest
        [ -e {uv}/archive-v0/built/solved ] && echo leaked; cp solved {uv}/archive-v0/built/
        ln -sfn ../../../../archive-v0/built {uv}/sdists-v9/path/1/2/project-1
        ln -sfn ../../../archive-v0/fetched {uv}/wheels-v5/pypi/pytest/8-py3
        touch {uv}/archive-v0/fetched/code {uv}/wheels-v5/pypi/pytest/8-py3.http
        echo "uv: $(cd {uv} && find . ! -type d | sort | tr '\\n' ' ')"
    """
    task = make_task(f"{downloading('pytest')}\n{build}", toml=ONLINE, files=SOLVED)
    play(task, OracleAgent())
    assert set(CacheArchives("sandbox").oldest_first()[0].paths) == {uv, "/root/.cache/pip"}
    output = play(task, NopAgent())[0]
    assert "fetched" in output.partition("before:")[2].partition("uv:")[0]
    assert "leaked" not in output


def test_a_suite_that_failed_leaves_nothing(make_task: MakeTask, play: Play) -> None:
    files = {"steps/round-1/solution/solve.sh": "true"}
    play(make_task(downloading("pytest"), toml=ONLINE, files=files), OracleAgent())
    assert kept() == []


def test_software_of_an_agents_is_of_no_trust(make_task: MakeTask, play: Play) -> None:
    task = make_task(downloading("pytest"), toml=ONLINE, files=SOLVED)
    play(task, OracleAgent(), replace(WARM, installation=Installation("a program", "true")))
    assert kept() == []


@pytest.mark.parametrize(
    ("toml", "options"),
    [
        ('[metadata.evocode]\nwarm_caches = "never"\n' + ONLINE, WARM),
        ('[metadata.evocode]\nwarm_caches = "unless-strict"\n' + ONLINE, replace(WARM, strict=True)),
        ('[metadata.evocode]\nstate = ["/root"]\n' + ONLINE, WARM),
        ("", WARM),
        (ONLINE, TrialOptions()),
    ],
    ids=["never", "strict", "state", "no network", "not asked for"],
)
@pytest.mark.matrix
def test_nothing_is_kept_where_it_must_not(make_task: MakeTask, play: Play, toml: str, options: TrialOptions) -> None:
    play(make_task(downloading("pytest"), toml=toml, files=SOLVED), OracleAgent(), options)
    assert kept() == []


@pytest.mark.parametrize(
    "changed",
    [
        "steps/round-1/solution/solve.sh",
        "steps/round-1/tests/more",
        "task.toml",
    ],
)
@pytest.mark.matrix
def test_another_task_finds_nothing(make_task: MakeTask, play: Play, changed: str) -> None:
    task = make_task(downloading("pytest"), toml=ONLINE, files=SOLVED)
    play(task, OracleAgent())
    with (task.directory / changed).open("a") as file:
        file.write("\n# changed\n")
    assert "downloaded pytest" in play(task, NopAgent())[0]


def test_caches_that_the_task_names_and_those_of_variables(make_task: MakeTask, play: Play) -> None:
    toml = '[metadata.evocode]\ncaches = ["/var/cache/mine"]\n[verifier.env]\nPIP_CACHE_DIR = "/srv/pip"\n'
    suite = f"{downloading('a', '/var/cache/mine/deep')}\n{downloading('b', '/srv/pip/http')}\n{downloading('c')}"
    task = make_task(suite, toml=toml.replace("[verifier.env]", ONLINE + "[verifier.env]"), files=SOLVED)
    play(task, OracleAgent())
    output = play(task, NopAgent())[0]
    assert [name for name in "abc" if f"found {name}" in output] == ["a", "b"]


def test_those_of_the_workspace_are_the_agents(make_task: MakeTask, play: Play, scripted: type[Scripted]) -> None:
    toml = ONLINE + '[verifier.env]\nPIP_CACHE_DIR = "/app/cache"\n'
    task = make_task(downloading("pytest", "/app/cache/http"), toml=toml, files=SOLVED)
    play(task, OracleAgent())
    assert kept() == []
    assert "found pytest" in play(task, scripted("mkdir -p cache/http; echo mine > cache/http/pytest"))[0]


@pytest.mark.docker
@pytest.mark.nightly
def test_in_docker_too_the_agents_own_are_not_found(
    make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    from pytest_evocode.environments.docker.engine import DockerEngine

    suite = f"{downloading('pytest')}\nstat -c '%u:%g %a' {HTTP} {HTTP}/pytest; chown -R 7:8 {HTTP}; chmod 2750 {HTTP}"
    # Of a task that says nothing of a network, Docker's environments have one.
    task = make_task(suite, files=SOLVED, dockerfile="FROM python:3.11-slim-bookworm\nWORKDIR /app\n")
    poison = f"touch solved; mkdir -p {HTTP}; echo evil | tee {HTTP}/pytest {HTTP}/other"
    engine = DockerEngine()
    try:
        play = Play(engine, finish)
        assert "downloaded pytest" in play(task, OracleAgent())[0]
        output = play(task, scripted(poison))[0]
    finally:
        engine.close()
    assert "found pytest\nfiles: ./http-v2/pytest \n7:8 750\n7:8 644\n" in output


@pytest.mark.nightly
def test_what_the_image_has_is_there_whatever_became_of_it(
    make_task: MakeTask, play: Play, scripted: type[Scripted]
) -> None:
    build = "RUN mkdir -p /root/.cache/pip/wheels/1 && echo image > /root/.cache/pip/wheels/1/local.whl"
    suite = f"{downloading('pytest')}\ncat /root/.cache/pip/wheels/1/local.whl"
    task = make_task(suite, toml=ONLINE, files=SOLVED, dockerfile=f"FROM debian:bookworm-slim\nWORKDIR /app\n{build}\n")
    play(task, OracleAgent())
    [kept] = CacheArchives("sandbox").oldest_first()
    opened = CacheArchives("sandbox").open(kept, kept.image, kept.added)
    assert opened is not None
    with opened[0], opened[1], tarfile.open(fileobj=opened[0]) as image, tarfile.open(fileobj=opened[1]) as later:
        files = [[f"/{each.name}" for each in archive if each.isreg()] for archive in (image, later)]
    assert files == [["/root/.cache/pip/wheels/1/local.whl"], [f"{HTTP}/pytest"]]
    everything = "files: ./http-v2/pytest ./wheels/1/local.whl \nimage\n"
    assert everything in play(task, NopAgent())[0]
    for turn in ("rm -r /root/.cache", "echo evil > /root/.cache/pip/wheels/1/local.whl; touch /root/.cache/pip/more"):
        assert everything in play(task, scripted(turn))[0]
