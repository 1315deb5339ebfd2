"""Parsing a Dockerfile for replay in sandboxes, or saying why that takes Docker, and finding what it copies."""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import posixpath
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from pytest_evocode.environments.archive import lay_over
from pytest_evocode.environments.sandbox.environment import PATH
from pytest_evocode.environments.sandbox.given_images import (
    GivenImage,
    ImageConfig,
    full_name,
    is_this_machine,
    machine,
)
from pytest_evocode.errors import BuildError, NeedsDocker
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks import Healthcheck
from pytest_evocode.tasks.compose_file import parse_seconds

#: Interpreters that a FROM image promises and the host has to have instead.
_PROMISED = {
    "python": "python3", "node": "node", "golang": "go", "rust": "cargo", "ruby": "ruby", "gcc": "gcc",
    "openjdk": "java", "eclipse-temurin": "java", "maven": "mvn", "gradle": "gradle", "php": "php", "perl": "perl",
}  # fmt: skip
_WITHOUT_EFFECT = {"LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "CMD"}
# As BuildKit has them: what stands for a here-document is a whole word, and any other is the shell's own matter.
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""", re.DOTALL)
_HERE_DOCUMENT = re.compile(r"\d*<<(-?)([^<]+)")
_ESCAPE_DIRECTIVE = re.compile(r"(?:\s*#\s*\w+\s*=.*\n)*?\s*#\s*escape\s*=\s*`\s*$", re.IGNORECASE | re.MULTILINE)
_VARIABLE = re.compile(r"(?<!\\)\$(?:(\w+)|\{(\w+)(?::([-+])((?:\$\{[^}]*\}|[^}])*))?\})")
_OPTION = re.compile(r"--([\w-]+)(?:=(\S+))?\s+")


@dataclass(frozen=True, slots=True)
class HereDocument:
    """Lines of a Dockerfile that are a file or a program's input."""

    mark: str
    """What stands for it in the instruction."""
    name: str
    text: str
    """Without the tabs that ``<<-`` strips."""
    lines: str
    """The lines as they are, with the one that ends them."""

    @property
    def is_literal(self) -> bool:
        """Whether its variables stay."""
        return self.mark.partition("<<")[2].removeprefix("-") != self.name


@dataclass(frozen=True, slots=True)
class CopyInstruction:
    """A COPY or ADD of local files."""

    line: int
    sources: tuple[str, ...]
    target: str
    mode: int | None
    owner: str | None
    extract: bool
    """Whether local tar archives are unpacked, as ADD does."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Files that are here-documents, by name."""
    origin: Stage | GivenImage | None = None
    """What the sources are in; None for the build context."""


@dataclass(frozen=True, slots=True)
class RunInstruction:
    """A RUN, as argv, or a WORKDIR or VOLUME, as what makes the directory."""

    line: int
    argv: tuple[str, ...]
    text: str
    env: Mapping[str, str]
    """The variables that ARG and ENV have set so far."""
    workdir: str
    user: str


@dataclass(slots=True)
class Stage:
    """A stage of a Dockerfile: what it begins with, and what it does, in order."""

    dockerfile: Path
    number: int = 0
    """From 0."""
    name: str = ""
    base: str = ""
    base_line: int = 1
    below: Stage | GivenImage | None = None
    """What it begins with; None where the host's system stands in for that."""
    steps: list[CopyInstruction | RunInstruction] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    """What ARG has set."""
    config: ImageConfig = field(default_factory=ImageConfig)
    """What is set so far."""

    def __post_init__(self) -> None:
        """Take what the image or stage that it begins with sets."""
        if self.below is not None:
            self.config = self.below.config.model_copy(deep=True)
        if isinstance(self.below, Stage):
            self.arguments = dict(self.below.arguments)

    @property
    def promised_tool(self) -> str | None:
        """The program that images of this name are known to have; None where nothing is known."""
        return _PROMISED.get(self.base.split("@")[0].split(":")[0].rpartition("/")[2])

    @property
    def origins(self) -> Iterator[Stage | GivenImage]:
        """Yield what it begins with and what it copies from."""
        for origin in (self.below, *(step.origin for step in self.steps if isinstance(step, CopyInstruction))):
            if origin is not None:
                yield origin

    def needed(self) -> list[Stage]:
        """Return the stages that it needs and then itself, each after those that it needs."""
        found = {self.number: self}
        waiting = [self]
        while waiting:
            for origin in waiting.pop().origins:
                if isinstance(origin, Stage) and origin.number not in found:
                    found[origin.number] = origin
                    waiting.append(origin)
        return [found[number] for number in sorted(found)]

    def given(self) -> dict[str, GivenImage]:
        """Return the images that the user gave and that it needs, by their digests."""
        origins = (origin for stage in self.needed() for origin in stage.origins)
        return {origin.digest: origin for origin in origins if isinstance(origin, GivenImage)}

    def bottom(self) -> GivenImage | None:
        """Return the image that is below it and the stages that it begins with; None for the host's system."""
        below = self.below
        return below.bottom() if isinstance(below, Stage) else below


def read_dockerfile(dockerfile: Path, images: Mapping[str, GivenImage] = MappingProxyType({})) -> Stage:
    """Parse a Dockerfile, and return its last stage.

    Args:
        dockerfile: The file.
        images: Images that take the place of the host's system, by their full names.

    Raises:
        NeedsDocker: It has an instruction that cannot be replayed.
        BuildError: It has a mistake.
    """
    arguments = _arguments_of_platforms()
    stages: list[Stage] = []
    for line, name, value, documents in _instructions(dockerfile):
        if name in _WITHOUT_EFFECT:
            continue
        if name == "FROM":
            stages.append(_begin(dockerfile, line, value, arguments, stages, images))
        elif stages:
            _add(_Instruction(stages, images, line, name, value, documents), arguments)
        elif name == "ARG":
            arguments |= _arguments(_put_defaults(value, arguments), arguments, arguments)
    if not stages:
        raise BuildError(f"{dockerfile}: no FROM line; start the file with FROM and an image")
    return stages[-1]


def _arguments_of_platforms() -> dict[str, str]:
    """Return the arguments that BuildKit has for FROM, and in stages for ARG without a value."""
    parts = {"PLATFORM": f"linux/{machine()}", "OS": "linux", "ARCH": machine(), "VARIANT": ""}
    return {f"{whose}{part}": value for whose in ("BUILD", "TARGET") for part, value in parts.items()}


def _begin(
    dockerfile: Path,
    line: int,
    value: str,
    arguments: Mapping[str, str],
    stages: Sequence[Stage],
    images: Mapping[str, GivenImage],
) -> Stage:
    """Begin a stage as FROM says, with all that the image or the earlier stage of that name sets."""
    words = _split(_put_defaults(value, arguments), arguments)
    options = [word for word in words if word.startswith("--")]
    base, *rest = [word for word in words if word not in options] or [""]
    if not base or (rest and (len(rest) != 2 or rest[0].upper() != "AS")):
        raise BuildError(f"{dockerfile}:{line}: FROM takes an image, and maybe AS and a name; correct it")
    for option in options:
        name, _, wanted = option.partition("=")
        if name != "--platform" or not is_this_machine(wanted):
            raise NeedsDocker(dockerfile, line, f"FROM {option} is not replayed on linux/{machine()}")
    below = _find_stage(base, stages) or (images.get(full_name(base)) if base != "scratch" else None)
    return Stage(dockerfile, len(stages), rest[1].lower() if rest else "", base, line, below)


def _find_stage(name: str, stages: Sequence[Stage]) -> Stage | None:
    return next((stage for stage in reversed(stages) if stage.name and stage.name == name.lower()), None)


@dataclass(frozen=True, slots=True)
class _Instruction:
    """An instruction of the last of the stages so far."""

    stages: Sequence[Stage]
    images: Mapping[str, GivenImage]
    line: int
    name: str
    value: str
    documents: Sequence[HereDocument]


def _add(instruction: _Instruction, arguments: Mapping[str, str]) -> None:
    """Add an instruction to its stage; ``arguments`` are those before the first FROM."""
    from dockerfile_parse.util import extract_key_values

    stage, line, name = instruction.stages[-1], instruction.line, instruction.name
    config = stage.config
    known = {"PATH": PATH, **stage.arguments, **config.env}
    value = instruction.value
    if name not in ("RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"):
        value = _put_defaults(value, known)
    match name:
        case "ARG":
            stage.arguments |= _arguments(value, known, {**arguments, **stage.arguments})
        case "ENV":
            # Of the old form, too: `ENV A the rest`.
            config.env.update(extract_key_values(env_replace=True, args=known, envs={}, instruction_value=value))
        case "WORKDIR":
            config.workdir = _join(config.workdir, "".join(_split(value, known)))
            stage.steps.append(_make_directory(line, config.workdir))
        case "VOLUME":
            stage.steps += [_make_directory(line, path) for path in _json_list(value) or _split(value, known)]
        case "USER":
            config.user = "".join(_split(value, known)).partition(":")[0]
        case "SHELL":
            config.shell = tuple(_json_list(value) or config.shell)
        case "ENTRYPOINT":
            words = _json_list(value)
            config.entry_point = (*config.shell, value) if words is None else tuple(words)
        case "HEALTHCHECK":
            config.healthcheck = _healthcheck(stage.dockerfile, line, value)
        case "RUN":
            stage.steps += _mounts(stage.dockerfile, line, value, known, config.workdir)
            argv = _run(value, config.shell, instruction.documents)
            stage.steps.append(RunInstruction(line, argv, value, known, config.workdir, config.user))
        case "COPY" | "ADD":
            stage.steps.append(_copy(instruction, value, known))
        case "ONBUILD":
            raise NeedsDocker(stage.dockerfile, line, f"{name} is not replayed")
        case _:
            raise BuildError(f"{stage.dockerfile}:{line}: Dockerfiles have no instruction {name}; correct it")


def _arguments(value: str, known: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return what an ARG declares; one without a value has that of an ARG before FROM."""
    words = [word.partition("=") for word in _split(value, known)]
    return {key: default if is_given else before.get(key, "") for key, is_given, default in words}


def _make_directory(line: int, path: str) -> RunInstruction:
    return RunInstruction(line, ("mkdir", "-p", path), f"mkdir -p {path}", {}, "/", "0")


def _healthcheck(dockerfile: Path, line: int, value: str) -> Healthcheck | None:
    given, value = _options(value)
    options = dict(given)
    kind, _, rest = value.partition(" ")
    kind, retries = kind.upper(), options.pop("retries", "0")
    words = _json_list(rest)
    test = ["NONE"] if kind == "NONE" else ["CMD-SHELL", rest] if words is None else ["CMD", *words]
    try:
        if kind not in {"CMD", "NONE"} or (kind == "CMD" and test[1:] in ([], [""])):
            raise ValueError
        times = {name.replace("-", "_"): parse_seconds(said) for name, said in options.items()}
        times.pop("start_interval", None)
        return Healthcheck.of_engine(test, **times, retries=int(retries))
    except (TypeError, ValueError):
        message = "HEALTHCHECK takes its options, such as --interval=5s, and then CMD and a command, or NONE"
        raise BuildError(f"{dockerfile}:{line}: {message}; correct it") from None


def _instructions(dockerfile: Path) -> Iterator[tuple[int, str, str, list[HereDocument]]]:
    """Yield the line, the name in capitals, the rest and the here-documents of each instruction.

    Raises BuildError where a here-document does not end.
    """
    text = dockerfile.read_bytes().decode("utf-8-sig", errors="replace")
    continued = re.compile(r"`[ \t]*$" if _ESCAPE_DIRECTIVE.match(text) else r"\\[ \t]*$")
    lines = iter(enumerate(re.split(r"\r?\n", text), start=1))
    for number, line in lines:
        if _is_nothing(line):
            continue
        instruction = ""
        while end := continued.search(line):
            instruction += line[: end.start()]
            line = next((each for _, each in lines if not _is_nothing(each)), "")
        name, value = [*(instruction + line.rstrip()).split(maxsplit=1), ""][:2]
        # Where a quote does not end there are no words.
        has_words = name.upper() in ("RUN", "COPY", "ADD") and not _WORD.sub("", value).strip()
        marks = _WORD.findall(value) if has_words else []
        found = [_read_document(f"{dockerfile}:{number}", mark, lines) for mark in marks]
        yield number, name.upper(), value, [each for each in found if each is not None]


def _is_nothing(line: str) -> bool:
    """Tell whether a line is empty or a comment, which does not end an instruction that goes on."""
    return not line.strip() or line.lstrip().startswith("#")


def _read_document(place: str, mark: str, lines: Iterator[tuple[int, str]]) -> HereDocument | None:
    """Take the lines of what a word stands for; None where that is no here-document."""
    found = _HERE_DOCUMENT.fullmatch(mark)
    name = re.sub(r"[\"'\\]", "", found[2]) if found else ""
    if not found or not name:
        return None
    text = whole = ""
    for _, line in lines:
        whole += f"{line}\n"
        line = line.lstrip("\t") if found[1] else line
        if line == name:
            return HereDocument(mark, name, text, whole)
        text += f"{line}\n"
    raise BuildError(f"{place}: the here-document {name} does not end; add a line {name}")


def _default(found: re.Match[str], known: Mapping[str, str], *, all_others: bool = False) -> str:
    """Return what ``${NAME:-default}`` or ``${NAME:+other}`` stands for; any other variable as it is by default."""
    name, kind, other = found[1] or found[2], found[3], found[4]
    if kind is None:
        return known.get(name, "") if all_others else found[0]
    if bool(known.get(name)) == (kind == "+"):
        return _VARIABLE.sub(partial(_default, known=known, all_others=all_others), other)
    return known.get(name, "")


def _put_defaults(text: str, known: Mapping[str, str]) -> str:
    """Return a text with what such variables stand for, which the splitter of words does not know."""
    return _VARIABLE.sub(partial(_default, known=known), text)


def _put_in(text: str, known: Mapping[str, str]) -> str:
    """Return a here-document with its variables put in, and what a backslash escapes as it is."""
    replace = partial(_default, known=known, all_others=True)
    pieces = re.split(r"\\(.|\n)", text)
    return "".join(piece if number % 2 else _VARIABLE.sub(replace, piece) for number, piece in enumerate(pieces))


def _mounts(dockerfile: Path, line: int, value: str, known: Mapping[str, str], workdir: str) -> list[RunInstruction]:
    """Return what makes directories where a RUN has its mounts; what a cache would have is made or fetched anew."""
    mounts: list[str] = []
    for name, said in _options(value)[0]:
        if not (name == "mount" and re.match(r"(.*,)?type=(cache|tmpfs)(,|$)", said)):
            raise NeedsDocker(dockerfile, line, f"RUN --{name}={said} is not replayed")
        mounts += re.findall(r"(?:^|,)(?:target|dst|destination)=([^,]+)", _put_in(said, known))
    return [_make_directory(line, _join(workdir, mount)) for mount in mounts]


def _run(value: str, shell: tuple[str, ...], documents: Sequence[HereDocument]) -> tuple[str, ...]:
    value = _options(value)[1]
    if documents and value.strip() == documents[0].mark:
        script = documents[0].text
        if script.startswith("#!"):
            script = 'file=$(mktemp) && printf %s "$1" > "$file" && chmod +x "$file" && "$file"'
            return ("/bin/sh", "-c", script, "sh", documents[0].text)
        return (*shell, script)
    if documents:
        return (*shell, f"{value}\n{''.join(each.lines for each in documents)}")
    return tuple(_json_list(value) or (*shell, value))


def _copy(instruction: _Instruction, value: str, known: Mapping[str, str]) -> CopyInstruction:
    stage, line, name = instruction.stages[-1], instruction.line, instruction.name
    dockerfile, documents = stage.dockerfile, instruction.documents
    given, value = _options(value)
    options = dict(given)
    if unknown := set(options) - {"chmod", "chown", "link", *(["from"] if name == "COPY" else [])}:
        raise NeedsDocker(dockerfile, line, f"{name} --{min(unknown)} is not replayed")
    for each in documents:
        value = value.replace(each.mark, f"<<{each.name}", 1)
    words = _json_list(value) or _split(value, known)
    if len(words) < 2:
        raise BuildError(f"{dockerfile}:{line}: {name} needs a source and a target")
    *sources, target = words
    texts = {each.name: each.text if each.is_literal else _put_in(each.text, known) for each in documents}
    sources = [source for source in sources if source not in {f"<<{name}" for name in texts}]
    for source in sources:
        if re.match(r"(https?|git)(://|@)", source):
            raise NeedsDocker(dockerfile, line, f"{name} of {source} needs a network")
    slash = "/" if target.endswith(("/", "/.")) or target == "." else ""
    mode = int(options["chmod"], 8) if re.fullmatch(r"[0-7]{3,4}", options.get("chmod", "")) else None
    if "chmod" in options and mode is None:
        raise NeedsDocker(dockerfile, line, f"{name} --chmod={options['chmod']} is not replayed; write it in octal")
    return CopyInstruction(
        line,
        tuple(sources),
        _join(stage.config.workdir, target) + slash,
        mode,
        options.get("chown"),
        name == "ADD",
        texts,
        _find_origin(instruction, _put_in(options["from"], known)) if "from" in options else None,
    )


def _find_origin(instruction: _Instruction, said: str) -> Stage | GivenImage:
    """Return what COPY --from names: a stage by its number or name, else an image."""
    *earlier, stage = instruction.stages
    found = earlier[int(said)] if said.isdecimal() and int(said) < len(earlier) else _find_stage(said, earlier)
    image = found or instruction.images.get(full_name(said))
    if image is None:
        why = f"COPY --from={said} takes files of an image that is not given; --evocode-image={said}=PATH gives it"
        raise NeedsDocker(stage.dockerfile, instruction.line, why)
    return image


def _options(value: str) -> tuple[list[tuple[str, str]], str]:
    options: list[tuple[str, str]] = []
    while match := _OPTION.match(value):
        options.append((match[1], match[2] or ""))
        value = value[match.end() :]
    return options, value


def _join(workdir: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(workdir, path))


def _json_list(value: str) -> list[str] | None:
    """Return the words of the exec form; None for the shell form."""
    try:
        words = json.loads(value)
    except ValueError:
        return None
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else None


def _split(value: str, known: Mapping[str, str]) -> list[str]:
    """Split into words, without quotes and with variables replaced."""
    from dockerfile_parse.util import WordSplitter

    return [word for word in WordSplitter(value, args=dict(known)).split() if word is not None]


_NAMED = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(\S+)|--from=(\S+)", re.IGNORECASE | re.MULTILINE)
_DEFAULT = re.compile(r"^\s*ARG\s+(\w+)=[\"']?([^\s\"']+)", re.IGNORECASE | re.MULTILINE)
_FINISHED = re.compile(r"^\s*docker_image\s*=\s*[\"']([^\"']+)", re.MULTILINE)


def names_in(task: Path) -> set[str]:
    """Return what may be the name of an image in the Dockerfiles and the ``task.toml`` of a task's directory."""
    names: set[str] = set()
    for dockerfile in task.rglob("Dockerfile*"):
        text = dockerfile.read_text(errors="replace") if dockerfile.is_file() else ""
        arguments = dict(_DEFAULT.findall(text))
        names |= {_put_in(base or origin, arguments) for base, origin in _NAMED.findall(text)}
    return names | {*_FINISHED.findall((task / TASK_FILE).read_text(errors="replace"))}


def find_files(
    dockerfile: Path, copy: CopyInstruction, scratch: Path, into_directory: bool
) -> tuple[dict[str, Path], bool]:
    """Find what is to be copied.

    Args:
        dockerfile: The Dockerfile.
        copy: The instruction.
        scratch: An empty directory for what is unpacked, and for here-documents.
        into_directory: Whether the target is known to be a directory.

    Returns:
        The files and directories by their paths in the target, and whether they go into it or one is the target itself.
    """
    context = dockerfile.parent
    kept = _context_files(context)
    found = [path for source in copy.sources for path in _find(context, source, kept, dockerfile, copy.line)]
    unpacked, written = scratch / "unpacked", scratch / "documents"
    for directory in (unpacked, written):
        directory.mkdir()
    for name, text in copy.documents.items():
        found.append(written / name)
        found[-1].write_text(text)
        found[-1].chmod(0o644)
    into_directory = into_directory or len(found) > 1
    members: dict[str, Path] = {}
    for path in found:
        if copy.extract and path.is_file() and tarfile.is_tarfile(path):
            _extract(path, unpacked, dockerfile, copy.line)
            members |= lay_over([unpacked])
            into_directory = True
        elif path.is_dir():
            below = lay_over([path]).items()
            members |= {name: each for name, each in below if each.relative_to(context).as_posix() in kept}
            into_directory = True
        else:
            members[path.name if into_directory else os.path.basename(copy.target)] = path.resolve()
    return members, into_directory


def _extract(path: Path, scratch: Path, dockerfile: Path, line: int) -> None:
    """Unpack a tar without following it out of the directory.

    Python's own filter for that is in 3.11.4 and later only.
    """
    inside = os.path.realpath(scratch)
    try:
        with tarfile.open(path) as archive:
            archive.extraction_filter = lambda member, _: member
            for member in archive:
                member.name = member.name.lstrip("/")
                for name in (member.name, *([member.linkname] if member.islnk() else [])):
                    if os.path.commonpath([inside, os.path.realpath(os.path.join(inside, name))]) != inside:
                        raise tarfile.TarError(f"{name} leads out of the directory")
                if member.isreg() or member.isdir() or member.issym() or member.islnk():
                    archive.extract(member, inside)
    except (tarfile.TarError, OSError) as error:
        raise BuildError(f"{dockerfile}:{line}: {path.name} cannot be unpacked: {error}") from None


def _context_files(context: Path) -> set[str]:
    """Return the relative paths of the build context that .dockerignore leaves in, and of the directories above."""
    ignore = context / ".dockerignore"
    if not ignore.is_file():
        return {path.relative_to(context).as_posix() for path in context.rglob("*")}
    from docker.utils.build import exclude_paths

    lines = [line.strip() for line in ignore.read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    # The function keeps the Dockerfile and .dockerignore whatever the patterns say, for an engine that reads them.
    kept: set[str] = set(exclude_paths(str(context), patterns, dockerfile="no such file"))
    if any(fnmatch.fnmatch(".dockerignore", pattern.lstrip("/")) for pattern in patterns):
        kept.discard(".dockerignore")
    return kept | {above.as_posix() for path in kept for above in PurePosixPath(path).parents}


def _find(context: Path, source: str, kept: set[str], dockerfile: Path, line: int) -> list[Path]:
    clean = os.path.normpath(source.lstrip("/")) if source.lstrip("/") else "."
    if clean.startswith(".."):
        raise BuildError(f"{dockerfile}:{line}: {source} lies outside the build context {context}")
    if clean == ".":
        return [context]
    found = [Path(path) for path in sorted(glob.glob(str(context / clean)))]
    found = [path for path in found if path.relative_to(context).as_posix() in kept]
    if any(not path.resolve().is_relative_to(context.resolve()) for path in found):
        raise BuildError(f"{dockerfile}:{line}: {source} is a link out of the build context {context}")
    if not found:
        raise BuildError(f"{dockerfile}:{line}: {source} is not in the build context {context}")
    return found
