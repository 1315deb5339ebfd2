"""Resolution of what a step leaves out: the step's value, else the task's, else the format's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.layout import RoundFiles
from pytest_evocode.tasks.model import (
    AgentConfig,
    EnvironmentConfig,
    StepConfig,
    TaskConfig,
    VerifierConfig,
    VerifyIn,
)
from pytest_evocode.tasks.task import Network, Round


def network(environment: EnvironmentConfig, *phases: AgentConfig | VerifierConfig | None) -> Network | None:
    """Return the network access that the first of ``phases`` gives, else the environment's; None where none says.

    A phase of None gives none.
    """
    for section in (*phases, environment):
        if section is not None and section.network_mode is not None:
            return Allowlist.of(section.allowed_hosts) if section.network_mode == "allowlist" else section.network_mode
    if environment.allow_internet is None:
        return None
    return "public" if environment.allow_internet else "no-network"


def change_types(config: TaskConfig) -> dict[str, tuple[str, ...]]:
    """Return the kinds of change by step name, in the order in which they are written, and each once."""
    chain = config.metadata.requirement_chain
    found: dict[str, tuple[str, ...]] = {}
    for entry in chain.steps if chain else ():
        found[entry.step] = tuple(dict.fromkeys((*found.get(entry.step, ()), *entry.change_types)))
    return found


def resolve_rounds(config: TaskConfig, files: list[RoundFiles]) -> tuple[Round, ...]:
    """Return the rounds of a task; ``files`` has an entry per step, or one where there are no steps."""
    changes = change_types(config)
    steps: tuple[StepConfig | None, ...] = config.steps or (None,)
    return tuple(
        _resolve(index, step, found, config, changes.get(found.name, ()))
        for index, (step, found) in enumerate(zip(steps, files, strict=True), 1)
    )


def _resolve(
    index: int, step: StepConfig | None, files: RoundFiles, config: TaskConfig, changes: tuple[str, ...]
) -> Round:
    agent: AgentConfig | None = None
    verifier: VerifierConfig | None = None
    if step is not None:
        agent = step.agent if "agent" in step.model_fields_set else None
        verifier = step.verifier if "verifier" in step.model_fields_set else None
    apart = files.suite_environment
    collect = config.verifier.collect
    if verifier is not None:
        collect = (*collect, *verifier.collect)
    verifier_env: Mapping[str, str] = config.verifier.env
    if verifier is not None and verifier.env:
        verifier_env = {**verifier_env, **verifier.env}
    return Round(
        index=index,
        **files._asdict(),
        agent_timeout=_said(agent, config.agent, "timeout_sec"),
        verifier_timeout=_said(verifier, config.verifier, "timeout_sec"),
        agent_user=_said(agent, config.agent, "user"),
        verifier_user=_said(verifier, config.verifier, "user"),
        agent_network=network(config.environment, agent, config.agent),
        verifier_network=network(apart.config if apart else config.environment, verifier, config.verifier),
        setup_network=network(config.environment),
        verifier_env=verifier_env,
        verify_in=_verify_in(config.metadata.evocode.verify_in, files.has_script),
        collect=collect,
        solution_env=config.solution.env,
        min_reward=step.min_reward if step else None,
        healthcheck=step.healthcheck if step else None,
        artifacts=(*config.artifacts, *step.artifacts) if step else config.artifacts,
        change_types=changes,
    )


def _verify_in(said: VerifyIn | None, has_script: bool) -> VerifyIn:
    if said in (None, "separate"):
        return "clean" if has_script else "separate"
    return said


def _said(step: BaseModel | None, task: BaseModel, field: str) -> Any:
    return getattr(task if step is None or field not in step.model_fields_set else step, field)
