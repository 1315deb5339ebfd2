"""Who an agent is: what its records say made it, a hash of that, and labels that show what differs between agents."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pytest_evocode.names import agent_id
from pytest_evocode.secrets import is_secret_name

if TYPE_CHECKING:
    from pytest_evocode.results.records import AttemptRecord, RunRecord

HASH_LENGTH = 10
"""Hexadecimal digits of an identity's hash."""
SHORT_HASH = 7
"""Hexadecimal digits of other hashes in labels and notes."""
NOT_SAID = "not said"
"""What stands where a record does not say something."""
#: By what means a model is reached and what it costs is not who the agent is.
_NOT_WHO = frozenset({
    "ca", "host", "key_env", "max_connections", "port", "prices", "retries", "retry_seconds", "url",
})  # fmt: skip
_SERVER = "base_url"
"""What records call the server that is asked, which is who answers, its port included."""
ANSWERED_BY = frozenset({_SERVER, "region", "api_version"})
"""What records say of who answers that need not be given as an option."""
CONTROLS = ("oracle", "nop")
"""The specs of agents that no score is an achievement of: the reference solution, and who does nothing."""
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"]+", re.IGNORECASE)
_TEMPORARY = re.compile(r"(?<![\w.])(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s'\":]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SHOWN = 32  # characters of a value in a label


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """An agent, as its records describe it; two with the same name and the same parts are one agent."""

    name: str
    """What people call it: its name in the project, or one made of its spec."""
    parts: tuple[tuple[str, str], ...] = ()
    """What it is made of, in order: ``spec``, ``harness``, ``version``, ``model``, and its options and command, as
    ``options.effort``; none where records do not say. Neither secrets nor what differs from run to run are in it.
    """
    shown: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The values of parts for people, where that is another text, such as a file's name for the hash of its contents.
    """

    @property
    def hash(self) -> str:
        """The first digits of a SHA-256 over name and parts, in hex."""
        return short_hash([self.name, self.parts], HASH_LENGTH)

    @property
    def is_control(self) -> bool:
        """Whether it is there to tell what others' scores mean, and is ranked with none."""
        return dict(self.parts).get("spec", self.name) in CONTROLS


def short_hash(values: Any, length: int = SHORT_HASH) -> str:
    """Return the first digits of a SHA-256 over JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:length]


def identity_of(made_by: Mapping[str, Any], agent: str) -> AgentIdentity:
    """Return who an agent is.

    Args:
        made_by: Its description in records; empty where they have none.
        agent: Its name in the records.

    >>> made_by = {"spec": "openai/gpt-5", "options": {"effort": "high", "retries": 3}}
    >>> identity_of(made_by, "gpt-5").parts
    (('options.effort', 'high'), ('spec', 'openai/gpt-5'))
    """
    parts: dict[str, str] = {}
    shown: dict[str, str] = {}
    for key, value, text in _flat({name: part for name, part in made_by.items() if name not in ("name", "harness")}):
        parts[key] = value
        if text != value:
            shown[key] = text
    harness = made_by.get("harness")
    if isinstance(harness, Mapping):
        parts |= {"harness": str(harness.get("name", "")), "version": str(harness.get("version", ""))}
    if "version" in parts and parts.get("options.version") == parts["version"]:
        del parts["options.version"]
    return AgentIdentity(str(made_by.get("name") or agent), tuple(sorted(parts.items())), tuple(sorted(shown.items())))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the key, the value and the text for people of each value that says who an agent is."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        if value is None or name in _NOT_WHO or (is_secret_name(str(name)) and not str(value).isdecimal()):
            continue  # A number of tokens is no secret.
        if isinstance(value, Mapping) and "sha256" in value:
            digest = str(value["sha256"])
            yield key, digest, PurePath(str(value.get("path", ""))).name or digest[:SHORT_HASH]
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        elif name == _SERVER:
            yield key, *_server(str(value))
        else:
            text = lasting(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
            yield key, text, text if len(text) <= _LONGEST_SHOWN else short_hash(text)


def given_prices(made_by: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name and the SHA-256 of the file of prices that an agent was given; both are empty without one.

    >>> given_prices({"options": {"prices": {"path": "old/prices.toml", "sha256": "1a"}}})
    ('prices.toml', '1a')
    """
    options = made_by.get("options")
    given = options.get("prices") if isinstance(options, Mapping) else None
    if isinstance(given, Mapping):
        return PurePath(str(given.get("path", ""))).name, str(given.get("sha256", ""))
    return str(given or ""), ""


def _server(address: str) -> tuple[str, str]:
    """Return a server without what may be a secret, and what people call it: its host and port.

    >>> _server("http://me:key@127.0.0.1:8000/v1/?token=x")
    ('127.0.0.1:8000/v1', '127.0.0.1:8000')
    """
    try:
        url = urlsplit(address)
    except ValueError:
        return "URL", "URL"
    place = url.netloc.rpartition("@")[2].lower()
    return f"{place}{url.path.rstrip('/')}", place


def lasting(text: str) -> str:
    """Return a text without what differs from run to run: temporary paths; passwords, ports and queries of URLs.

    >>> lasting("run --at http://me:key@127.0.0.1:80/v1?token=x --log /tmp/a1/log --in /work")
    'run --at http://127.0.0.1/v1 --log TMP --in /work'
    """

    def plain(match: re.Match[str]) -> str:
        try:
            url = urlsplit(match[0])
            return f"{url.scheme}://{url.hostname or ''}{url.path}"
        except ValueError:
            return "URL"

    return _TEMPORARY.sub("TMP", _URL.sub(plain, text))


DEFAULT_SETTINGS = {"timeout-multiplier": "1", "verify-times": "1"}
"""The settings that records have without that they were given."""


class Conditions(NamedTuple):
    """What changes the meaning of an attempt's score besides the agent and the task; None is not said."""

    environment: str = ""
    """The engine; empty where it is not known."""
    strict: bool | None = None
    """Whether suites found nothing of the agent's system that the task does not declare."""
    verify: str | None = None
    """How suites were judged by the session's choice; None is by the tasks', or, where ``strict`` is None, not said."""
    settings: tuple[tuple[str, str], ...] | None = None
    """The other options and settings that can change a verdict or a score, by name; None is not said."""

    def texts(self) -> tuple[str, str, str]:
        """Return each condition but the settings for people."""
        said = self.strict is not None
        return (
            self.environment or f"environment {NOT_SAID}",
            ("strict" if self.strict else "not strict") if said else f"strict {NOT_SAID}",
            f"verify={self.verify or 'task'}" if said or self.verify else f"verify {NOT_SAID}",
        )

    def off_defaults(self) -> list[str]:
        """Return what is not as in a session that gives none of it, for people, besides the environment."""
        words = [*(["strict"] if self.strict else []), *([f"verify={self.verify}"] if self.verify else [])]
        return words + [f"{name}={value}" for name, value in self.settings or () if DEFAULT_SETTINGS.get(name) != value]

    def setting(self, name: str) -> str:
        """Return a setting for people."""
        if self.settings is None:
            return f"conditions {NOT_SAID}"
        value = dict(self.settings).get(name)
        return f"no {name}" if value is None else f"{name}={value}"


_WITHOUT_EFFECT = frozenset({"version", "image"})
"""What of recorded conditions keeps attempts not apart: it is only told where it differs."""
_OF_THEIR_OWN = frozenset({"strict", "verify"})
"""Of these records have fields, too, which earlier versions had alone."""


def settings_of(conditions: Mapping[str, str] | None) -> tuple[tuple[str, str], ...] | None:
    """Return the settings of recorded conditions that keep attempts apart, in order.

    >>> settings_of({"verify-times": "3", "strict": "yes", "version": "1.2"}), settings_of(None)
    ((('verify-times', '3'),), None)
    """
    if conditions is None:
        return None
    left_out = _WITHOUT_EFFECT | _OF_THEIR_OWN
    return tuple(sorted((name, value) for name, value in conditions.items() if name not in left_out))


def differing_descriptions(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return what differs between two descriptions of an agent in records, for people.

    >>> differing_descriptions({"spec": "openai/gpt-5"}, {"spec": "openai/gpt-5", "options": {"temperature": 0.5}})
    ['no options.temperature against options.temperature 0.5']
    """
    return _differing(dict(_leaves(first)), dict(_leaves(second)))


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def differing_settings(first: Mapping[str, str] | None, second: Mapping[str, str] | None) -> list[str]:
    """Return what differs between recorded conditions, for people; nothing where one of them is not known.

    >>> differing_settings({"verify-times": "1", "version": "1"}, {"verify-times": "3", "budget": "turns=9"})
    ['no budget against budget turns=9', 'verify-times 1 against 3']
    """
    if first is None or second is None:
        return []
    return _differing(dict(settings_of(first) or ()), dict(settings_of(second) or ()))


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    found = []
    for name in sorted({*one, *other}):
        if name in one and name in other and one[name] != other[name]:
            found.append(f"{name} {one[name]} against {other[name]}")
        elif one.get(name) != other.get(name):
            found.append(" against ".join(f"{name} {of[name]}" if name in of else f"no {name}" for of in (one, other)))
    return found


def differing_conditions(first: Conditions, second: Conditions) -> list[str]:
    """Return what is said to differ between two conditions besides the environment, for people.

    >>> differing_conditions(Conditions("docker", True, None, ()), Conditions("sandbox", False, None, ()))
    ['strict against not strict']
    """
    pairs = list(zip(first.texts(), second.texts(), strict=True))[1:]
    said = [
        " against ".join(pair) for pair in pairs if pair[0] != pair[1] and not any(NOT_SAID in each for each in pair)
    ]
    known = [None if each.settings is None else dict(each.settings) for each in (first, second)]
    return [*said, *differing_settings(*known)]


def conditions_of(record: AttemptRecord | RunRecord) -> Conditions:
    """Return the conditions that a record tells."""
    return Conditions(record.environment, record.strict, record.verify, settings_of(record.conditions))


def conditions_hash(conditions: Conditions) -> str | None:
    """Return the first digits of a SHA-256 over what keeps attempts apart besides the agent; None where it is not said.

    So it is the same of a run, of its attempts and of their row, whatever their tasks, images and versions.
    """
    return None if conditions.settings is None else short_hash(conditions)


def condition_columns(conditions: Sequence[Conditions]) -> list[tuple[str, ...]]:
    """Return for each condition its text in each of some conditions."""
    names = sorted({name for each in conditions for name, _ in each.settings or ()})
    silent = any(each.settings is None for each in conditions) and not names
    columns = list(zip(*(each.texts() for each in conditions), strict=True))
    columns += [tuple(each.setting(name) for each in conditions) for name in names]
    # Where some say that nothing was given, and others say nothing.
    return columns + ([tuple(each.setting("conditions") for each in conditions)] if silent else [])


class Subject(NamedTuple):
    """Whose attempts are scored together: an agent under the same conditions."""

    agent: AgentIdentity
    conditions: Conditions


UNKNOWN = Subject(AgentIdentity(""), Conditions())
"""Nobody that is known."""


def are_different(first: str, second: str) -> bool:
    """Return whether two hashes of a task's contents are of different contents, as far as is known.

    Those that others made, such as Harbor, are made in another way.

    >>> are_different("1a", "2b"), are_different("1a", ""), are_different("1a", "harbor:2b")
    (True, False, False)
    """
    kinds = {digest.rpartition(":")[0] for digest in (first, second)}
    return bool(first and second) and first != second and len(kinds) == 1


def short_contents(digest: str) -> str:
    """Return the first digits of the hash of a task's contents, for people.

    >>> short_contents("harbor:0123456789"), short_contents("")
    ('0123456', 'not-known')
    """
    return digest.rpartition(":")[2][:SHORT_HASH] or "not-known"


def contents_label(contents: Mapping[str, str]) -> str:
    """Return a label for the contents of some tasks, by their hashes.

    >>> contents_label({"ledger": "0123456789"})
    'ledger@0123456'
    """
    if len(contents) == 1:
        ((task, digest),) = contents.items()
        return f"{task}@{short_contents(digest)}"
    return f"{len(contents)} tasks@{short_hash(sorted(contents.items()))}"


def subject_labels(subjects: Iterable[Subject]) -> dict[Subject, str]:
    """Return a label for each subject: its agent's name, the options given to it, and conditions off their defaults.

    The environment is there where subjects of one name have several, and of those that would be called alike what
    differs. A name that the project declares stands for the options that are declared with it.

    >>> gpt = identity_of({"spec": "openai/gpt-5", "options": {"effort": "high"}}, "gpt-5")
    >>> thrice = Conditions("docker", False, None, (("verify-times", "3"),))
    >>> list(subject_labels([Subject(gpt, Conditions("docker", False, None, ())), Subject(gpt, thrice)]).values())
    ['gpt-5 effort=high', 'gpt-5 effort=high verify-times=3']
    """
    by_name: dict[str, list[Subject]] = defaultdict(list)
    for subject in dict.fromkeys(subjects):
        by_name[subject.agent.name].append(subject)
    found: dict[Subject, str] = {}
    for of_name in by_name.values():
        in_several = len({subject.conditions.environment for subject in of_name}) > 1
        alike: dict[str, list[Subject]] = defaultdict(list)
        for subject in of_name:
            environment = subject.conditions.texts()[:1] if in_several else ()
            words = [_label(subject.agent, _given(subject.agent)), *environment, *subject.conditions.off_defaults()]
            alike[" ".join(words)].append(subject)
        for label, group in alike.items():
            found |= _told_apart(group) if len(group) > 1 else {group[0]: label}
    counts = Counter(found.values())
    return {each: label if counts[label] == 1 else f"{label} {each.agent.hash}" for each, label in found.items()}


def _told_apart(subjects: Sequence[Subject]) -> dict[Subject, str]:
    """Return the labels of subjects that would be called alike, with what differs between them."""
    keys = differing_parts([subject.agent for subject in subjects])
    columns = [each for each in condition_columns([subject.conditions for subject in subjects]) if len({*each}) > 1]
    found = {}
    for place, subject in enumerate(subjects):
        words = [_label(subject.agent, sorted({*keys, *_given(subject.agent)})), *subject.conditions.off_defaults()]
        # Where some do not say it, the others are as they are by default.
        words += dict.fromkeys(column[place] for column in columns if not any(map(_is_silent, column)))
        texts = [column[place] for column in columns if _is_silent(column[place])]
        silent = dict.fromkeys(text.removesuffix(f" {NOT_SAID}") for text in texts)
        # What is not said together is said once.
        words += [f"({' and '.join(silent)} {NOT_SAID})"] if silent else []
        found[subject] = " ".join(words)
    return found


def _is_silent(text: str) -> bool:
    return text.endswith(NOT_SAID)


def _given(agent: AgentIdentity) -> list[str]:
    """Return the keys of the options of an agent whose name does not stand for them, as it is that of its spec."""
    parts = dict(agent.parts)
    is_own = "spec" in parts and agent_id(parts["spec"]) == agent.name
    return [key for key in parts if is_own and key.startswith("options.")]


def differing_parts(agents: Sequence[AgentIdentity]) -> list[str]:
    """Return the keys of the parts that are not the same in all of some agents, in order."""
    tables = [dict(agent.parts) for agent in agents]
    keys = sorted({key for table in tables for key in table})
    return [key for key in keys if len({table.get(key) for table in tables}) > 1]


def _label(agent: AgentIdentity, keys: Sequence[str]) -> str:
    parts = dict(agent.parts)
    shown = parts | dict(agent.shown)
    if keys and not parts:
        return f"{agent.name} ({NOT_SAID})"
    words = [agent.name]
    if "spec" in keys and "spec" in parts:
        words = [parts["spec"]] if agent_id(parts["spec"]) == agent.name else [agent.name, parts["spec"]]
    bare = [key for key in ("harness", "version", "model") if key in keys]
    words += [shown[key] for key in bare if shown.get(key)]
    words += [
        f"{key.removeprefix('options.')}={shown[key]}" for key in keys if key not in ("spec", *bare) and key in parts
    ]
    if "version" in keys and "version" not in parts:
        words.append(f"(harness {NOT_SAID})")
    return " ".join(words)


def distinct_names(agents: Sequence[tuple[str, AgentIdentity]]) -> list[str]:
    """Return a name for each agent of a session that no other one has.

    It is the agent's own name where that is enough, else made of what differs. Names are valid in node ids.

    Args:
        agents: Each agent as it was given, all different, and who it is.

    >>> gpt = [(spec, identity_of({"spec": spec}, "gpt-5")) for spec in ("openai/gpt-5", "anthropic/gpt-5")]
    >>> distinct_names(gpt)
    ['openai-gpt-5', 'anthropic-gpt-5']
    """
    names = [agent.name for _, agent in agents]
    for name in {name for name in names if names.count(name) > 1}:
        places = [place for place, each in enumerate(names) if each == name]
        keys = [key for key in differing_parts([agents[place][1] for place in places]) if key != "spec"]
        specs = _differing_tokens([agents[place][0] for place in places])
        for place, tokens in zip(places, specs, strict=True):
            given, agent = agents[place]
            shown = dict(agent.parts) | dict(agent.shown)
            # A dot and a number at the end would be those of an attempt.
            of_options = [f"{key.rpartition('.')[2]}-{shown[key]}".replace(".", "-") for key in keys if key in shown]
            is_replay = given.startswith("replay:")
            words = [name, *tokens] if is_replay else [*tokens, name, *of_options]
            names[place] = _NOT_IN_NAMES.sub("-", "-".join(words)).strip("-.")
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name}-{short_hash([given, agent.hash])}"
        for name, (given, agent) in zip(names, agents, strict=True)
    ]


def _differing_tokens(specs: Sequence[str]) -> list[list[str]]:
    """Return the parts between ``:`` and ``/`` of each spec, without those at its ends that all have.

    >>> _differing_tokens(["replay:a/ledger__a1", "replay:b/c/ledger__a1"]), _differing_tokens(["gpt", "openai/gpt"])
    ([['a'], ['b', 'c']], [[], ['openai']])
    """
    tokens = [re.split(r"[:/]+", spec) for spec in specs]
    shortest = min(map(len, tokens))
    after = next((place for place in range(shortest) if len({each[-1 - place] for each in tokens}) > 1), shortest)
    tokens = [each[: len(each) - after] for each in tokens]
    shortest = min(map(len, tokens))
    before = next((place for place in range(shortest) if len({each[place] for each in tokens}) > 1), shortest)
    return [each[before:] for each in tokens]
