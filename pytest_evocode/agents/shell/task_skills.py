"""The skills of a task's ``skills_dir``, which are in the container."""

from __future__ import annotations

import posixpath

from pytest_evocode.agents.harness import Skill, skill_head
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import read_environment_file
from pytest_evocode.errors import TaskError, UnreadableFile

_LIST = 'cd -- "$1" && for file in */SKILL.md; do [ ! -f "$file" ] || printf "%s\\0" "$file"; done'
_LISTING = 60.0  # seconds
_LONGEST = 2**20  # bytes of a SKILL.md


def skills_of_task(context: RoundContext) -> list[tuple[Skill, str]]:
    """Return the task's skills in order of name, each with the path of its file.

    Raises:
        TaskError: There is no such directory, or a skill is no readable file.
    """
    said = context.task.config.environment.skills_dir
    if said is None:
        return []
    directory = posixpath.join(context.environment.workdir, said)
    listing = ["bash", "-c", _LIST, "bash", directory]
    listed = context.environment.exec(listing, user=context.round.agent_user, timeout=_LISTING)
    if not listed.ok:
        why = f"skills_dir = {said!r} cannot be listed in the container: {listed.tail(3)}"
        raise TaskError(f"{why}; correct it, or the image", context.task.file)
    found = []
    for name in sorted(filter(None, listed.output.split("\0"))):
        path = posixpath.join(directory, name)
        try:
            text = (read_environment_file(context.environment, path, _LONGEST) or b"").decode("utf-8", "replace")
        except UnreadableFile as error:
            raise TaskError(f"the skill {path} cannot be read: {error}", context.task.file) from None
        head = skill_head(text)
        directory_name = posixpath.dirname(name)
        skill = Skill(head.get("name", directory_name), head.get("description", ""), directory_name)
        found.append((skill, path))
    return found
