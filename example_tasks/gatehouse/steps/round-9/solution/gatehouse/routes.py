"""Which request does what, and who may."""

import re
from urllib.parse import quote

from gatehouse import accounts, bookings, export, files, web
from gatehouse.store import Refused

VISIBLE = "".join(map(chr, range(0x20, 0x7F)))


def login(request):
    user, session = accounts.sign_in(request.db, request.text("name"), request.text("password"))
    cookie = f"session={session}; Path=/; HttpOnly; SameSite=Lax"
    return web.Answer(accounts.public(user), headers={"Set-Cookie": cookie})


def logout(request):
    accounts.sign_out(request.db, request.session)
    return web.Answer(headers={"Set-Cookie": "session=; Path=/; Max-Age=0"})


def logout_everywhere(request):
    accounts.sign_out_everywhere(request.db, request.user["name"])
    return web.Answer(headers={"Set-Cookie": "session=; Path=/; Max-Age=0"})


def me(request):
    return web.Answer(accounts.public(request.user))


def change_me(request):
    return web.Answer(accounts.rename(request.db, request.user, request.text("full_name")))


def password(request):
    passwords = request.text("old"), request.text("new")
    accounts.change_password(request.db, request.data, request.user, request.session, *passwords)
    return web.Answer()


def ask_reset(request):
    accounts.ask_reset(request.db, request.data, request.text("name"))
    return web.Answer()


def reset(request):
    accounts.reset(request.db, request.data, request.words[0], request.text("new"), request.link_minutes)
    return web.Answer()


def users(request):
    return web.Answer({"users": accounts.users(request.db)})


def add_user(request):
    values = [request.text(name) for name in ("name", "full_name", "role", "password")]
    accounts.add_user(request.db, *values)
    return web.Answer(status=201)


def unlock(request):
    accounts.unlock(request.db, request.words[0])
    return web.Answer()


def sessions(request):
    return web.Answer({"sessions": accounts.sessions(request.db, request.user)})


def end_session(request):
    accounts.end_session(request.db, request.user, request.words[0])
    return web.Answer()


def things(request):
    query = request.query
    filters = query.get("q", ""), query.get("kind"), query.get("sort", "id"), query.get("from"), query.get("to")
    return web.Answer({"things": bookings.things(request.db, request.user, *filters)})


def add_thing(request):
    id = bookings.add_thing(request.db, request.text("kind"), request.text("name"), request.text("place"))
    return web.Answer({"id": id}, 201)


def calendar(request):
    return web.Answer({"bookings": bookings.calendar(request.db, request.user, request.query.get("thing", ""))})


def listed(request):
    sort = request.query.get("sort", "id")
    return web.Answer({"bookings": bookings.listed(request.db, request.user, sort)})


def book(request):
    id = bookings.book(request.db, request.data, request.user, request.values)
    return web.Answer({"id": id}, 201)


def found(request):
    """Return the booking that the path names, if it may be seen."""
    return bookings.find(request.db, request.user, request.words[0])


def booking(request):
    return web.Answer(bookings.public(found(request)))


def change_booking(request):
    changed = bookings.change(request.db, request.user, request.words[0], request.values)
    return web.Answer(bookings.public(changed))


def cancel(request):
    bookings.cancel(request.db, request.data, request.user, request.words[0])
    files.remove_all(request.data, request.words[0])
    return web.Answer()


def file_names(request):
    found(request)
    booking = request.words[0]
    return web.Answer({"files": files.names(request.data, booking), "sizes": files.sizes(request.data, booking)})


def keep_file(request):
    found(request)
    booking, name = request.words
    files.keep(request.data, booking, name, request.body)
    return web.Answer(status=201)


def remove_file(request):
    found(request)
    files.remove(request.data, *request.words)
    return web.Answer()


def file(request):
    found(request)
    booking, name = request.words
    return web.Answer(files.read(request.data, booking, name), headers=files.headers(name))


def table(request):
    return csv(request, None)


def own_table(request):
    return csv(request, request.user)


def csv(request, user):
    text = export.table(request.db, request.query.get("from"), request.query.get("to"), user)
    return web.Answer(text.encode(), headers={"Content-Type": "text/csv; charset=utf-8"})


def page(request):
    return web.Answer(files.page(request.words[0]), headers={"Content-Type": "text/plain; charset=utf-8"})


def go(request):
    target = request.query.get("to", "/")
    if not re.fullmatch(r"/(?![/\\])[^\x00-\x1f\x7f]*", target):
        raise Refused(400, "this leads out of the house")
    return web.Answer(status=302, headers={"Location": quote(target, safe=VISIBLE)})


ROUTES = [
    ("POST", "/login", "all", login),
    ("POST", "/logout", "member", logout),
    ("POST", "/logout-everywhere", "member", logout_everywhere),
    ("GET", "/me", "member", me),
    ("POST", "/me", "member", change_me),
    ("POST", "/password", "member", password),
    ("POST", "/reset", "all", ask_reset),
    ("POST", "/reset/([^/]+)", "all", reset),
    ("GET", "/users", "staff", users),
    ("POST", "/users", "staff", add_user),
    ("POST", "/users/([^/]+)/unlock", "staff", unlock),
    ("GET", "/sessions", "member", sessions),
    ("DELETE", "/sessions/([^/]+)", "member", end_session),
    ("GET", "/things", "member", things),
    ("POST", "/things", "staff", add_thing),
    ("GET", "/calendar", "member", calendar),
    ("GET", "/bookings", "member", listed),
    ("POST", "/bookings", "member", book),
    ("GET", "/bookings/([0-9]+)", "member", booking),
    ("POST", "/bookings/([0-9]+)", "member", change_booking),
    ("DELETE", "/bookings/([0-9]+)", "member", cancel),
    ("GET", "/bookings/([0-9]+)/files", "member", file_names),
    ("POST", "/bookings/([0-9]+)/files/(.+)", "member", keep_file),
    ("DELETE", "/bookings/([0-9]+)/files/(.+)", "member", remove_file),
    ("GET", "/bookings/([0-9]+)/files/(.+)", "member", file),
    ("GET", "/export.csv", "staff", table),
    ("GET", "/bookings.csv", "member", own_table),
    ("GET", "/pages/(.+)", "all", page),
    ("GET", "/go", "all", go),
]
