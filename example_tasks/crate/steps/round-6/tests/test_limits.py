"""Edition 6: archives that are smaller than what they say, and links that lead out."""

import re

import pytest
from bench import without_times
from model import Table, archive, archive_1, chunk, directory, end, file, header, link, number, one_file, same, sealed

ITEMS = [
    (b"a", file(b"x" * 1000)),
    (b"b", same(0)),
    (b"c", file(b"y" * 24)),
    (b"d", directory()),
    (b"d/e", file(b"gone" * 99)),
    (b"d", link(b"b")),
]


@pytest.mark.requirement("limit", kind="core")
def test_limit(crate):
    """What counts may have so many bytes in all, what is the same as another file included, and no more."""
    whole = archive(5, ITEMS)
    for program in crate.both:
        kinds = (program.listing, program.unpacking)
        requests = [kind(whole, "--limit", limit) for limit in ("2024", "2023") for kind in kinds]
        listing, unpacking, *refused = program.ask(*requests)
        assert (listing.exit_code, len(listing.stdout.splitlines()), listing.stderr) == (0, 4, ""), program.name
        assert (unpacking.exit_code, sorted(unpacking.tree or {})) == (0, [b"a", b"b", b"c", b"d"]), program.name
        for done in refused:
            assert (done.exit_code, done.stdout, done.stderr[:13]) == (4, "", "crate: limit:"), program.name
            assert done.tree is None


@pytest.mark.requirement("limit", kind="boundary")
def test_limit_of_earlier_editions(reader):
    """The limit is that of archives of all editions, and may be 0."""
    items = [(b"a", file(b"x" * 10)), (b"b", file(b""))]
    wholes = [archive_1(items), archive(2, items), archive(4, items)]
    requests = [reader.listing(whole, "--limit", limit) for whole in wholes for limit in ("10", "9")]
    *done, empty = reader.ask(*requests, reader.listing(archive(5, [(b"b", file(b""))]), "--limit", "0"))
    assert [each.exit_code for each in done] == [0, 4] * 3
    assert [len(each.stdout.splitlines()) for each in done] == [2, 0] * 3
    assert without_times(empty.stdout.splitlines()) == ["F 644 0 b"]


@pytest.mark.requirement("limit", kind="error")
def test_limit_that_is_there_by_itself(crate):
    """Without --limit it is one GiB, which many references to one content are soon beyond."""
    million = chunk(b"\0" * 65536, 1) * 16 + number(0)
    table = Table([b"%04d" % index for index in range(1025)])
    start = b"F" + table.path(b"0000") + number(0o644) + number(0) + million
    entries = [sealed(start)]
    for index in range(1, 1025):
        entries.append(sealed(b"S" + table.path(b"%04d" % index) + number(0o644) + number(0) + number(index - 1)))
    bomb = header(5) + table.bytes() + b"".join(entries) + end(1025)
    fits = header(5) + table.bytes() + b"".join(entries[:-1]) + end(1024)
    for program in crate.both:
        # Listed alone: nobody's disk is to hold it where it is not refused.
        requests = [program.listing(fits), program.listing(bomb), program.listing(bomb, "--limit", "1074790400")]
        listing, done, allowed = program.ask(*requests)
        assert (done.exit_code, done.stdout, done.stderr[:13]) == (4, "", "crate: limit:"), program.name
        assert [len(each.stdout.splitlines()) for each in (listing, allowed)] == [1024, 1025], program.name


@pytest.mark.requirement("memory", kind="boundary")
def test_memory(crate):
    """Neither needs the memory that an archive says it has bytes for."""
    size = 65536 * 2200
    large = one_file(5, chunk(b"\0" * 65536, 1) * 2200 + number(0)).decode("latin-1")
    for program in crate.both:
        # Less than the contents, and more than they may need: 64 MiB, ten times two, and a KiB for the entry.
        script = f"ulimit -v 120000; {' '.join(program.command)} list --limit {size} large.crate"
        [done] = crate.ask(crate.shell(script, file="large.crate", archive=large))
        assert (done.exit_code, done.stdout.split(" ")[2:3]) == (0, [str(size)]), f"{program.name}: {done.stderr}"


