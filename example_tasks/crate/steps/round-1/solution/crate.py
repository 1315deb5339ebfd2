"""crate.py: lists and unpacks archives. FORMAT.md is the contract."""

import os
import sys
import zlib

EDITION = 1
LONGEST_PATH = 65535
LONGEST_NAME = 255
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
    content: bytes = b""

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

    def path(self):
        length = self.number()
        if length > LONGEST_PATH:
            raise damaged("a path is too long")
        path = self.take(length)
        for name in path.split(b"/"):
            check_name(name)
        return path

    def crc(self, data):
        if int.from_bytes(self.take(4), "little") != zlib.crc32(data):
            raise damaged("a checksum is wrong")

    def read_entries(self):
        while (kind := self.take(1)) != b"E":
            if kind == b"F":
                entry = Entry("F", self.path(), self.mode(), self.number())
                entry.content = self.take(self.number())
                self.crc(entry.content)
            elif kind == b"D":
                entry = Entry("D", self.path(), self.mode())
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


def check_name(name):
    if not 1 <= len(name) <= LONGEST_NAME or b"\0" in name or b"/" in name or name in (b".", b".."):
        raise damaged("a name is none")


# Listing.


def escaped(text):
    return "".join(chr(byte) if 32 <= byte <= 126 and byte != 92 else f"\\x{byte:02x}" for byte in text)


def line(entry):
    if entry.kind == "D":
        return f"D {entry.mode:03o} - - {escaped(entry.path)}\n"
    return f"F {entry.mode:03o} {len(entry.content)} {entry.time} {escaped(entry.path)}\n"


# Unpacking. A path may be longer than what the system takes at once, so it is walked name by name.


def open_directory(root, names):
    directory = os.dup(root)
    for name in names:
        following = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        os.close(directory)
        directory = following
    return directory


def write_file(directory, name, entry):
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(name, flags, 0o600, dir_fd=directory)
    with os.fdopen(file, "wb") as stream:
        stream.write(entry.content)
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


def unpack(tree, directory):
    root = open_root(directory)
    for entry in tree.values():
        *names, last = entry.path.split(b"/")
        parent = open_directory(root, names)
        if entry.kind == "F":
            write_file(parent, last, entry)
        else:
            os.mkdir(last, 0o700, dir_fd=parent)
        os.close(parent)
    for entry in reversed(tree.values()):
        if entry.kind == "D":
            made = open_directory(root, entry.path.split(b"/"))
            os.fchmod(made, entry.mode)
            os.close(made)


def read_tree(name):
    with open(name, "rb") as stream:
        return Archive(stream.read()).tree()


def run(arguments):
    match arguments:
        case ["list", name]:
            sys.stdout.buffer.write("".join(map(line, read_tree(name).values())).encode("ascii"))
        case ["unpack", name, directory]:
            unpack(read_tree(name), directory)
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
