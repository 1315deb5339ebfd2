"""Replacement of ``${VAR}`` and ``${VAR:-default}`` in a task's environment variables by the host's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.task import Round, Task

TEMPLATE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")

FROM_AGENT = (
    "a secret that the agent does not declare, so it goes nowhere that the agent can read; have the agent name it in "
    "its 'secrets', name it where the agent is not: in [solution.env], or in [verifier.env] where no suite "
    "runs in place"
)

FROM_SOLUTION = (
    "a secret, and in this mode the agent begins where the solution's work ends, so it could read it; run whole "
    "chains, from the first round on"
)


def resolve_env(
    env: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    path: Path,
    withheld: Callable[[str], bool] = lambda name: False,
    withheld_because: str = FROM_AGENT,
) -> dict[str, str]:
    """Return ``env`` with the templates in its values replaced by the variables of ``environ``.

    ``${VAR:-default}`` takes the default where VAR is unset or empty, as a shell does; ``$VAR``, ``$$`` and all else
    stay as they are.

    >>> resolve_env({"URL": "http://${HOST}:${PORT:-80}"}, {"HOST": "db"}, path=Path("task.toml"))
    {'URL': 'http://db:80'}

    Args:
        env: The variables as the task has them.
        environ: The host's variables.
        path: The task.toml that ``env`` comes from.
        withheld: Which of the host's variables count as unset.
        withheld_because: Why they do, and what to do about it besides giving a default.

    Raises:
        TaskError: Variables are unset or withheld and have no default; the message names all of them.
    """
    missing: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        value = None if withheld(name) else environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            missing.append(name)
            return ""
        return value

    resolved = {key: TEMPLATE.sub(fill, value) for key, value in env.items()}
    if missing:
        names = list(dict.fromkeys(missing))
        if secret := next((name for name in names if withheld(name)), None):
            key = next(key for key, value in env.items() if f"${{{secret}}}" in value)
            message = f"{key} asks for {secret}, {withheld_because}, or give a default: ${{{secret}:-value}}"
            raise TaskError(message, path, _line_of(f"${{{secret}}}", path))
        message = f"{', '.join(names)} not set in the environment; export it or give a default: ${{{names[0]}:-value}}"
        raise TaskError(message, path, _line_of(f"${{{names[0]}}}", path))
    return resolved


def resolve_solution_env(
    task: Task, round_: Round, environ: Mapping[str, str], withheld: Callable[[str], bool]
) -> dict[str, str]:
    """Return the variables of a round's solution, with templates resolved as :func:`resolve_env` does."""
    return resolve_env(round_.solution_env, environ, path=task.file, withheld=withheld, withheld_because=FROM_SOLUTION)


def _line_of(template: str, path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((number for number, line in enumerate(lines, 1) if template in line), None)
