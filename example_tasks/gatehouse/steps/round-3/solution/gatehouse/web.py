"""Requests and answers."""

import json
import re
import traceback
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from gatehouse import routes, store
from gatehouse.store import Refused


class Request:
    """What a route gets to see."""

    def __init__(self, server, db, user, session, words, query, body):
        self.data = server.data
        self.link_days = server.link_days
        self.db = db
        self.user = user
        self.session = session
        self.words = words
        self.query = query
        self.body = body

    @property
    def values(self):
        """The JSON object of the body."""
        try:
            values = json.loads(self.body or b"{}")
        except (ValueError, RecursionError):
            raise Refused(400, "the body is no JSON") from None
        if not isinstance(values, dict):
            raise Refused(400, "the body is no object")
        return values

    def text(self, name):
        value = self.values.get(name)
        if not isinstance(value, str):
            raise Refused(400, f"{name} is missing")
        return value


class Answer:
    def __init__(self, value=None, status=200, headers=None):
        self.body = value if isinstance(value, bytes) else json.dumps({} if value is None else value).encode()
        self.status = status
        self.headers = {"Content-Type": "application/json"} | (headers or {})


class Handler(BaseHTTPRequestHandler):
    server_version = "gatehouse"

    def do_GET(self):
        self.deal()

    do_POST = do_DELETE = do_GET

    def deal(self):
        try:
            answer = self.answer()
        except Refused as refused:
            answer = Answer({"error": str(refused)}, refused.status)
        except Exception:
            traceback.print_exc()
            answer = Answer({"error": "this could not be dealt with"}, 500)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def answer(self):
        address = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        who, route, found = self.route(address.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        session = cookie.value if cookie else ""
        db = store.connect(self.server.data)
        try:
            user = routes.accounts.user_of(db, session)
            if who != "all" and user is None:
                raise Refused(401, "sign in first")
            if who == "staff" and user["role"] != "staff":
                raise Refused(403, "for staff only")
            words = [unquote(word, errors="replace") for word in found.groups()]
            answer = route(Request(self.server, db, user, session, words, query, body))
            db.commit()
            return answer
        finally:
            db.close()

    def route(self, path):
        """Return who may make this request, what deals with it, and the words of the path."""
        for method, pattern, who, route in routes.ROUTES:
            found = re.fullmatch(pattern, path)
            if method == self.command and found:
                return who, route, found
        raise Refused(404, "there is no such page")

    def log_message(self, format, *arguments):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def serve(data, port, link_days):
    server = Server(("127.0.0.1", port), Handler)
    server.data = data
    server.link_days = link_days
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()
