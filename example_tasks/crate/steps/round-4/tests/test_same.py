"""Edition 4: what occurs more than once, paths and contents."""

import random

import pytest
from bench import without_times
from model import (
    archive,
    archive_1,
    directory,
    file,
    in_order,
    link,
    listed,
    same,
    what_counts,
    without_repeats,
)

TREE = {
    b"a": directory(),
    b"a/empty": file(b""),
    b"a/one": file(b"the same\n" * 90, 0o600, 7_000_000_000),
    b"b-empty": file(b""),
    b"b-other": file(b"another one\n"),
    b"c": file(b"the same\n" * 90, 0o755),
    b"d": file(b"another one\n", 0o644, 9_000_000_000),
    b"e": file(b"the same\n" * 90),
    b"l": link(b"c"),
}


@pytest.mark.requirement("pack-4", kind="core", retired="round-5")
def test_bytes(crate):
    """A content is packed once, with the first path, and an empty one each time."""
    assert crate.pack(TREE) == archive(4, without_repeats(TREE))


@pytest.mark.requirement("same", kind="core")
def test_there_and_back(crate, reader):
    """Files with the same content come back with their own permissions and times, and can be changed one by one."""
    packed = crate.pack(TREE)
    [contents] = reader.contents(packed)
    assert contents.tree == TREE
    assert contents.lines == listed(in_order(TREE))
    assert packed.count(b"another one") == 1


@pytest.mark.requirement("same", kind="integration")
def test_independent(crate):
    """What is unpacked are files of their own: one that is changed changes no other."""
    packed = crate.pack(TREE)
    for program in crate.both:
        unpacking = program.unpacking(packed)
        name = unpacking.pop("made")
        done, changed = crate.ask(unpacking, crate.shell(f"echo more >> {name}/c && cat {name}/a/one"))
        assert (done.exit_code, changed.exit_code, changed.stdout) == (0, 0, "the same\n" * 90), program.name


@pytest.mark.requirement("same", kind="boundary")
def test_references(reader):
    """A reference leads forwards, backwards and to another reference."""
    items = [
        (b"a", same(3)),
        (b"b", file(b"")),
        (b"c", same(1)),
        (b"d", same(4)),
        (b"e", file(b"e" * 9)),
        (b"f", same(0)),
    ]
    [contents] = reader.contents(archive(4, items))
    assert contents.tree == what_counts(items)
    assert contents.lines == listed(list(what_counts(items).items()))


@pytest.mark.requirement("same", kind="boundary")
def test_long_chain(crate):
    """A chain of references is as long as it likes."""
    items = [(b"%04d" % index, same(index + 1)) for index in range(1500)] + [(b"last", file(b"end"))]
    for program in crate.both:
        [lines] = program.lists(archive(4, items))
        assert without_times(lines) == [f"F 644 3 {path.decode()}" for path, _ in items]


REFERENCES = {
    "itself": [(b"a", same(0))],
    "circle": [(b"a", same(1)), (b"b", same(2)), (b"c", same(0))],
    "into-a-circle": [(b"a", same(1)), (b"b", same(2)), (b"c", same(1))],
    "nothing": [(b"a", same(2)), (b"b", file(b"x"))],
    "far": [(b"a", same(2**62)), (b"b", file(b"x"))],
    "directory": [(b"a", same(1)), (b"b", directory())],
    "link": [(b"a", same(1)), (b"b", link(b"c")), (b"c", file(b"x"))],
    "circle-that-does-not-count": [(b"a", same(0)), (b"a", file(b"x"))],
}


@pytest.mark.requirement("circles", kind="error")
def test_references_to_nothing(reader):
    """References that lead to no content are damage, whether their entry counts or not."""
    sound = archive(4, [(b"a", same(1)), (b"b", file(b"x"))])
    reader.refuses({name: archive(4, items) for name, items in REFERENCES.items()}, sound)


@pytest.mark.requirement("circles", kind="error")
def test_no_references_before(crate):
    """Earlier editions have no such entry."""
    items = [(b"a", same(1)), (b"b", file(b"x"))]
    for program in crate.both:
        program.refuses({f"edition {each}": archive(each, items) for each in (2, 3)}, sound=archive(4, items))


