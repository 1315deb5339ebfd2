"""The options of the agent ``acp:COMMAND``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_evocode.agents.harness import HarnessOptions
from pytest_evocode.agents.installed.declared_command import below_home, below_workdir, split_words
from pytest_evocode.agents.installed.latest_version import LATEST
from pytest_evocode.agents.installed.npm_program import NpmProgram
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.model_options import Variables

NpmPackage = Annotated[str, Field(pattern=r"^(@[a-z0-9~][\w.~-]*/)?[a-z0-9~][\w.~-]*(@[A-Za-z0-9][\w.+-]*)?$")]
#: A name that can be the file of a program.
_PROGRAM = re.compile(r"[A-Za-z0-9][\w.-]*")


class AcpOptions(HarnessOptions):
    """Options of an agent that speaks ACP."""

    model: str | None = None
    """The model that the session is set to, by the agent's own id; None for its default."""
    mode: str | None = None
    """The mode that the session is set to, by the agent's own id, such as one that asks for no permissions."""
    auth_method: str | None = None
    """The way to authenticate, by the agent's own id, for one that asks for it."""
    secrets: Annotated[tuple[str, ...], BeforeValidator(split_words)] = ()
    """Variables of this machine that the agent gets."""
    env: Variables = {}
    """Further variables for the agent; ``${NAME}`` stands for a variable of this machine, which is how a secret is
    given."""
    hosts: Annotated[tuple[str, ...], BeforeValidator(split_words)] = ()
    """Hosts that the agent calls, which its turns may reach beside those of a task's ``allowed_hosts``."""
    npm: NpmPackage | None = Field(default=None, examples=["@qwen-code/qwen-code"])
    """npm package that has the command's first word as its program, such as @qwen-code/qwen-code@0.24.4; it is
    installed with a Node of its own. Without a version it is the latest, which is looked up once a day."""
    install: str = Field(default="", examples=["pip install mine"])
    """Script that runs as root, with a network, when the image is built."""
    ca: Path | None = None
    """File of certificates, in PEM form, to trust while it is installed."""
    rules_file: Annotated[str, AfterValidator(below_workdir)] = "AGENTS.md"
    """File in which the agent looks for rules, relative to the working directory."""
    skills_directory: Annotated[str | None, AfterValidator(below_home)] = Field(
        default=None, examples=["~/.agents/skills"]
    )
    """Directory in which the agent looks for skills, such as ~/.agents/skills; None where it uses none."""

    def program(self, command: str) -> tuple[NpmProgram, str] | None:
        """Return the program that ``npm`` names and its version; None where it names none.

        Raises:
            UsageError: The command does not begin with a program's name.
        """
        if self.npm is None:
            return None
        package, _, version = self.npm.rpartition("@")
        if not package:  # The @ of a scope, or none.
            package, version = self.npm, LATEST
        name = command.split()[0]
        if not _PROGRAM.fullmatch(name):
            raise UsageError(
                f"npm = {self.npm!r}: the command has to begin with the package's program, and {name!r} is no name of "
                "one; give variables with env"
            )
        return NpmProgram(package, name), version
