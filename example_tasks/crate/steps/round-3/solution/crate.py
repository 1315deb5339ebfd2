"""crate.py: lists and unpacks archives. FORMAT.md is the contract."""

import os
import sys
import zlib

EDITION = 3
LONGEST_PATH = 65535
LONGEST_NAME = 255
LONGEST_TARGET = 4095
LONGEST_CHUNK = 65536
SYSTEM, USAGE, DAMAGED = 1, 2, 3
WORDS = {SYSTEM: "system", USAGE: "usage", DAMAGED: "damaged"}


class Refused(Exception):
    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status


def damaged(reason):
    return Refused(DAMAGED, reason)


class Entry:
    """An entry, and what it has where nothing else is said."""

    kind: str
    path: bytes
    mode: int = 0
    time: int = 0
    size: int = 0
    content: int = 0  # Where it begins in the archive.
    target: bytes = b""

    def __init__(self, kind, path, mode=0, time=0, **more):
        vars(self).update(kind=kind, path=path, mode=mode, time=time, **more)


class Archive:
    """The bytes of an archive, and the entries that are in them."""

    def __init__(self, data):
        self.data = data
        self.at = 0
        if self.take(5) != b"CRATE":
            raise damaged("it is no archive")
        self.edition = self.take(1)[0]
        if not 1 <= self.edition <= EDITION:
            raise damaged("it is of an edition that nobody knows")
        self.names = self.read_names() if self.edition >= 2 else []
        self.entries = []
        self.read_entries()

    def take(self, size):
        if size > len(self.data) - self.at:
            raise damaged("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self):
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                if byte == 0 and shift:
                    raise damaged("a number is longer than it needs to be")
                return value
        raise damaged("a number is too large")

    def mode(self):
        mode = self.number()
        if mode > 0o777:
            raise damaged("a mode has more than permissions")
        return mode

    def text(self, longest):
        length = self.number()
        if length > longest:
            raise damaged("a string is too long")
        text = self.take(length)
        if b"\0" in text:
            raise damaged("a string has a zero byte")
        return text

    def read_names(self):
        names = []
        for _ in range(self.number()):
            names.append(self.text(LONGEST_NAME))
            check_name(names[-1])
            if names[-2:-1] >= names[-1:]:
                raise damaged("the names are not in order")
        return names

    def indexes(self):
        """Return a path that is stored as the names that it consists of."""
        number = self.number()
        if not 1 <= number <= LONGEST_PATH:
            raise damaged("a path has no names or too many")
        parts = []
        size = -1
        for _ in range(number):
            index = self.number()
            if index >= len(self.names):
                raise damaged("there is no such name")
            parts.append(self.names[index])
            size += len(parts[-1]) + 1
            if size > LONGEST_PATH:
                raise damaged("a path is too long")
        return b"/".join(parts)

    def path(self):
        if self.edition >= 2:
            return self.indexes()
        length = self.number()
        if length > LONGEST_PATH:
            raise damaged("a path is too long")
        path = self.take(length)
        for name in path.split(b"/"):
            check_name(name)
        return path

    def crc(self, data):
        """Check the checksum of some bytes, or from edition 2 on of all bytes of the entry."""
        if self.edition >= 2:
            data = self.data[self.start : self.at]
        if int.from_bytes(self.take(4), "little") != zlib.crc32(data):
            raise damaged("a checksum is wrong")

    def chunks(self):
        """Read the chunks of a file."""
        while length := self.number():
            if length > LONGEST_CHUNK:
                raise damaged("a chunk is too long")
            method = self.take(1)[0]
            if method == 0:
                yield self.take(length)
            elif method == 1:
                yield expanded(self.take(self.number()), length)
            else:
                raise damaged("a chunk has no method")

    def file(self):
        entry = Entry("F", self.path(), self.mode(), self.number())
        content = b""
        if self.edition >= 3:
            entry.content = self.at
            entry.size = sum(map(len, self.chunks()))
        else:
            entry.size = self.number()
            entry.content = self.at
            content = self.take(entry.size)
        self.crc(content)
        return entry

    def content(self, entry):
        """Return the content of a file, in pieces."""
        self.at = entry.content
        return self.chunks() if self.edition >= 3 else [self.take(entry.size)]

    def read_entries(self):
        while True:
            self.start = self.at
            kind = self.take(1)
            if kind == b"E":
                break
            if kind == b"F":
                entry = self.file()
            elif kind == b"D":
                entry = Entry("D", self.path(), self.mode())
                if self.edition >= 2:
                    self.crc(b"")
            elif kind == b"L" and self.edition >= 2:
                entry = Entry("L", self.path(), target=self.text(LONGEST_TARGET))
                if not entry.target:
                    raise damaged("a link has no target")
                self.crc(entry.target)
            else:
                raise damaged("an entry has no kind")
            self.entries.append(entry)
        if self.number() != len(self.entries):
            raise damaged("the count is wrong")
        if self.at < len(self.data):
            raise damaged("something comes behind the end")

    def tree(self):
        """Return the entries by their paths."""
        tree = {}
        for entry in self.entries:
            parent, slash, _ = entry.path.rpartition(b"/")
            if slash and (parent not in tree or tree[parent].kind != "D"):
                raise damaged("an entry is in no directory")
            if entry.path in tree:
                raise damaged("a path occurs twice")
            tree[entry.path] = entry
        return tree


def expanded(coded, length):
    """Expand run-length coded bytes to exactly so many."""
    out = bytearray()
    at = 0
    while at < len(coded):
        control = coded[at]
        follow = control + 1 if control < 128 else 1
        piece = coded[at + 1 : at + 1 + follow]
        if len(piece) < follow:
            raise damaged("a chunk ends too early")
        out += piece if control < 128 else piece * (control - 125)
        at += 1 + follow
        if len(out) > length:
            break
    if len(out) != length:
        raise damaged("a chunk does not expand to its length")
    return out


def check_name(name):
    if not 1 <= len(name) <= LONGEST_NAME or b"\0" in name or b"/" in name or name in (b".", b".."):
        raise damaged("a name is none")


# Listing.


def escaped(text):
    return "".join(chr(byte) if 32 <= byte <= 126 and byte != 92 else f"\\x{byte:02x}" for byte in text)


def line(entry):
    if entry.kind == "D":
        return f"D {entry.mode:03o} - - {escaped(entry.path)}\n"
    if entry.kind == "L":
        return f"L - - - {escaped(entry.path)} -> {escaped(entry.target)}\n"
    return f"F {entry.mode:03o} {entry.size} {entry.time} {escaped(entry.path)}\n"


# Unpacking. A path may be longer than what the system takes at once, so it is walked name by name.


def open_directory(root, names):
    directory = os.dup(root)
    for name in names:
        following = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        os.close(directory)
        directory = following
    return directory


def write_file(archive, directory, name, entry):
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=directory)
    with os.fdopen(file, "wb") as stream:
        for piece in archive.content(entry):
            stream.write(piece)
        stream.flush()
        os.fchmod(file, entry.mode)
        os.utime(file, ns=(entry.time * 10**9, entry.time * 10**9))