@pytest.mark.requirement("last-counts", kind="core")
def test_last_counts(reader):
    """In archives of all editions the last entry of a path counts, in its place."""
    items = [
        (b"a", file(b"old")),
        (b"b", file(b"b")),
        (b"a", file(b"new", 0o600)),
        (b"c", file(b"c")),
        (b"a", file(b"newest", 0o640)),
    ]
    for contents in reader.contents(archive_1(items), *(archive(edition, items) for edition in (2, 3, 4))):
        assert contents.tree == what_counts(items)
        assert contents.lines == ["F 644 1 b", "F 644 1 c", "F 640 6 a"]


@pytest.mark.requirement("last-counts", kind="boundary")
def test_directories(reader):
    """A directory that occurs again keeps what is in it; what takes its place does not."""
    items = [
        (b"d", directory(0o700)),
        (b"d/x", file(b"x")),
        (b"d/e", directory()),
        (b"d/e/f", file(b"f")),
        (b"g-h", file(b"stays")),
        (b"g", directory()),
        (b"g/h", file(b"gone")),
        (b"g", file(b"now a file")),
        (b"d/e", link(b"x")),
        (b"d", directory(0o750)),
        (b"d/y", file(b"y")),
    ]
    tree = what_counts(items)
    assert sorted(tree) == [b"d", b"d/e", b"d/x", b"d/y", b"g", b"g-h"]
    [contents] = reader.contents(archive(4, items))
    assert contents.tree == tree
    assert contents.lines == listed(list(tree.items()))


@pytest.mark.requirement("last-counts", kind="boundary")
def test_a_directory_again(reader):
    """Something that was there, went with its directory and is there again."""
    items = [
        (b"d", directory()),
        (b"d/x", file(b"1")),
        (b"d/y", file(b"1")),
        (b"d", file(b"2")),
        (b"d", directory()),
        (b"d/x", file(b"3")),
    ]
    assert reader.trees(archive(4, items)) == [{b"d": directory(), b"d/x": file(b"3")}]


@pytest.mark.requirement("last-counts", kind="error")
def test_below_what_is_gone(crate):
    """What is below a path that is no directory any more is damage, below a link in its place, too."""
    start = [(b"d", directory()), (b"d/e", directory()), (b"d/x", file(b"1"))]
    afters = [[(b"d", link(b"/tmp"))], [(b"d", file(b""))], [(b"d", file(b"")), (b"d", directory())]]
    wrong = {repr(after): archive(4, [*start, *after, (b"d/e/f", file(b"2"))]) for after in afters}
    for program in crate.both:
        program.refuses(wrong, sound=archive(4, start))


@pytest.mark.requirement("last-counts", kind="integration")
def test_content_of_what_does_not_count(reader):
    """A reference has the content of an entry that does not count itself."""
    items = [(b"a", file(b"old content")), (b"b", same(0)), (b"a", same(1)), (b"a", link(b"b"))]
    assert reader.trees(archive(4, items)) == [{b"a": link(b"b"), b"b": file(b"old content")}]


@pytest.mark.requirement("last-counts", kind="integration")
def test_any_order(crate):
    """Whatever takes the place of whatever, both end with the tree that the document says."""
    chance = random.Random(44)
    wholes = []
    for _ in range(3):
        items = []
        while len(items) < 25:
            tree = what_counts(items)
            parents = [b""] + [path + b"/" for path, item in tree.items() if item.kind == "D"]
            path = chance.choice(parents) + chance.choice([b"a", b"b", b"a-"])
            files = [index for index, (_, item) in enumerate(items) if item.kind in "FS"]
            what = [directory(chance.choice([0o700, 0o755])), file(b"%d" % len(items)), link(b"a")]
            items.append((path, chance.choice(what + [same(each) for each in files[-1:]])))
        wholes.append(items)
    for program in crate.both:
        for items, contents in zip(wholes, program.contents(*(archive(4, each) for each in wholes)), strict=True):
            tree = what_counts(items)
            assert contents.tree == tree
            assert contents.lines == listed(list(tree.items()))
