"""Makes the agents that ``--evocode-agent`` names: built-in kinds, entry points, and classes by their names."""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_evocode.agents.declarations import Declaration, Declarations
from pytest_evocode.agents.protocol import Agent
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.client_factory import provider_names, refusals_of
from pytest_evocode.llm.providers import PROVIDERS, plain_address

_UNIONS = (Union, UnionType)


def what_is_wrong(error: ErrorDetails, options: type[BaseModel], name: str) -> str:
    """Return what pydantic found of the value of the option ``name``, and a value that would do.

    >>> class Options(BaseModel):
    ...     retries: int = 8
    >>> try:
    ...     Options.model_validate({"retries": "many"})
    ... except ValueError as error:
    ...     what_is_wrong(error.errors()[0], Options, "retries")
    'Input should be a valid integer, unable to parse string as an integer; write it such as retries=8'
    """
    words = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch":
        words = "it is not in the right form"
    elif error["type"] == "dict_type":
        words = "it has to be a table, in JSON on the command line"
    example = example_of(options, name)
    return f"{words}; write it such as {example}" if example else words


def example_of(options: type[BaseModel], name: str) -> str:
    """Return an option with a value that it takes, as the command line has it; empty where there is no such option.

    >>> class Options(BaseModel):
    ...     effort: Literal["low", "high"] | None = None
    ...     env: dict[str, str] = {}
    >>> example_of(Options, "effort"), example_of(Options, "env")
    ('effort=low', 'env={"NAME": "value"}')
    """
    field = next((each for key, each in options.model_fields.items() if name in (key, each.alias)), None)
    if field is None:
        return ""
    if field.examples:
        value = field.examples[0]
    elif isinstance(field.default, bool | int | float | str) and not isinstance(field.default, bool):
        value = field.default
    else:
        value = _of_type(field.annotation)
    shown = value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else json.dumps(value)
    return f"{name}={shown}"


def _of_type(annotation: Any) -> Any:
    """Return a value of a type, as simple as it gets."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in _UNIONS:
        return _of_type(arguments[0])
    if origin is Literal:
        return arguments[0]
    simple: dict[Any, Any] = {bool: True, int: 1, float: 0.5, Path: "FILE", dict: {"NAME": "value"}, list: ["value"]}
    return simple.get(origin or annotation, "VALUE")


ENTRY_POINTS = "pytest_evocode.agents"
_INSTALLED = {
    "claude-code": "claude_code:ClaudeCodeAgent",
    "codex": "codex:CodexAgent",
    "gemini-cli": "gemini_cli:GeminiCliAgent",
    "opencode": "opencode:OpenCodeAgent",
}
#: All forms of a spec, for messages and --help.
FORMS = (
    "oracle",
    "nop",
    "human",
    "replay:PATH",
    *(f"{provider}/MODEL" for provider in PROVIDERS),
    *(f"{name}:MODEL" for name in _INSTALLED),
    "acp:COMMAND",
    "cmd:NAME",
    "module:Class",
)


@dataclass(frozen=True, slots=True)
class Option:
    """A value of an agent's option."""

    value: Any
    where: str
    """Where it was given, for messages."""
    base: Path = field(default_factory=Path.cwd)
    """Directory that a relative path starts from."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of agent, with what its spec says besides."""

    make: Callable[[dict[str, Any]], Agent]
    """Makes an agent with its options."""
    options: type[BaseModel] | frozenset[str] | None
    """The options it takes; None for a class that takes any."""

    refusals: Mapping[str, str] = field(default_factory=dict)
    """Options that others of its sort take and it does not, each with why."""

    def takes(self, name: str) -> bool:
        """Whether it takes an option of that name."""
        return name not in self.refusals and (self.options is None or name in self.names)

    @property
    def names(self) -> frozenset[str]:
        """Names of its options."""
        if isinstance(self.options, frozenset) or self.options is None:
            return self.options or frozenset()
        return frozenset(field.alias or name for name, field in self.options.model_fields.items())


def make_agent(spec: str, options: Mapping[str, Any] | None = None, declarations: Declarations | None = None) -> Agent:
    """Make an agent for one attempt.

    Args:
        spec: One of :data:`FORMS`, or the name of an entry point of the group ``pytest_evocode.agents``, which may be
            followed by ``:`` and an argument.
        options: The values of the agent's options by name, or each an :class:`Option`.
        declarations: The agents and commands that the project declares.

    Raises:
        UsageError: The agent is unknown, with the nearest known one; or it does not take one of the options.
    """
    kind = find_kind(spec, declarations or Declarations())
    given = {name: each if isinstance(each, Option) else Option(each, spec) for name, each in (options or {}).items()}
    return kind.make(checked_options(spec, kind, given))


