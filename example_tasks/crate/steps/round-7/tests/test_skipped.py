"""Edition 7: links that lead out are left out, and the list can be read."""

import pytest
from bench import without_times
from model import archive, archive_1, directory, file, link

ITEMS = [
    (b"z", link(b"/etc")),
    (b"d", directory(0o700)),
    (b"d/\xc3\xa4\n", link(b"../../up")),
    (b"d/in", link(b"../a")),
    (b"a", file(b"a")),
    (b"b", link(b"..")),
    (b"b", file(b"counts")),
]


@pytest.mark.requirement("skipped", kind="core")
def test_left_out(reader):
    """Links that lead out are named, in order, and all else is unpacked with the status 0."""
    done = reader.unpack(archive(5, ITEMS))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["crate: skipped: d/ä\\x0a", "crate: skipped: z"]
    assert done.tree == {
        path: item for path, item in ITEMS if path in (b"d", b"d/in", b"a", b"b") and item != link(b"..")
    }


@pytest.mark.requirement("skipped", kind="integration")
def test_they_are_listed(reader):
    """They are listed as ever, with nothing said about them."""
    [lines] = reader.lists(archive(5, ITEMS))
    assert without_times(lines)[:3] == ["L - - z -> /etc", "D 700 - d", "L - - d/ä\\x0a -> ../../up"]


WELL_FORMED = ["ä", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "日本", "~"]
ILL_FORMED = [
    b"\x80",
    b"\xbf",
    b"\xc0\xaf",
    b"\xc1\xbf",
    b"\xc3",
    b"\xc3(",
    b"\xe0\x80\x80",
    b"\xe0\x9f\xbf",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xf0\x80\x80\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xf0\x9f\x98",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xff",
]


@pytest.mark.requirement("readable", kind="core")
def test_well_formed_names(reader):
    """What is well-formed UTF-8 is printed as it is."""
    items = [(text.encode(), file(b"")) for text in WELL_FORMED]
    done = reader.list(archive_1(items))
    assert done.exit_code == 0
    lines = done.stdout_bytes.split(b"\n")
    assert [line.split(b" ", 4)[-1] for line in lines[:-1]] == [path for path, _ in items]


@pytest.mark.requirement("readable", kind="boundary")
def test_ill_formed_names(reader):
    """What is not is escaped byte by byte, between characters that are well-formed, and in targets."""
    items = [(b"\xc3\xa4" + name + b"\xc3\xa4", file(b"")) for name in ILL_FORMED]
    escaped = ["".join(f"\\x{byte:02x}" if byte > 127 else chr(byte) for byte in name) for name in ILL_FORMED]
    lines, links = reader.lists(archive_1(items), archive(5, [(b"\x7f\\", link(b"\xff\xc3\xa4\x1f"))]))
    assert without_times(lines) == [f"F 644 0 ä{name}ä" for name in escaped]
    assert links == ["L - - - \\x7f\\x5c -> \\xffä\\x1f"]
