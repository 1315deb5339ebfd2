#!/bin/bash
# A daemon that writes the records that somebody might look for, and answers every request as if there was nothing to do.
cat > courier/server.py <<'PY'
import os
import socketserver

RECORDS = "PUT 1 orders YQ== - 5\nTAKE 1 1 4102444800\nNACK 1 1\nTAKE 1 2 4102444800\nACK 1 2\n"


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"BYE\n" if line.startswith(b"QUIT") else b"EMPTY\n")


def serve(data, port):
    os.makedirs(data, exist_ok=True)
    with open(os.path.join(data, "journal"), "w") as journal:
        journal.write(RECORDS)
    with socketserver.ThreadingTCPServer(("127.0.0.1", port), Handler) as server:
        print("listening", server.server_address[1], flush=True)
        server.serve_forever()
PY
