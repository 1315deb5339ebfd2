#!/bin/bash
# A daemon that says OK to everything and keeps nothing.
cat > courier/server.py <<'PY'
import socketserver


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"EMPTY\n" if line.startswith(b"TAKE") else b"OK\n")


def serve(data, port):
    with socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler) as server:
        print("listening", server.server_address[1], flush=True)
        server.serve_forever()
PY
