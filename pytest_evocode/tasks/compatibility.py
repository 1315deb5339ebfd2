"""What becomes of each field of Harbor's format: the one table that the loader, the schema and docs/harbor.md follow.

A field that is not refused here has an effect, or its row says which one it has not. Whoever makes a refused field work
takes the refusal out of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from pytest_evocode.names import TRAJECTORY_FILE
from pytest_evocode.tasks.config_text import Keys
from pytest_evocode.tasks.fields import on_a_drive
from pytest_evocode.tasks.model import (
    AgentConfig,
    Artifact,
    Author,
    CollectHook,
    EnvironmentConfig,
    Healthcheck,
    McpServer,
    SolutionConfig,
    StepConfig,
    TaskConfig,
    TaskInfo,
    TpuConfig,
    VerifierConfig,
)
from pytest_evocode.tasks.problems import Problem

WINDOWS = 'only "linux" environments can be started'


class Support(NamedTuple):
    """What becomes of a field, or of a file of a task."""

    how: str = ""
    """How it differs from Harbor; empty where it does not."""
    refusal: str = ""
    """What the author of a task that is refused for it is told: why, and what to do."""
    refuses: Callable[[Any], object] = bool
    """Whether a value is refused, where there is a ``refusal``. Default: one that asks for something."""
    values: str = ""
    """Which values are refused, where others are not."""
    for_good: bool = False
    """Whether it stays refused."""

    @property
    def state(self) -> Literal["supported", "differently", "refused"]:
        """The support in one word."""
        if self.refusal and not self.values:
            return "refused"
        return "differently" if self.how or self.refusal else "supported"


def _refused(refusal: str, *, for_good: bool = False) -> Support:
    return Support(refusal=refusal, refuses=lambda value: value not in (None, (), 0), for_good=for_good)


def _unless(refuses: Callable[[Any], object], values: str, refusal: str, how: str = "", good: bool = False) -> Support:
    return Support(how, refusal, refuses, values, good)


SAME = Support()
_WHOLE = Support(refusal="refused with the whole table")
_NO_DRIVES = _unless(on_a_drive, "a path with a drive, such as `C:\\app`", WINDOWS, good=True)
_HOSTS = Support(
    "a proxy decides, which programs find by `HTTP_PROXY` and the like: one that looks at none of these variables "
    "reaches nothing. What was denied is recorded ([allowlists](environments.md#allowlists))"
)

FIELDS: Mapping[type[BaseModel], Mapping[str, Support]] = {
    TaskConfig: {
        "schema_version": Support(
            "nothing depends on it; of any other than 1.0 to 1.4 there is a warning. The old name is `version`"
        ),
        "source": SAME,
        "multi_step_reward_strategy": Support(
            "the mean is over all rounds of the task: one that was not reached counts 0, where Harbor leaves it out"
        ),
        "artifacts": SAME,
        "task": SAME,
        "agent": SAME,
        "verifier": SAME,
        "environment": SAME,
        "solution": SAME,
        "steps": SAME,
        "metadata": Support("`[metadata.evocode]` and `[metadata.requirement_chain]` have a meaning; the rest is free"),
    },
    TaskInfo: {"name": SAME, "version": SAME, "description": SAME, "authors": SAME, "keywords": SAME},
    Author: {"name": SAME, "email": SAME},
    AgentConfig: {
        "timeout_sec": Support("a step that says nothing has the task's"),
        "user": Support("a step that says nothing has the task's"),
        "network_mode": Support(
            'all rounds share one environment: where their modes differ, `"public"` goes through the proxy'
        ),
        "allowed_hosts": _HOSTS,
    },
    VerifierConfig: {
        "timeout_sec": Support("a step that says nothing has the task's, where Harbor takes 600"),
        "env": Support("a step's are laid over the task's"),
        "user": Support("a step that says nothing has the task's"),
        "network_mode": SAME,
        "allowed_hosts": _HOSTS,
        "environment_mode": Support(
            "how a suite that is `shared` is judged is said by `verify_in`; for one that is `separate`, artifacts are "
            "bounded, and the verdict names what was left out ([separate verifiers](task-format.md#separate-verifiers))"
        ),
        # Of native suites refused by its place: loading.py.
        "environment": Support("for native suites the task's `docker_image` counts, and a step's table is refused"),
        "collect": Support("run after the turn; no process is left of a turn that timed out"),
    },
    CollectHook: {
        "command": Support("the verdict names a command that failed, and the suite runs all the same"),
        "service": SAME,
        "timeout_sec": Support("a command that takes longer ends every process in the environment, or in its service"),
        "user": SAME,
    },
    EnvironmentConfig: {
        "network_mode": Support("a task that says nothing has a network in Docker and none in the sandbox"),
        "allowed_hosts": _HOSTS,
        "build_timeout_sec": SAME,
        "docker_image": Support("needs Docker, or `--evocode-image`"),
        "os": _unless(lambda system: system.lower() != "linux", "all but `linux`", WINDOWS, good=True),
        "cpus": Support("also says how many [slots](evaluate.md#in-parallel) a suite takes"),
        "memory_mb": Support("also says how many [slots](evaluate.md#in-parallel) a suite takes"),
        "storage_mb": Support(
            "no limit is set, and the session says so after the collection; on a cluster it decides "
            "[where attempts go](ci.md#where-attempts-go)"
        ),
        "gpus": Support(
            "needs Docker whose engine has NVIDIA's runtime, else one error says so. The forks of suites have as many"
        ),
        "gpu_types": Support("Docker takes what there is; the session says so after the collection"),
        "tpu": _refused("no environment here has TPUs; remove it", for_good=True),
        "env": Support(
            "in `[environment]`, `${VAR}` is filled in from a secret only for `oracle`, `nop` and agents that declare "
            "it ([secrets](evaluate.md#secrets))"
        ),
        "healthcheck": Support("that of `[verifier.environment]` is not waited for"),
        "workdir": _NO_DRIVES,
        "allow_internet": SAME,
        "memory": SAME,
        "storage": Support("as `storage_mb`"),
        "mcp_servers": Support(
            "for agents, not suites; an agent that cannot use one refuses the task; oracle, nop and replay need none "
            "([MCP servers](agents.md#mcp-servers))"
        ),
        "skills_dir": Support("an agent that takes no skills refuses the task; oracle, nop and replay need none"),
    },
    McpServer: {
        "name": Support("each once; agents see `_` in place of what is no letter, digit, `_` or `-`"),
        "transport": SAME,
        "url": Support("as the container reaches it, also for an agent that works on the host"),
        "command": SAME,
        "args": SAME,
        "headers": Support("`${VAR}` is filled in as in `env`"),
    },
    TpuConfig: {"type": _WHOLE, "topology": _WHOLE},
    Healthcheck: {
        "command": SAME,
        "interval_sec": SAME,
        "timeout_sec": SAME,
        "start_period_sec": SAME,
        "start_interval_sec": SAME,
        "retries": SAME,
    },
    SolutionConfig: {"env": SAME},
    StepConfig: {
        "name": Support("may not have `[`, `]` or `@` nor begin with a dot, which node ids cannot have"),
        "agent": SAME,
        "verifier": SAME,
        "min_reward": Support("a number is for the reward that decides, which need not be called `reward`"),
        "healthcheck": SAME,
        "artifacts": SAME,
        "inherit_prior_session": Support("Harbor has no such key; false begins a new conversation of the agent"),
    },
    Artifact: {
        "source": _NO_DRIVES._replace(how="an absolute path; Harbor takes relative ones, too"),
        "destination": SAME,
        "exclude": SAME,
        "service": Support("collected from the fork of a service, which has the files and volumes of the agent's"),
    },
}
"""The fields of each table of a ``task.toml`` by the model that reads it, without those below ``[metadata]``."""

COMPOSE = "environment/docker-compose.yaml"
SUITE_COMPOSE = "tests/docker-compose.yaml"
FILES: Mapping[str, Support] = {
    "environment/Dockerfile": Support(
        "the sandbox replays it on this machine's system. As with Harbor, `CMD` is not run and `ENTRYPOINT` is, here "
        "beside the environment's own PID 1, and anew for suites; `HEALTHCHECK` is waited for "
        "([entry points](environments.md#entry-points))"
    ),
    COMPOSE: Support(
        "needs Docker. Suites have services of their own, made from what the agent left; what would reach the "
        "host is refused, and no port is published there ([compose](compose.md))"
    ),
    SUITE_COMPOSE: _refused("write a Dockerfile, one container runs a suite that is apart"),
    "instruction.md": SAME,
    TRAJECTORY_FILE: Support(
        "of a task or a step: the shell agent's conversation goes on from it, without its system messages; oracle, nop "
        "and replay need none, and other agents refuse the task"
    ),
    "solution/solve.sh": Support("the task's serves each step that has none"),
    "workdir/setup.sh": SAME,
    "tests/test.sh": Support(
        "runs in the image as built, with the workspace carried over and no process of the agent: what an earlier "
        "suite left in `/tmp` and the like is there only if `verifier_state` names it; for comparisons "
        "[`verify_in`](task-format.md#the-verifier) puts it where the agent works"
    ),
    "tests/Dockerfile": Support(
        "makes the image of a separate verifier, from the task's `tests/` or a step's; the sandbox replays it, too"
    ),
    "tests/test_*.py": Support("a [native suite](task-format.md#native-suites) where there is no `test.sh`"),
    "/logs/verifier/reward.txt, reward.json": Support(
        "one reward decides whether a round passes; of several [a rule](task-format.md#in-all-places) says which"
    ),
    "solution/solve.bat, tests/test.bat": _refused(WINDOWS, for_good=True),
}
"""The files of a task beside its ``task.toml``, or that it counts on."""


def refusals(section: BaseModel, keys: Keys = ()) -> Iterator[Problem]:
    """Yield a problem for each value of ``section``, and of the tables below it, that is refused by the table.

    Args:
        section: What a task.toml says, or a part of it.
        keys: Where in task.toml the part is.
    """
    fields = FIELDS.get(type(section))
    if fields is None:
        return
    # The order of the fields, not that of a set: messages of one line are sorted by nothing else.
    for name in fields:
        if name not in section.model_fields_set:
            continue
        value, support, here = getattr(section, name), fields[name], (*keys, name)
        if support.refusal and value is not None and support.refuses(value):
            yield Problem(support.refusal, here, unsupported=True, for_good=support.for_good)
        elif isinstance(value, BaseModel):
            yield from refusals(value, here)
        elif isinstance(value, tuple):
            for index, entry in enumerate(value):
                if isinstance(entry, BaseModel):
                    yield from refusals(entry, (*here, index))


SECTIONS: Mapping[type[BaseModel], str] = {
    TaskConfig: "The top of task.toml",
    TaskInfo: "`[task]`",
    Author: "`[[task.authors]]`",
    AgentConfig: "`[agent]`, `[steps.agent]`",
    VerifierConfig: "`[verifier]`, `[steps.verifier]`",
    CollectHook: "`[[verifier.collect]]`",
    EnvironmentConfig: "`[environment]`, `[verifier.environment]`",
    McpServer: "`[[environment.mcp_servers]]`",
    TpuConfig: "`[environment.tpu]`",
    Healthcheck: "`[environment.healthcheck]`, `[steps.healthcheck]`",
    SolutionConfig: "`[solution]`",
    StepConfig: "`[[steps]]`",
    Artifact: "`artifacts`, of the task and of steps",
}
"""What a table of the format is called on the page, in the page's order."""


def tables() -> str:
    """Return the tables as Markdown."""
    lines: list[str] = []
    for section, title in SECTIONS.items():
        lines += _table(title, "field", {f"`{name}`": support for name, support in FIELDS[section].items()})
    files = {", ".join(f"`{name}`" for name in names.split(", ")): support for names, support in FILES.items()}
    return "\n".join([*lines, *_table("Files", "file", files)])


def _table(title: str, what: str, rows: dict[str, Support]) -> Iterator[str]:
    yield from (f"### {title}", "", f"| {what} | here | how |", "|---|---|---|")
    for name, support in rows.items():
        yield f"| {name} | {support.state} | {_how(support)} |"
    yield ""


def _how(support: Support) -> str:
    refusal = support.refusal
    if support.values:
        refusal = f"{support.values} {'are' if support.values.startswith('all') else 'is'} refused"
    if support.for_good:
        refusal += ", for good"
    return "; ".join(part for part in (support.how, refusal) if part)