@pytest.mark.requirement("limit-usage", kind="error")
def test_usage(crate):
    """BYTES are digits behind the command; pack has no limit."""
    whole = archive(5, ITEMS)
    name = "a.crate"
    wrong = [
        ["list", "--limit", "many", name],
        ["list", "--limit", "-1", name],
        ["list", "--limit", "\u0663", name],
        ["list", "--limit", "1234567890123456789", name],
        ["list", name, "--limit", "5000"],
        ["unpack", "--limit", "", name, "to"],
        ["unpack", "--limit", "1k", name, "to"],
    ]
    right = ["list", "--limit", "000000000000005000", name]
    more = {"file": name, "archive": whole.decode("latin-1")}
    for program in crate.both:
        requests = [program.request(*right, **more), *(program.request(*arguments) for arguments in wrong)]
        sound, *refused = program.ask(*requests)
        assert sound.exit_code == 0, program.name
        for arguments, done in zip(wrong, refused, strict=True):
            assert (done.exit_code, done.stdout, done.stderr[:13]) == (2, "", "crate: usage:"), (
                program.name,
                arguments,
            )
    done, left = crate.ask(crate.c.request("pack", "--limit", "5", name, "to"), crate.shell(f"cat {name}"))
    assert (done.exit_code, left.stdout_bytes) == (2, whole)


@pytest.mark.requirement("damaged-first", kind="boundary")
def test_damaged_before_all_else(crate):
    """What is damaged is called so, whatever its size."""
    items = [*ITEMS, (b"x/y", file(b"x"))]
    for program in crate.both:
        wholes = [archive(5, ITEMS), archive(5, items)]
        large, damaged = program.ask(*(program.listing(whole, "--limit", "1") for whole in wholes))
        assert large.exit_code == 4
        assert (damaged.exit_code, damaged.stderr[:15]) == (3, "crate: damaged:")


LEADING_OUT = [
    (b"a", b"/etc/passwd"),
    (b"a", b".."),
    (b"d/a", b"../.."),
    (b"d/a", b"x/../../../y"),
    (b"a", b"../here/b"),
    (b"a", b"./..//b"),
    (b"a", b"x//../.."),
]
STAYING = [
    (b"a", b"."),
    (b"d/a", b".."),
    (b"d/a", b"../d/a"),
    (b"a", b"x/.."),
    (b"a", b"...//..x"),
    (b"d/a", b"x/y/../../..//d"),
]


@pytest.mark.requirement("links-doubt", kind="boundary")
def test_links_that_stay(reader):
    """Links that stay inside are made as ever."""
    trees = [[(b"d", directory()), (path, link(target)), (b"z", file(b"z"))] for path, target in STAYING]
    assert reader.trees(*(archive(5, items) for items in trees)) == [dict(items) for items in trees]


@pytest.mark.requirement("links-doubt", kind="boundary")
def test_links_that_lead_out(reader):
    """A link that leads out is not made, as long as nobody knows what is to become of it; it can be listed."""
    trees = [[(b"d", directory()), (path, link(target)), (b"z", file(b"z"))] for path, target in LEADING_OUT]
    wholes = [archive(5, items) for items in trees]
    done = reader.ask(reader.listing(wholes[0]), *map(reader.unpacking, wholes))
    assert done[0].stdout.splitlines()[1] == "L - - - a -> /etc/passwd"
    for (path, target), unpacking in zip(LEADING_OUT, done[1:], strict=True):
        assert unpacking.exit_code is not None
        assert path not in (unpacking.tree or {}), target


@pytest.mark.requirement("links-doubt", kind="core", retired="round-7")
def test_refused_until_there_is_an_answer(reader):
    """In doubt an archive is rather refused than unpacked; a link that does not count is no doubt."""
    done = reader.unpack(archive(5, [(b"a", link(b"../b")), (b"z", file(b"z"))]))
    assert (done.exit_code != 0, done.tree) == (True, None)
    items = [(b"a", link(b"../b")), (b"a", file(b"z"))]
    assert reader.trees(archive(5, items)) == [{b"a": file(b"z")}]


@pytest.mark.requirement("links-doubt", kind="core", retired="round-7")
def test_question_is_asked(workspace):
    """QUESTIONS.md asks what becomes of links that lead out, and names the sections."""
    questions = workspace.read_text("QUESTIONS.md")
    for word in (r"link|symlink", r"\b1\b", r"\b3\b"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


@pytest.mark.requirement("links-doubt", kind="integration")
def test_packing_is_as_it_was(crate):
    """Edition 6 changes nothing in what is packed, links that lead out included."""
    tree = {b"a": link(b"../b"), b"b": link(b"/etc"), b"z": file(b"z")}
    packed = crate.pack(tree)
    for program in crate.both:
        [lines] = program.lists(packed)
        assert without_times(lines) == ["L - - a -> ../b", "L - - b -> /etc", "F 644 1 z"]
