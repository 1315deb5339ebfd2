"""A name leads nowhere but where it belongs."""

from urllib.parse import quote

import pytest


def booked(house):
    return house.anna.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")


def booked_by_bert(house):
    """Make a booking of bert's with an attachment."""
    number = house.bert.book(house.thing(), "2026-03-01T10:00", "2026-03-01T12:00")
    assert house.bert.upload(number, "secret.txt", b"secret").status == 201
    return number


def everything(house):
    """Return the paths of all files in the data directory, but for the database."""
    found = house.workspace.run(["find", house.data, "-type", "f", "-not", "-name", "gatehouse.db*"])
    return sorted(found.stdout.splitlines())


WRONG = [
    "..",
    ".",
    "%2e%2e",
    "../x.txt",
    "..%2Fx.txt",
    "..%2F..%2Foutbox%2F1.eml",
    "..%2F..%2Fgatehouse.db",
    "a%2Fb.txt",
    "a/b.txt",
    "%2Ftmp%2Fx.txt",
    "a%5Cb.txt",
    "..%5Cx.txt",
    "a%00.txt",
    "a%0D%0AX-Evil:1",
    "a%0A",
    "%1F",
    "a%7F",
    "x" * 201,
    "%C3%A4" * 101,
    "%FF",
    "",
]


@pytest.mark.requirement("file-names", kind="error")
def test_names_that_are_none(house):
    """What is no name is refused, for reading, writing and removing, and nothing comes to lie anywhere."""
    booking = booked(house)
    before = everything(house)
    for method, names in (("POST", WRONG), ("GET", WRONG[1::2]), ("DELETE", WRONG[::2])):
        for name in names:
            status = house.anna.ask(method, f"/bookings/{booking}/files/{name}", b"x").status
            assert status in ((400, 404) if name in ("", "../x.txt", "a/b.txt") else (400,)), (method, name)
    assert everything(house) == before
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == []


@pytest.mark.requirement("file-names", kind="core")
def test_others_files(house):
    """No name leads from one's own booking to somebody else's, nor to the database."""
    booking, other = booked(house), booked_by_bert(house)
    for name in (
        f"..%2F{other}%2Fsecret.txt",
        f"../{other}/secret.txt",
        "..%2F..%2Fgatehouse.db",
        f"%2E%2E%2F{other}%2Fsecret.txt",
    ):
        for method in ("GET", "POST", "DELETE"):
            reply = house.anna.ask(method, f"/bookings/{booking}/files/{name}", b"changed")
            assert (reply.status in (400, 404), b"secret" in reply.body) == (True, False)
    assert house.bert.download(other, "secret.txt").body == b"secret"


NAMES = [
    "plan.pdf",
    "Plan Süd (neu).pdf",
    'it\'s "mine"; v=2.txt',
    "100%.txt",
    "%2F.txt",
    "%2e%2e",
    ".hidden",
    "...",
    "a..b",
    "日本.txt",
    "-rf",
    "x" * 200,
    "ä" * 100,
    "+&=?#.html",
]


@pytest.mark.requirement("file-names", kind="boundary")
def test_names_that_are_fine(house):
    """Whatever else stands in a name, the attachment is kept, listed and had by it."""
    booking = booked(house)
    assert house.anna.upload(booking, NAMES[1], b"first").status == 201
    for name in NAMES:
        assert house.anna.upload(booking, name, name.encode() + b" \x00\xff").status == 201
    sizes = {name: len(name.encode()) + 3 for name in NAMES}
    assert house.anna.got(f"/bookings/{booking}/files") == {"files": sorted(NAMES), "sizes": sizes}
    for name in NAMES:
        assert house.anna.download(booking, name).body == name.encode() + b" \x00\xff"
    for name in NAMES[1:6]:
        assert house.anna.delete(f"/bookings/{booking}/files/{quote(name, safe='')}").status == 200
    assert house.anna.got(f"/bookings/{booking}/files")["files"] == sorted({*NAMES} - {*NAMES[1:6]})


NO_PAGES = [
    "..%2F__main__.py",
    "../__main__.py",
    "..%2F..%2FREADME.md",
    "%2Fetc%2Fpasswd",
    "//etc/passwd",
    ".",
    "..",
    "%00",
    "rules.txt%00",
    "x" * 5000,
    "no.txt",
    "..%5Cweb.py",
    "rules.txt/",
]


@pytest.mark.requirement("page-names", kind="core")
def test_pages_that_are_none(house):
    """No name leads out of the pages."""
    for name in NO_PAGES:
        assert house.nobody.get(f"/pages/{name}").status == 404, name
    assert house.nobody.get("/pages/rules.txt").body.startswith(b"Keys come back")


HEADS = [
    ("plan.pdf", "plan.pdf"),
    ("a-b._~9Z", "a-b._~9Z"),
    ('page"; x="<b>.html', "page%22%3B%20x%3D%22%3Cb%3E.html"),
    ("Süd.svg", "S%C3%BCd.svg"),
    ("it's (1)*!.js", "it%27s%20%281%29%2A%21.js"),
    ("100%.txt", "100%25.txt"),
]


@pytest.mark.requirement("disposition", kind="core")
def test_head_of_a_download(house):
    """An attachment is never a page of ours, and its name never more than a name."""
    booking = booked(house)
    for name, encoded in HEADS:
        house.anna.upload(booking, name, b"<script>alert(1)</script>")
        headers = house.anna.download(booking, name).headers
        assert headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{encoded}"
        assert (headers["Content-Type"], headers["X-Content-Type-Options"]) == ("application/octet-stream", "nosniff")
        assert headers.get_all("Set-Cookie") is None


WAYS_OUT = [
    "%0D%0ASet-Cookie:%20session=1",
    "/a%0D%0ASet-Cookie:%20session=1",
    "/a%0ASet-Cookie:%20session=1",
    "/a%09b",
    "/%00",
    "/a%7F",
    "//elsewhere.example",
    "/%5Celsewhere.example",
    "/%2Felsewhere.example",
    "http://elsewhere.example",
    "javascript:alert(1)",
    "a",
    "",
    "%20/a",
    "%5C%5Celsewhere.example",
]


@pytest.mark.requirement("go", kind="error")
def test_ways_out_of_the_house(house):
    """Nobody is led out of the house, and nothing is led into the head."""
    for target in WAYS_OUT:
        reply = house.nobody.get(f"/go?to={target}")
        assert (reply.status, reply.headers["Location"], reply.headers["Set-Cookie"]) == (400, None, None)


WAYS_WITHIN = [
    ("/", "/"),
    ("/calendar?thing%3D1%26a%3Db", "/calendar?thing=1&a=b"),
    ("/a//b", "/a//b"),
    ("/things?q=K%C3%BCche", "/things?q=K%C3%BCche"),
]


@pytest.mark.requirement("go", kind="core")
def test_ways_within_the_house(house):
    """Links in mails lead to where they did."""
    for target, location in WAYS_WITHIN:
        reply = house.nobody.get(f"/go?to={target}")
        assert (reply.status, reply.headers["Location"]) == (302, location)
