"""Edition 5: times in nanoseconds, before 1970 too, and what becomes of old ones."""

import pytest
from model import (
    NOON,
    SECOND,
    Table,
    archive,
    archive_1,
    directory,
    end,
    file,
    header,
    in_order,
    link,
    number,
    same,
    sealed,
    what_counts,
    without_repeats,
)

TIMES = {
    b"a": (0, "0.000000000"),
    b"b": (1, "0.000000001"),
    b"c": (-1, "-0.000000001"),
    b"d": (-500_000_000, "-0.500000000"),
    b"e": (-SECOND, "-1.000000000"),
    b"f": (-50_000_000 * SECOND - 1, "-50000000.000000001"),
    b"g": (NOON * SECOND + 123_456_789, f"{NOON}.123456789"),
    b"h": (4_000_000_000 * SECOND + 999_999_999, "4000000000.999999999"),
    b"i": (-3 * SECOND + 1, "-2.999999999"),
}
TREE = {path: file(b"", time=time) for path, (time, _) in TIMES.items()}


@pytest.mark.requirement("pack-5", kind="core", retired="round-8")
def test_bytes(crate):
    """Times are packed with their nanoseconds and their sign."""
    tree = TREE | {b"t": directory(), b"t/x": file(b"xyz", time=-7), b"t/y": file(b"xyz", time=8), b"t/z": link(b"x")}
    assert crate.pack(tree) == archive(5, without_repeats(tree))


@pytest.mark.requirement("nanoseconds", kind="core")
def test_there_and_back(crate, reader):
    """A tree has the times that it had, to the nanosecond."""
    assert reader.trees(crate.pack(TREE)) == [TREE]


@pytest.mark.requirement("pack-fails", kind="boundary")
def test_a_time_that_is_too_far(crate):
    """A time that no NUMBER can be is one that the edition has no entry for; the one before it is packed."""
    near, far = crate.ask(*(crate.packing({b"a": file(b"", time=time)}) for time in (2**62 - 1, 2**62)))
    assert near.exit_code == 0
    assert (far.exit_code, far.stdout, far.stderr[:14], far.made) == (1, "", "crate: system:", None)


@pytest.mark.requirement("nanoseconds", kind="core")
def test_list(reader):
    """Times are listed in seconds with nine digits behind the point, and a sign for the whole of it."""
    lines = [f"F 644 0 {text} {path.decode()}" for path, (_, text) in TIMES.items()]
    assert reader.lists(archive(5, in_order(TREE))) == [lines]


@pytest.mark.requirement("nanoseconds", kind="boundary")
def test_farthest_times(reader):
    """The farthest times that can be stored are listed."""
    table = Table([b"a", b"b"])
    entries = b"".join(
        sealed(b"F" + table.path(path) + number(0o644) + number(time) + number(0))
        for path, time in ((b"a", 2**63 - 1), (b"b", 2**63 - 2))
    )
    lines = ["F 644 0 -4611686018.427387904 a", "F 644 0 4611686018.427387903 b"]
    assert reader.lists(header(5) + table.bytes() + entries + end(2)) == [lines]


@pytest.mark.requirement("widened", kind="integration")
@pytest.mark.parametrize("edition", [1, 2, 3, 4])
def test_old_times(reader, edition):
    """Times of earlier editions are whole seconds."""
    items = [(b"a", file(b"a", time=5 * SECOND)), (b"b", file(b"b", time=NOON * SECOND)), (b"c", file(b"", time=0))]
    if edition == 4:
        items.append((b"d", same(0, time=7 * SECOND)))
    whole = archive(edition, items) if edition > 1 else archive_1(items)
    [contents] = reader.contents(whole)
    assert contents.tree == what_counts(items)
    assert contents.times == [f"{seconds}.000000000" for seconds in (5, NOON, 0, 7)[: len(items)]]


@pytest.mark.requirement("widened", kind="boundary")
@pytest.mark.parametrize("edition", [1, 3])
def test_far_old_times(reader, edition):
    """An old time may be any number of seconds, and is listed with all its digits."""
    seconds = [2**33, 9_223_372_037, 2**62 + 1, 2**63 - 1]
    items = [(b"%d" % index, file(b"", time=time * SECOND)) for index, time in enumerate(seconds)]
    whole = archive(edition, items) if edition > 1 else archive_1(items)
    [lines] = reader.lists(whole)
    assert [line.split(" ")[3] for line in lines] == [f"{time}.000000000" for time in seconds]


@pytest.mark.requirement("nanoseconds", kind="integration")
def test_references_have_their_own_times(reader):
    """A file with the content of another one has a time of its own."""
    items = [(b"a", file(b"x", time=-5)), (b"b", same(0, 0o600, 1_500_000_000))]
    [contents] = reader.contents(archive(5, items))
    assert contents.tree == what_counts(items)
    assert contents.times == ["-0.000000005", "1.500000000"]
