"""A directory with a store in it, trees that go in and out as tapes of tar, and commands that are called there."""

import base64
import gzip
import hashlib
import io
import tarfile
from dataclasses import dataclass, replace

MADE = 1_600_000_000
"""When files of trees were changed."""

FIRST = 1_775_010_600
"""2026-04-01T02:30:00Z, for NIGHTSAFE_NOW."""

DAY = 86_400

PRELUDE = r"""
export PATH="/app/bin:$PATH" NIGHTSAFE_STORE="$BASE/store" NIGHTSAFE_NOW=1775010600
mkdir "$BASE/answers"
LC_ALL=C
call() {
    "$@" > "$BASE/answers/out" 2> "$BASE/answers/err" < /dev/null
    printf '%s\0' "$?"
    IFS= read -r -d '' text < "$BASE/answers/out"; printf '%s\0' "$text"
    IFS= read -r -d '' text < "$BASE/answers/err"; printf '%s\0' "$text"
}
tree() { call bash -c 'cd -- "$1" && tar --format=gnu -cf - . | base64 -w0' - "$1"; }
cd "$BASE"; tar -xpf -
"""


@dataclass(frozen=True)
class Answer:
    """What a command did; bytes that are no UTF-8 are surrogates."""

    status: int
    out: str
    err: str

    @property
    def rows(self):
        """The columns of each line."""
        return [line.split("\t") for line in self.out.split("\n")[:-1]]

    @property
    def ids(self):
        """The first column of each line."""
        return [row[0] for row in self.rows]

    @property
    def told(self):
        """The same without what others than nightsafe have said on standard error, such as tar."""
        lines = self.err.splitlines(keepends=True)
        return replace(self, err="".join(line for line in lines if line.startswith("nightsafe: ")))

    @property
    def tree(self):
        """What a tape has that `tree` made."""
        return read_tape(base64.b64decode(self.out))


@dataclass(frozen=True)
class Entry:
    """What is at a path: a file has content, a link a target, a directory neither."""

    content: bytes | None = None
    target: str | None = None
    mode: int = 0o755
    changed: int = MADE

    @property
    def header(self):
        """What the tape says before the content."""
        info = tarfile.TarInfo()
        info.mode, info.mtime = self.mode, self.changed
        if self.target is not None:
            info.type, info.linkname = tarfile.SYMTYPE, self.target
        elif self.content is None:
            info.type = tarfile.DIRTYPE
        else:
            info.size = len(self.content)
        return info


def file(content="", mode=0o644, changed=MADE):
    return Entry(content.encode() if isinstance(content, str) else content, None, mode, changed)


def directory(mode=0o755, changed=MADE):
    return Entry(None, None, mode, changed)


def link(target):
    return Entry(None, target, 0o777)


def tape(entries):
    """A tape of tar with these entries, in this order; a text or bytes are a file's content."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for name, entry in entries.items():
            if isinstance(entry, tarfile.TarInfo):
                info, content = replace_name(entry, name), b""
            else:
                entry = entry if isinstance(entry, Entry) else file(entry)
                info, content = replace_name(entry.header, name), entry.content or b""
            archive.addfile(info, io.BytesIO(content))
    return written.getvalue()


def replace_name(info, name):
    info.name = name
    return info


def read_tape(data):
    """The entries of a tape, by their paths without `./`; where they came from is not in them."""
    entries = {}
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8") as archive:
        for info in archive:
            content = archive.extractfile(info).read() if info.isreg() else None
            entry = Entry(content, info.linkname if info.issym() else None, info.mode, int(info.mtime))
            entries[info.name.removeprefix("./")] = replace(entry, changed=MADE) if info.issym() else entry
    return entries


def below(entries, name):
    """The entries with their paths below this one, which is a directory of the tape as well."""
    return {name: directory(), **{f"{name}/{path}": entry for path, entry in entries.items()}}


def packed(entries):
    """An archive as nightsafe makes it."""
    return gzip.compress(tape({f"./{name}" if name != "." else name: each for name, each in entries.items()}), mtime=0)


def old_line(id, archive, where, md5=None):
    """A line of a catalogue's first form, for an archive."""
    return f"{id} {len(archive)} {md5 or hashlib.md5(archive).hexdigest()} {where}\n"


def stored(ids, customer="acme", settings=None):
    """The files of a customer who has these backups, with lines of the second form, or of the first for a day alone."""
    files = {}
    lines = []
    for id in ids:
        if "-" in id:
            archive, name = packed({"x": file(id)}), f"{id}.tar.gz"
            lines.append(f"2\t{id}\t{len(archive)}\t{hashlib.sha256(archive).hexdigest()}\t/srv/www\n")
        else:
            archive, name = tape({"./x": file(id)}), f"{id}.tar"
            lines.append(old_line(id, archive, "/srv/www", "-"))
        files[f"store/{customer}/{name}"] = archive
    files[f"store/{customer}/catalogue"] = "".join(lines)
    if settings is not None:
        files[f"store/{customer}/settings"] = settings
    return files


class Bench:
    """A directory with `store` in it, in which `run` calls commands."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.base = workspace.path

    def run(self, script, files=None, timeout=60):
        """Run a script with these files in place, and return what each `call` and `tree` in it answered.

        The base is `$BASE`; a name that has to be quoted is better a file's: `$(< name)` is not exact.
        """
        done = self.workspace.run(
            ["bash", "-c", PRELUDE + script],
            input=tape({"store": directory(), **(files or {})}),
            env={"BASE": self.base},
            timeout=timeout,
        )
        assert done.exit_code is not None, "the commands did not end"
        parts = [part.decode("utf-8", "surrogateescape") for part in done.stdout_bytes.split(b"\0")]
        answers = [Answer(int(parts[at]), parts[at + 1], parts[at + 2]) for at in range(0, len(parts) - 2, 3)]
        return answers

    def read(self, path):
        """A file below the base, or nothing where there is none."""
        path = f"{self.base}/{path}"
        return self.workspace.read(path) if self.workspace.exists(path) else None


def quoted(name):
    """A name as bash reads it, whatever bytes it has."""
    return "$'" + "".join(f"\\x{byte:02x}" for byte in name.encode("utf-8", "surrogateescape")) + "'"


def complaint(status, text):
    """What a command answers that complains."""
    return Answer(status, "", f"nightsafe: {text}\n")