def open_root(name):
    try:
        os.mkdir(name)
    except FileExistsError:
        if os.listdir(name):
            raise Refused(SYSTEM, "the directory is not empty") from None
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY)


def unpack(archive, tree, directory):
    root = open_root(directory)
    for entry in tree.values():
        *names, last = entry.path.split(b"/")
        parent = open_directory(root, names)
        if entry.kind == "F":
            write_file(archive, parent, last, entry)
        elif entry.kind == "L":
            os.symlink(entry.target, last, dir_fd=parent)
        else:
            os.mkdir(last, 0o700, dir_fd=parent)
        os.close(parent)
    for entry in reversed(tree.values()):
        if entry.kind == "D":
            made = open_directory(root, entry.path.split(b"/"))
            os.fchmod(made, entry.mode)
            os.close(made)


def read(name):
    with open(name, "rb") as stream:
        archive = Archive(stream.read())
    return archive, archive.tree()


def run(arguments):
    match arguments:
        case ["list", name]:
            sys.stdout.buffer.write("".join(map(line, read(name)[1].values())).encode("ascii"))
        case ["unpack", name, directory]:
            unpack(*read(name), directory)
        case _:
            raise Refused(USAGE, "crate.py list ARCHIVE | unpack ARCHIVE DIR")


def main():
    try:
        run(sys.argv[1:])
    except Refused as refused:
        print(f"crate: {WORDS[refused.status]}: {refused}", file=sys.stderr)
        return refused.status
    except (OSError, OverflowError, MemoryError) as error:
        print(f"crate: system: {type(error).__name__}", file=sys.stderr)
        return SYSTEM
    return 0


if __name__ == "__main__":
    sys.exit(main())