def harness_of(agent: Agent, spec: str) -> dict[str, str]:
    """Return the name and version of what drives an agent's model or tool; empty where that is not known.

    An agent of another package that does not say is driven by that package.
    """
    said = getattr(agent, "harness", None)
    if said is None and spec not in ("oracle", "nop", "human"):
        points = entry_points(group=ENTRY_POINTS, name=spec.partition(":")[0])
        said = next(((point.dist.name, point.dist.version) for point in points if point.dist is not None), None)
    return {} if said is None else {"name": str(said[0]), "version": str(said[1])}


def answered_by(agent: Agent, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return what decides who answers besides an agent's spec, as it says itself, else by its option ``base_url``."""
    said = getattr(agent, "answered_by", None)
    if said is not None:
        return dict(said)
    given = options.get("base_url")
    address = "" if given is None else plain_address(str(given.value))
    return {"base_url": address} if address else {}


def find_kind(spec: str, declarations: Declarations) -> Kind:
    """Return the kind of agent that a spec names; raises UsageError where it is unknown."""
    name, colon, argument = spec.partition(":")
    provider, slash, model = spec.partition("/")
    if spec in ("oracle", "nop", "human"):
        return _plain(spec)
    if name == "replay" and argument:
        return _replay(argument)
    if name == "acp" and argument.strip():
        return _acp(argument.strip())
    if name == "cmd" and argument:
        return _command(argument, declarations)
    if name in _INSTALLED and (argument or not colon):
        return _installed(name, argument or None)
    if slash and model and provider in provider_names():
        return _shell(provider, model)
    for point in entry_points(group=ENTRY_POINTS, name=name):
        return _from_callable(point.load(), (argument,) if colon else ())
    if colon and all(part.isidentifier() for part in name.split(".")) and argument.isidentifier():
        return _from_callable(_load(spec, name, argument), ())
    raise UsageError(unknown_agent(spec, declarations))


def unknown_agent(spec: str, declarations: Declarations) -> str:
    """Return the message for a spec of an unknown agent, with the nearest known one."""
    others = [*declarations.agents, *(point.name for point in entry_points(group=ENTRY_POINTS))]
    name, colon, argument = spec.partition(":")
    provider, slash, model = spec.partition("/")
    known = [
        "oracle",
        "nop",
        "human",
        "replay:",
        "acp:",
        "cmd:",
        *others,
        *(f"{each}:" for each in _INSTALLED),
        *(f"{each}/" for each in provider_names()),
    ]
    asked = f"{name}:" if colon else f"{provider}/" if slash else spec
    nearest = difflib.get_close_matches(asked, [*known, *_INSTALLED], n=1)
    hint = _hint(spec, nearest[0], argument or model) if nearest else ""
    return f"unknown agent {spec!r};{hint} known are {', '.join([*FORMS, *others])}"


def _hint(spec: str, nearest: str, rest: str) -> str:
    """Return what an unknown agent may be meant as, or that it lacks what follows its name."""
    if rest or nearest[-1] not in ":/":
        return f" did you mean '{nearest}{rest if nearest[-1] in ':/' else ''}'?"
    form = next((form for form in FORMS if form.startswith(nearest)), f"{nearest}MODEL")
    if spec.rstrip(":/") == nearest[:-1]:
        return f" write {form};"
    return f" did you mean '{form}'?"


def checked_options(spec: str, kind: Kind, options: Mapping[str, Option]) -> dict[str, Any]:
    """Return the validated options of a kind; raises UsageError for a wrong one."""
    for name, option in options.items():
        if not kind.takes(name):
            raise UsageError(f"{option.where}: {why_not_taken(spec, name, kind)}")
    if not isinstance(kind.options, type):
        return {name: option.value for name, option in options.items()}
    try:
        model = kind.options.model_validate({name: option.value for name, option in options.items()})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else next(iter(options), "")
        where = options[name].where if name in options else next((each.where for each in options.values()), spec)
        given = options[name].value if name in options else first["input"]
        raise UsageError(f"{where}: {name} = {given!r}: {what_is_wrong(first, kind.options, name)}") from None
    fields = kind.options.model_fields
    found = {fields[name].alias or name: getattr(model, name) for name in model.model_fields_set}
    return {name: _existing(name, value, options[name]) for name, value in found.items()}


def why_not_taken(spec: str, name: str, kind: Kind) -> str:
    """Return why an agent has no option of a name, with the nearest one and a value for it."""
    if name in kind.refusals:
        return f"{spec}: {kind.refusals[name]}"
    names = [each for each in kind.names if each not in kind.refusals]
    nearest = difflib.get_close_matches(name, names, n=1)
    if not nearest:
        return f"{spec} has no option {name!r}; " + (
            f"it takes {', '.join(sorted(names))}" if names else "it takes none"
        )
    value = example_of(kind.options, nearest[0]) if isinstance(kind.options, type) else ""
    return f"{spec} has no option {name!r}; did you mean {nearest[0]!r}?" + (f" Such as {value}" if value else "")


def _existing(name: str, value: Any, option: Option) -> Any:
    if not isinstance(value, Path):
        return value
    path = option.base / value.expanduser()
    if not path.exists():
        raise UsageError(f"{option.where}: {name} = {str(value)!r}: there is no {path}")
    return path


# The kinds. Each imports its agent only when one is made.


def _plain(spec: str) -> Kind:
    from pytest_evocode.agents.human import HumanAgent
    from pytest_evocode.agents.oracle import NopAgent, OracleAgent

    made: dict[str, Callable[[], Agent]] = {"oracle": OracleAgent, "nop": NopAgent, "human": HumanAgent}
    return Kind(lambda options: made[spec](), frozenset())


def _replay(path: str) -> Kind:
    from pytest_evocode.agents.replay import ReplayAgent

    return Kind(lambda options: ReplayAgent(Path(path)), frozenset())


def _shell(provider: str, model: str) -> Kind:
    from pytest_evocode.agents.shell.agent import ShellAgent, ShellOptions
    from pytest_evocode.llm.client_factory import make_client
    from pytest_evocode.llm.model_options import ModelOptions

    def make(options: dict[str, Any]) -> Agent:
        of_client = {name: value for name, value in options.items() if name in ModelOptions.model_fields}
        client = make_client(provider, model, ModelOptions(**of_client))
        return ShellAgent(client, ShellOptions(**options))

    return Kind(make, ShellOptions, refusals_of(provider))


def _installed(name: str, model: str | None) -> Kind:
    module, _, attribute = _INSTALLED[name].partition(":")
    agent = getattr(importlib.import_module(f"pytest_evocode.agents.installed.{module}"), attribute)
    return Kind(lambda options: agent(model, agent.options_type(**options)), agent.options_type)


def _acp(command: str) -> Kind:
    from pytest_evocode.agents.acp.agent import AcpAgent, AcpOptions

    return Kind(lambda options: AcpAgent(command, AcpOptions(**options)), AcpOptions)


def _command(name: str, declarations: Declarations) -> Kind:
    from pytest_evocode.agents.installed.declared_command import CommandAgent, CommandDeclaration

    declaration = declarations.commands.get(name)
    if declaration is None:
        nearest = difflib.get_close_matches(name, declarations.commands, n=1)
        known = ", ".join(declarations.commands) or "none"
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"declared are: {known}"
        raise UsageError(f"cmd:{name}: there is no [tool.pytest-evocode.commands.{name}] in pyproject.toml; {hint}")

    def make(options: dict[str, Any]) -> Agent:
        return CommandAgent(name, declared, **options)

    values = checked_options(f"the command {name!r}", Kind(make, CommandDeclaration), options_of(declaration))
    declared = CommandDeclaration(**values)
    return Kind(make, CommandAgent.options_type)


def options_of(declaration: Declaration) -> dict[str, Option]:
    """Return the values of a declaration as options, except for the spec."""
    return {
        name: Option(value, declaration.where, declaration.path.parent)
        for name, value in declaration.values.items()
        if name != "spec"
    }


def _load(spec: str, module: str, attribute: str) -> Any:
    try:
        return getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"{spec}: {module} cannot be imported: {error}") from None
    except AttributeError:
        raise UsageError(f"{spec}: {module} has no {attribute!r}") from None


def _from_callable(made: Callable[..., Agent], arguments: tuple[str, ...]) -> Kind:
    """Return the kind of a class or function of another package; its options are its parameters."""
    parameters = list(inspect.signature(made).parameters.values())[len(arguments) :]
    any_ = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    names = frozenset(parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL)

    def make(options: dict[str, Any]) -> Agent:
        try:
            inspect.signature(made).bind(*arguments, **options)
        except TypeError as error:
            raise UsageError(f"{getattr(made, '__qualname__', made)} cannot be made: {error}") from None
        return made(*arguments, **options)

    return Kind(make, None if any_ else names)
