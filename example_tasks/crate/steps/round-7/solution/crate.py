"""crate.py: lists and unpacks archives. FORMAT.md is the contract."""

import os
import sys
import zlib

EDITION = 5
LONGEST_PATH = 65535
LONGEST_NAME = 255
LONGEST_TARGET = 4095
LONGEST_CHUNK = 65536
SECOND = 10**9
DEFAULT_LIMIT = 2**30
SYSTEM, USAGE, DAMAGED, LIMIT = 1, 2, 3, 4
WORDS = {SYSTEM: "system", USAGE: "usage", DAMAGED: "damaged", LIMIT: "limit"}


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
    time: int = 0  # In nanoseconds.
    size: int = 0
    content: int = 0  # Where it begins in the archive.
    target: bytes = b""
    same: int = 0  # The entry that has the content of an S.

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
        self.resolve_same()

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

    def time(self):
        """Read a time: seconds in editions 1 to 4, then nanoseconds of either sign."""
        number = self.number()
        if self.edition < 5:
            return number * SECOND
        return -(number // 2) - 1 if number & 1 else number // 2

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
        entry = Entry("F", self.path(), self.mode(), self.time())
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
            elif kind == b"S" and self.edition >= 4:
                entry = Entry("S", self.path(), self.mode(), self.time(), same=self.number())
                self.crc(b"")
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

    def resolve_same(self):
        """Find the content of each entry that is the same as another."""
        for entry in self.entries:
            chain = []
            seen = set()
            last = entry
            while last.kind == "S":
                chain.append(last)
                seen.add(id(last))
                if last.same >= len(self.entries):
                    raise damaged("an entry is the same as no file")
                last = self.entries[last.same]
                if id(last) in seen:
                    raise damaged("entries are the same as each other")
            if chain and last.kind != "F":
                raise damaged("an entry is the same as no file")
            for each in chain:
                each.kind, each.size, each.content = "F", last.size, last.content

    def tree(self):
        """Return the entries by their paths, the last one of each, in the order of the archive."""
        tree = {}
        for entry in self.entries:
            parent, slash, _ = entry.path.rpartition(b"/")
            if slash and (parent not in tree or tree[parent].kind != "D"):
                raise damaged("an entry is in no directory")
            if entry.path in tree:
                earlier = tree.pop(entry.path)
                if earlier.kind == "D" and entry.kind != "D":
                    for path in [path for path in tree if path.startswith(entry.path + b"/")]:
                        del tree[path]
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
    """Return a text with what does not print or is no UTF-8 escaped, byte by byte."""
    out = []
    for character in text.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 32 or code in (92, 127):
            out.append(f"\\x{code:02x}")
        else:
            out.append(character)
    return "".join(out)


def decimal(time):
    sign, time = ("-", -time) if time < 0 else ("", time)
    return f"{sign}{time // SECOND}.{time % SECOND:09d}"


def line(entry):
    if entry.kind == "D":
        return f"D {entry.mode:03o} - - {escaped(entry.path)}\n"
    if entry.kind == "L":
        return f"L - - - {escaped(entry.path)} -> {escaped(entry.target)}\n"
    return f"F {entry.mode:03o} {entry.size} {decimal(entry.time)} {escaped(entry.path)}\n"


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
        os.utime(file, ns=(entry.time, entry.time))


def open_root(name):
    try:
        os.mkdir(name)
    except FileExistsError:
        if os.listdir(name):
            raise Refused(SYSTEM, "the directory is not empty") from None
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY)


def leads_out(entry):
    """Say whether a link leads out of the directory that is unpacked into."""
    if entry.target.startswith(b"/"):
        return True
    depth = entry.path.count(b"/")
    for name in entry.target.split(b"/"):
        if name == b"..":
            depth -= 1
            if depth < 0:
                return True
        elif name not in (b"", b"."):
            depth += 1
    return False


def unpack(archive, tree, directory):
    root = open_root(directory)
    entries = sorted(tree.values(), key=lambda entry: entry.path)
    for entry in entries:  # A directory that occurs twice may come behind what is in it.
        if entry.kind == "L" and leads_out(entry):
            sys.stderr.buffer.write(f"crate: skipped: {escaped(entry.path)}\n".encode())
            continue
        *names, last = entry.path.split(b"/")
        parent = open_directory(root, names)
        if entry.kind == "F":
            write_file(archive, parent, last, entry)
        elif entry.kind == "L":
            os.symlink(entry.target, last, dir_fd=parent)
        else:
            os.mkdir(last, 0o700, dir_fd=parent)
        os.close(parent)
    for entry in reversed(entries):
        if entry.kind == "D":
            made = open_directory(root, entry.path.split(b"/"))
            os.fchmod(made, entry.mode)
            os.close(made)


def read(name, limit):
    with open(name, "rb") as stream:
        archive = Archive(stream.read())
    tree = archive.tree()
    if sum(entry.size for entry in tree.values()) > limit:
        raise Refused(LIMIT, "its files have more bytes than they may")
    return archive, tree


def run(arguments):
    limit = DEFAULT_LIMIT
    match arguments:
        case [command, "--limit", text, *rest] if text.isascii() and text.isdigit() and len(text) <= 18:
            limit = int(text)
            arguments = [command, *rest]
        case ["list" | "unpack", "--limit", _, *_]:
            raise Refused(USAGE, "--limit takes a number of bytes")
    match arguments:
        case ["list", name]:
            sys.stdout.buffer.write("".join(map(line, read(name, limit)[1].values())).encode())
        case ["unpack", name, directory]:
            unpack(*read(name, limit), directory)
        case _:
            raise Refused(USAGE, "crate.py list [--limit BYTES] ARCHIVE | unpack [--limit BYTES] ARCHIVE DIR")


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
