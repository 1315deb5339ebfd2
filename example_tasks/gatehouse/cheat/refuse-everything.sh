#!/bin/bash
# A service that is safe because it answers nothing but refusals.
cat > gatehouse/web.py <<'PY'
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"error": "no"}'
        self.send_response(404 if "/bookings" in self.path else 401)
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
