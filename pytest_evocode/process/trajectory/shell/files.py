"""Tell which files a shell command reads and writes, by its words, redirections and here-documents."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_evocode.process.rules import COMMANDS
from pytest_evocode.process.trajectory.file_texts import ChangeKind, TextChange, read_patch
from pytest_evocode.process.trajectory.shell.commands import SimpleCommand


@dataclass(frozen=True, slots=True)
class Touched:
    """The files that a command reads and changes; paths are relative to where the line started."""

    reads: tuple[str, ...] = ()
    changes: tuple[TextChange, ...] = ()


def touched_by(command: SimpleCommand) -> Touched:
    """Return the files of one command, as far as its words tell.

    >>> from pytest_evocode.process.trajectory.shell.commands import Redirect
    >>> touched_by(SimpleCommand(("sed", "-n", "1,5p", "a.py"), "")).reads
    ('a.py',)
    >>> touched_by(SimpleCommand(("echo", "x"), "", (Redirect(">", "b.txt"),))).changes[0].path
    'b.txt'
    """
    reads = [redirect.target for redirect in command.redirects if redirect.operator == "<" and redirect.target]
    changes = list(_redirected(command))
    program = command.program
    words = [word for word in command.words[1:] if word is not None]
    if program in _WRITERS:
        written = _WRITERS[program](command, words)
        reads += written.reads
        changes += written.changes
    elif program in COMMANDS.tables["readers"]:
        reads += _operands(program, words)
    elif program == "git":
        reads += _shown_by_git(words)
        changes += _restored_by_git(words)
    return Touched(tuple(_files(reads, command.cwd)), tuple(_placed(changes, command.cwd)))


def shown_files(command: SimpleCommand, output: str) -> list[str]:
    """Return the files named at the start of the output lines of a search through directories."""
    if command.program not in ("grep", "egrep", "rg", "ag", "git"):
        return []
    paths = dict.fromkeys(match["path"] for match in COMMANDS["shown_line"].finditer(output))
    return list(_files(list(paths), command.cwd))


def _files(paths: Sequence[str], cwd: str | None) -> Iterator[str]:
    for path in paths:
        if path not in ("-", ".", "..", "") and not path.startswith(("/dev/", "/proc/", "/sys/")):
            if posixpath.isabs(path):
                yield posixpath.normpath(path)
            elif cwd is not None:
                yield posixpath.normpath(posixpath.join(cwd, path))


def _placed(changes: Sequence[TextChange], cwd: str | None) -> Iterator[TextChange]:
    for change in changes:
        for path in _files([change.path], cwd):
            yield replace(change, path=path)


def _operands(program: str, words: Sequence[str]) -> list[str]:
    takes = COMMANDS.tables["readers"][program]
    rest: list[str] = []
    given: set[str] = set()
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            rest += words[position + 1 :]
            break
        elif word.startswith("-") and len(word) > 1:
            flag = word[1] if not word.startswith("--") else ""
            given.add(word[-1] if flag else word.lstrip("-")[:1])
            skip = bool(flag) and len(word) == 2 and flag in takes
        else:
            rest.append(word)
    pattern = COMMANDS.tables["first_is_pattern"].get(program)
    if pattern is not None and not given & set(pattern):
        rest = rest[1:]
    if program in ("rg", "ag") or (program.endswith("grep") and COMMANDS.words["recursive"].intersection(words)):
        rest = [path for path in rest if "." in posixpath.basename(path).strip(".")]  # Others are directories.
    return rest


def _redirected(command: SimpleCommand) -> Iterator[TextChange]:
    for redirect in command.redirects:
        if redirect.target is None or redirect.operator not in (">", ">>", "&>", "&>>", ">|"):
            continue
        content = None if redirect.operator == ">>" else _printed(command)
        yield TextChange(redirect.target, "modified", content=content)


def _printed(command: SimpleCommand) -> str | None:
    """Return what a command prints, where its words tell; None where they do not."""
    if command.program == "cat" and len(command.words) == 1:
        return command.stdin
    if command.program == "echo" and all(word is not None and not word.startswith("-") for word in command.words):
        return " ".join(word or "" for word in command.words[1:]) + "\n"
    return "" if command.program in (":", "true", "") else None


def _plain(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _changed(paths: Iterable[str], kind: ChangeKind = "modified", content: str | None = None) -> tuple[TextChange, ...]:
    return tuple(TextChange(path, kind, content=content) for path in paths)


def _sed(command: SimpleCommand, words: Sequence[str]) -> Touched:
    operands = _operands("sed", words)
    if any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words):
        return Touched(changes=_changed(operands))
    return Touched(reads=tuple(operands))


def _perl(command: SimpleCommand, words: Sequence[str]) -> Touched:
    in_place = any(re.match(r"-[a-zA-Z]*i", word) for word in words)
    return Touched(changes=_changed(_plain(words)[1:])) if in_place else Touched()


def _tee(command: SimpleCommand, words: Sequence[str]) -> Touched:
    return Touched(changes=_changed(_plain(words), content=command.stdin if "-a" not in words else None))


def _copy(command: SimpleCommand, words: Sequence[str]) -> Touched:
    plain = _plain(words)
    return Touched(reads=tuple(plain[:-1]), changes=_changed(_into(plain)))


def _move(command: SimpleCommand, words: Sequence[str]) -> Touched:
    plain = _plain(words)
    return Touched(changes=(*_changed(plain[:-1], "deleted"), *_changed(_into(plain), "added")))


def _into(paths: Sequence[str]) -> list[str]:
    """Return where copied or moved files end up: in a directory if it is written as one or there are several files."""
    if len(paths) < 2:
        return []
    *sources, target = paths
    if len(sources) > 1 or target.endswith("/") or target == ".":
        return [posixpath.join(target, posixpath.basename(source)) for source in sources]
    return [target]


def _remove(command: SimpleCommand, words: Sequence[str]) -> Touched:
    return Touched(changes=_changed(_plain(words), "deleted"))


def _touch(command: SimpleCommand, words: Sequence[str]) -> Touched:
    return Touched(changes=_changed(_plain(words)))


def _apply_patch(command: SimpleCommand, words: Sequence[str]) -> Touched:
    patch = next((word for word in words if "*** Begin Patch" in word), command.stdin or "")
    return Touched(changes=tuple(read_patch(patch)))


def _patch(command: SimpleCommand, words: Sequence[str]) -> Touched:
    named = re.findall(r"^\+\+\+ (?:b/)?(\S+)", command.stdin or "", re.MULTILINE)
    return Touched(changes=_changed(path for path in named if path != "/dev/null"))


_WRITERS: Mapping[str, Callable[[SimpleCommand, Sequence[str]], Touched]] = {
    "sed": _sed, "perl": _perl, "tee": _tee, "cp": _copy, "install": _copy, "mv": _move, "rm": _remove,
    "unlink": _remove, "touch": _touch, "truncate": _touch, "apply_patch": _apply_patch, "applypatch": _apply_patch,
    "patch": _patch,
}  # fmt: skip


def _shown_by_git(words: Sequence[str]) -> list[str]:
    plain = _plain(words)
    if plain[:1] == ["show"]:
        return [word.partition(":")[2] for word in plain[1:] if ":" in word]
    if plain[:1] in (["blame"], ["annotate"]):
        return plain[-1:]
    return []


def _restored_by_git(words: Sequence[str]) -> tuple[TextChange, ...]:
    verb, *paths = _plain(words) or [""]
    if verb == "rm":
        return _changed(paths, "deleted")
    if verb == "mv":
        return _move(SimpleCommand((), ""), paths).changes
    if verb == "restore" or (verb == "checkout" and "--" in words):
        return _changed(words[list(words).index("--") + 1 :] if "--" in words else paths)
    return ()
