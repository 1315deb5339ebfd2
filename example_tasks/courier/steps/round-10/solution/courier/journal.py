"""The journal: one record a line, appended before a request is answered."""

import contextlib
import io
import os

from courier.wire import NUMBER


class Damage(Exception):
    """A line that is no record."""


class Journal:
    def __init__(self, directory):
        os.makedirs(directory, exist_ok=True)
        self._batch = None
        self._path = os.path.join(directory, "journal")
        self._new = os.path.join(directory, "journal.new")
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._new)  # Of a daemon that was killed meanwhile.
        self._open()

    def replay(self, apply):
        """Call `apply` with the words of each record; raises Damage where that raises ValueError."""
        with open(self._path, "rb") as file:
            *lines, torn = file.read().split(b"\n")
        end = 0  # Of the batch that is read.
        for index, line in enumerate(lines):
            try:
                if line.startswith(b"BATCH ") and index >= end:
                    end = index + 1 + number(line[len("BATCH ") :].decode("ascii"))
                    if end > len(lines):
                        torn = True
                        del lines[index:]
                        break
                else:
                    apply(line.decode("ascii").split(" "))
            except ValueError:
                raise Damage(f"journal:{index + 1}: this is no record") from None
        if torn:  # It was never answered. Without it, what comes next begins a line.
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def append(self, *words):
        record = coded(words)
        if self._batch is not None:
            self._batch.append(record)
        else:
            self._write(record)

    @contextlib.contextmanager
    def batch(self):
        """Append the records of the block at its end, as one; none where it raises."""
        self._batch = records = []
        try:
            yield
        finally:
            self._batch = None
        if len(records) > 1:
            records.insert(0, b"BATCH %d\n" % len(records))
        if records:
            self._write(b"".join(records))

    def replace(self, records):
        """Put other records in the place of all there are, at one stroke."""
        with open(self._new, "wb") as file:
            file.writelines(coded(record) for record in records)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._new, self._path)
        directory = os.open(os.path.dirname(self._path), os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        self._file.close()
        self._open()

    def _open(self):
        self._file = io.BufferedWriter(io.FileIO(self._path, "ab"))

    def _write(self, data):
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())


def coded(words):
    return " ".join(map(str, words)).encode("ascii") + b"\n"


def number(word):
    if not NUMBER.fullmatch(word):
        raise ValueError(word)
    return int(word)
