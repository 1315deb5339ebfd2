"""Edition 6: archives that are smaller than what they say, and links that lead out."""

import re

import pytest
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
        assert len(program.lines(whole, "--limit", "2024")) == 4
        assert sorted(program.tree(whole, "--limit", "2024")) == [b"a", b"b", b"c", b"d"]
        listing = program.list(whole, "--limit", "2023")
        unpacking, tree = program.unpack(whole, "--limit", "2023")
        for done in (listing, unpacking):
            assert (done.exit_code, done.stdout, done.stderr[:13]) == (4, "", "crate: limit:"), program.name
        assert tree is None


@pytest.mark.requirement("limit", kind="boundary")
def test_limit_of_earlier_editions(reader):
    """The limit is that of archives of all editions, and may be 0."""
    items = [(b"a", file(b"x" * 10)), (b"b", file(b""))]
    for whole in (archive_1(items), archive(2, items), archive(4, items)):
        assert len(reader.lines(whole, "--limit", "10")) == 2
        assert reader.list(whole, "--limit", "9").exit_code == 4
    assert reader.lines(archive(5, [(b"b", file(b""))]), "--limit", "0") == ["F 644 0 b"]


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
        assert len(program.lines(fits)) == 1024
        done = program.list(bomb)  # Nobody's disk is to hold it where it is not refused.
        assert (done.exit_code, done.stdout, done.stderr[:13]) == (4, "", "crate: limit:"), program.name
        assert len(program.lines(bomb, "--limit", "1074790400")) == 1025


@pytest.mark.requirement("memory", kind="boundary")
def test_memory(crate):
    """Neither needs the memory that an archive says it has bytes for."""
    large = one_file(5, chunk(b"\0" * 65536, 1) * 4000 + number(0))
    name = f"{crate.workspace.path}/large.crate"
    crate.workspace.write(name, large)
    for program in crate.both:
        command = " ".join(program.command)
        done = crate.workspace.run(f"ulimit -v 200000; {command} list --limit {65536 * 4000} {name}", timeout=60)
        assert (done.exit_code, done.stdout.split(" ")[2]) == (0, str(65536 * 4000)), f"{program.name}: {done.stderr}"


@pytest.mark.requirement("limit-usage", kind="error")
def test_usage(crate):
    """BYTES are digits behind the command; pack has no limit."""
    whole = archive(5, ITEMS)
    name = f"{crate.workspace.path}/a.crate"
    crate.workspace.write(name, whole)
    wrong = [
        ["list", "--limit", "many", name],
        ["list", "--limit", "-1", name],
        ["list", "--limit", "1234567890123456789", name],
        ["list", name, "--limit", "5000"],
        ["unpack", "--limit", "", name, "to"],
        ["unpack", "--limit", "1k", name, "to"],
    ]
    for program in crate.both:
        assert program.run("list", "--limit", "000000000000005000", name).exit_code == 0
        for arguments in wrong:
            done = program.run(*arguments)
            assert (done.exit_code, done.stdout, done.stderr[:13]) == (2, "", "crate: usage:"), (
                program.name,
                arguments,
            )
    assert crate.c.run("pack", "--limit", "5", name, "to").exit_code == 2
    assert crate.workspace.read(name) == whole


@pytest.mark.requirement("damaged-first", kind="boundary")
def test_damaged_before_all_else(crate):
    """What is damaged is called so, whatever its size."""
    items = [*ITEMS, (b"x/y", file(b"x"))]
    for program in crate.both:
        assert program.list(archive(5, ITEMS), "--limit", "1").exit_code == 4
        done = program.list(archive(5, items), "--limit", "1")
        assert (done.exit_code, done.stderr[:15]) == (3, "crate: damaged:")


LEADING_OUT = [
    (b"a", b"/etc/passwd"),
    (b"a", b".."),
    (b"d/a", b"../.."),
    (b"d/a", b"x/../../../y"),
    (b"a", b"../here/b"),
    (b"a", b"./..//b"),
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
    for path, target in STAYING:
        items = [(b"d", directory()), (path, link(target)), (b"z", file(b"z"))]
        assert reader.tree(archive(5, items)) == dict(items)


@pytest.mark.requirement("links-doubt", kind="boundary")
def test_links_that_lead_out(reader):
    """A link that leads out is not made, as long as nobody knows what is to become of it; it can be listed."""
    for path, target in LEADING_OUT:
        items = [(b"d", directory()), (path, link(target)), (b"z", file(b"z"))]
        assert reader.lines(archive(5, items))[1] == f"L - - {path.decode()} -> {target.decode()}"
        done, tree = reader.unpack(archive(5, items))
        assert path not in (tree or {}), done


@pytest.mark.requirement("links-doubt", kind="core", retired="round-7")
def test_refused_until_there_is_an_answer(reader):
    """In doubt an archive is rather refused than unpacked; a link that does not count is no doubt."""
    done, tree = reader.unpack(archive(5, [(b"a", link(b"../b")), (b"z", file(b"z"))]))
    assert (done.exit_code != 0, tree) == (True, None)
    items = [(b"a", link(b"../b")), (b"a", file(b"z"))]
    assert reader.tree(archive(5, items)) == {b"a": file(b"z")}


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
        assert program.lines(packed) == ["L - - a -> ../b", "L - - b -> /etc", "F 644 1 z"]
