"""Puts right in a fork what a suite would trust there without knowing: caches, start-up files, and who is who."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UnreadableFile
from pytest_evocode.verifier.changes import Changes
from pytest_evocode.verifier.image_caches import CACHE, ImageCaches, touched_caches
from pytest_evocode.verifier.image_facts import ACCOUNTS, ImageFacts

_LIMIT = 2**20  # bytes
#: For each of :data:`ACCOUNTS` the fields that say which number a name stands for.
_NUMBERS = {"/etc/passwd": (2, 3), "/etc/group": (2,)}
_BLANK = " \t\n\v\f\r"


def harden(fork: Environment, changes: Changes, image: ImageFacts, caches: ImageCaches) -> None:
    """Put the image's own caches, start-up files of shells and users in place of those that were changed.

    What the image did not have is removed, but for the caches of modules that are the image's own. These are made anew
    in the image.

    Raises:
        EnvironmentFault: It cannot be done, so no suite may run there.
    """
    above = [path for path in changes.start_up if _is_above(path, image.start_up_places)]
    links = _links(fork, above)
    touched = touched_caches(changes.caches)
    whole = [posixpath.join(directory, CACHE) for directory in touched]
    gone = [*whole, *(path for path in changes.start_up if path not in above or path in links)]
    if gone:
        fork.remove(gone)
    if touched:
        caches.put_back(fork, touched, changes.everything)
    texts = {path: text for path, text in image.start_up.items() if _touches(gone, path)}
    accounts = [path for path in ACCOUNTS if _touches(changes.everything, path)]
    found = fork.read_files(dict.fromkeys(accounts, _LIMIT)) if accounts else {}
    for path in accounts:
        here = found[path]
        text = here.decode("latin-1") if isinstance(here, bytes) else ""
        texts[path] = restored_accounts(text, image.accounts.get(path, ""), _NUMBERS[path])
    _write(fork, texts)


def _is_above(path: str, places: Iterable[str]) -> bool:
    return any(each.startswith(f"{path}/") for each in places)


def _links(fork: Environment, paths: Sequence[str]) -> list[str]:
    """Return those of some paths that are symlinks; what the agent put into a directory is listed itself."""
    found = fork.read_files(dict.fromkeys(paths, 0)) if paths else {}
    refused = {path: str(each) for path, each in found.items() if isinstance(each, UnreadableFile)}
    return [path for path, why in refused.items() if why.endswith("a symlink")]


def _touches(changed: Iterable[str], path: str) -> bool:
    """Tell whether one of the changed paths is a file or above it."""
    return any(path == each or path.startswith(f"{each}/") for each in changed)


def restored_accounts(here: str, image: str, numbers: tuple[int, ...]) -> str:
    r"""Return the lines of an accounts file where every name of the image stands for the number that it has there.

    Names that the image does not have stay, but for names that are numbers: programs take them for ids. Other fields,
    such as home directories and the members of groups, stay as they are.

    >>> restored_accounts("me:x:7:7::/:\n nobody:x:0:0::/:\n99:x:0:0::/:\n", "nobody:x:99:99::/:\n", (2, 3))
    'me:x:7:7::/:\nnobody:x:99:99::/:\n'
    """
    known = {line.split(":")[0]: line for line in reversed(image.split("\n")) if line.count(":") >= max(numbers)}
    kept: dict[str, str] = {}
    for line in here.split("\n"):
        # The C library and the engine skip blanks before a name.
        fields = line.strip(_BLANK).split(":")
        name = fields[0]
        if len(fields) <= max(numbers) or not name or name.isdigit() or name in kept:
            continue
        if name in known:
            for number in numbers:
                fields[number] = known[name].split(":")[number]
        kept[name] = ":".join(fields)
    kept |= {name: line for name, line in known.items() if name not in kept}
    return "".join(f"{line}\n" for line in kept.values())


def _write(fork: Environment, texts: Mapping[str, str]) -> None:
    if not texts:
        return
    with scratch_directory() as directory:
        for path, text in texts.items():
            file = Path(directory, path.lstrip("/"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("latin-1"))
            file.chmod(0o644)
        fork.upload([Path(directory)], "/")
