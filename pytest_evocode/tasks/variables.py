"""Fill ``${VAR}`` and ``${VAR:-default}`` in environment variables from the host's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.task import Round, Task

TEMPLATE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")

FROM_AGENT = (
    "a secret that the agent does not declare, so it goes nowhere that the agent can read; have the agent name it in "
    "its 'secrets', name it where the agent is not: in [solution.env], or in [verifier.env] without keep_processes"
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
    """Replace the templates in the values of ``env`` by the variables of ``environ``.

    ``${VAR:-default}`` takes the default when VAR is unset or empty, as a shell does; ``$VAR``, ``$$`` and all else
    stay as they are. ``path`` is the task.toml that ``env`` comes from. Variables that are ``withheld`` count as unset.

    >>> resolve_env({"URL": "http://${HOST}:${PORT:-80}"}, {"HOST": "db"}, path=Path("task.toml"))
    {'URL': 'http://db:80'}

    Raises TaskError naming every variable that is unset or withheld and has no default, with ``withheld_because``: why
    it is withheld, and what to do about it besides giving a default.
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
    """The variables of a round's solution, as :func:`resolve_env` makes them."""
    return resolve_env(round_.solution_env, environ, path=task.file, withheld=withheld, withheld_because=FROM_SOLUTION)


def _line_of(template: str, path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((number for number, line in enumerate(lines, 1) if template in line), None)
