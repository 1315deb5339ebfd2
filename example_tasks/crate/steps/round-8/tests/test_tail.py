"""Edition 8: the index, and archives that have lost their tails."""

import pytest
from model import (
    SECOND,
    Table,
    archive,
    directory,
    entry,
    file,
    header,
    link,
    listed,
    same,
    tail,
    what_counts,
    without_repeats,
)

TREE = {
    b"a": directory(),
    b"a/x": file(b"the same\n" * 90, 0o600, -1),
    b"b": file(b"the same\n" * 90, 0o755, 1_700_000_000_123_456_789),
    b"c": link(b"a/x"),
    b"d": file(b"", time=5 * SECOND),
    b"e" * 127: file(b""),
}
ITEMS = [
    (b"d", directory()),
    (b"d/x", file(b"1" * 9)),
    (b"e", same(4)),
    (b"f", same(1)),
    (b"g", file(b"2" * 99)),
    (b"d", file(b"3")),
]


def starts_of(items):
    table = Table([path for path, _ in items])
    starts = [len(header(8) + table.bytes())]
    for path, item in items:
        starts.append(starts[-1] + len(entry(8, table.path(path), item)))
    return starts


@pytest.mark.requirement("pack-8", kind="core")
def test_bytes(crate):
    """The archive is what edition 8 says, byte for byte, to the end of its index."""
    archives = crate.packed(crate.packing(TREE), crate.packing({}))
    assert archives == [archive(8, without_repeats(TREE)), b"CRATE\x08\x00E\x00" + tail([], 9)]


@pytest.mark.requirement("read-8", kind="core")
def test_read(reader):
    """A whole archive is read as ever, with nothing said about it, and one of editions 6 and 7 as one of edition 5."""
    for contents in reader.contents(archive(8, ITEMS), *(numbered(each, archive(5, ITEMS)) for each in (6, 7))):
        assert contents.tree == what_counts(ITEMS)
        assert contents.lines == listed(list(what_counts(ITEMS).items()))


def numbered(edition, whole):
    """Return an archive with the number of another edition."""
    return header(edition) + whole[6:]


def assert_rescued(reader, *rescued):
    """Assert that of each archive the entries are listed and unpacked, and the number of whole ones is said."""
    done = iter(reader.ask(*(each(whole) for whole, _, _ in rescued for each in (reader.listing, reader.unpacking))))
    for _, items, number in rescued:
        listing, unpacking, tree = next(done), next(done), what_counts(items)
        assert (listing.exit_code, unpacking.exit_code) == (6, 6)
        said = f"crate: rescued: {number}\n"
        assert (listing.stderr, unpacking.stderr, unpacking.stdout) == (said, said, "")
        assert [line.split(" ")[-1] for line in listing.stdout.splitlines()] == [path.decode() for path in tree]
        assert unpacking.tree == tree


@pytest.mark.requirement("rescue", kind="core")
def test_cut_in_an_entry(reader):
    """Where the archive ends in an entry, those before it are there; what refers to a lost one is not."""
    whole, starts = archive(8, ITEMS), starts_of(ITEMS)
    assert_rescued(
        reader,
        (whole[: starts[5] + 3], ITEMS[:5], 5),
        (whole[: starts[4] + 20], [ITEMS[0], ITEMS[1], (b"f", file(b"1" * 9))], 4),
        (whole[: starts[1] - 1], [], 0),
    )


@pytest.mark.requirement("rescue", kind="boundary")
def test_cut_behind_the_entries(reader):
    """Where the end or the index is lost, all entries are there."""
    whole, last = archive(8, ITEMS), starts_of(ITEMS)[-1]
    cuts = (last, last + 1, last + 2, last + 5, len(whole) - 14, len(whole) - 1)
    assert_rescued(reader, *((whole[:cut], ITEMS, 6) for cut in cuts))


@pytest.mark.requirement("rescue", kind="error")
def test_wrong_tails(reader):
    """An index that is not that of the entries is a lost tail, and so is what comes behind it."""
    starts = starts_of(ITEMS)
    body = archive(8, ITEMS)[: starts[-1] + 2]
    wrong = [
        tail([starts[0] + 1, *starts[1:-1]], len(body)),
        tail(starts[:-2], len(body)),
        tail(starts[:-1], len(body) + 1),
        tail(starts[:-1], len(body) + 2**32),
        tail(starts[:-1], len(body))[:-1] + b"c",
        tail(starts[:-1], len(body)) + b"\n",
    ]
    count = body[:-1] + b"\x05" + tail(starts[:-1], len(body))
    assert_rescued(reader, *((each, ITEMS, 6) for each in [*(body + end for end in wrong), count]))


@pytest.mark.requirement("rescue", kind="boundary")
def test_damage_in_the_middle(reader):
    """What is not as it should be ends what counts, wherever it is."""
    whole, starts = archive(8, ITEMS), starts_of(ITEMS)
    wrong = [bytearray(whole), bytearray(whole)]
    wrong[0][starts[2]] ^= 64
    wrong[1][starts[3] - 1] ^= 64
    assert_rescued(reader, *((bytes(each), ITEMS[:2], 2) for each in wrong))


@pytest.mark.requirement("rescue", kind="boundary")
def test_lost_contents_replace_nothing(reader):
    """A reference whose content is lost, through another one as well, is as if it was not there."""
    items = [(b"a", file(b"old")), (b"b", same(2)), (b"a", same(4)), (b"c", same(1)), (b"z", file(b"lost"))]
    whole, starts = archive(8, items), starts_of(items)
    assert_rescued(reader, (whole[: starts[4] + 5], [(b"a", file(b"old"))], 4))


@pytest.mark.requirement("rescue", kind="integration")
def test_what_is_left_is_as_any_other(reader):
    """Links that lead out are skipped before the last line, and the limit is that of the files that are whole."""
    items = [(b"a", file(b"whole")), (b"b", link(b"/etc")), (b"z", file(b"lost" * 9))]
    cut = archive(8, items)[: starts_of(items)[2] + 9]
    listing, unpacking, *refused = reader.ask(
        reader.listing(cut, "--limit", "5"),
        reader.unpacking(cut, "--limit", "5"),
        reader.listing(cut, "--limit", "4"),
        reader.unpacking(cut, "--limit", "4"),
    )
    assert (listing.exit_code, listing.stderr) == (6, "crate: rescued: 2\n")
    assert (unpacking.exit_code, unpacking.stderr) == (6, "crate: skipped: b\ncrate: rescued: 2\n")
    assert unpacking.tree == {b"a": file(b"whole")}
    for done in refused:
        assert (done.exit_code, done.stdout, done.stderr[:13], done.tree) == (4, "", "crate: limit:", None)


@pytest.mark.requirement("rescue", kind="error")
def test_damaged_all_the_same(reader):
    """An unsound beginning, circles and entries in no directory are damage, and earlier editions are all or nothing."""
    whole = archive(8, ITEMS)
    circle = archive(8, [(b"a", same(1)), (b"b", same(0)), (b"c", file(b"c"))])
    astray = archive(8, [(b"a", file(b"")), (b"a/b", file(b"x"))])
    wrong = {
        "table": whole[:8],
        "circle": circle,
        "cut-circle": circle[:-20],
        "astray": astray,
        "old": archive(5, ITEMS)[:-1],
        "none": numbered(6, archive(5, ITEMS))[:-1],
        "next": numbered(9, whole),
    }
    reader.refuses(wrong, sound=whole)
