"""Fill ``${VAR}`` and ``${VAR:-default}`` in environment variables from the host's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evocode.errors import TaskError

TEMPLATE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def resolve_env(
    env: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    path: Path,
    withheld: Callable[[str], bool] = lambda name: False,
) -> dict[str, str]:
    """Replace the templates in the values of ``env`` by the variables of ``environ``.

    ``${VAR:-default}`` takes the default when VAR is unset or empty, as a shell does; ``$VAR``, ``$$`` and all else
    stay as they are. ``path`` is the task.toml that ``env`` comes from. Variables that are ``withheld`` count as unset.

    >>> resolve_env({"URL": "http://${HOST}:${PORT:-80}"}, {"HOST": "db"}, path=Path("task.toml"))
    {'URL': 'http://db:80'}

    Raises TaskError naming every variable that is unset or withheld and has no default.
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
            message = (
                f"{key} asks for {secret}, a secret that the agent does not declare, so it goes nowhere that the agent "
                f"can read; give a default: ${{{secret}:-value}}, have the agent name it in its 'secrets', or "
                "name it where the agent is not: in [solution.env], or in [verifier.env] without keep_processes"
            )
            raise TaskError(message, path, _line_of(f"${{{secret}}}", path))
        message = f"{', '.join(names)} not set in the environment; export it or give a default: ${{{names[0]}:-value}}"
        raise TaskError(message, path, _line_of(f"${{{names[0]}}}", path))
    return resolved


def _line_of(template: str, path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((number for number, line in enumerate(lines, 1) if template in line), None)
