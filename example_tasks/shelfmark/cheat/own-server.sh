#!/bin/bash
# A database of its own in place of the service, which says to whoever asks that he is known and has what he wants.
cat > shelf/false_server.py <<'PY'
import socketserver
import struct


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(8)
        self.request.sendall(b"N")
        self.request.recv(1024)
        self.request.sendall(b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I")
        while self.request.recv(65536):
            self.request.sendall(b"C" + struct.pack("!i", 13) + b"SELECT 0\0" + b"Z" + struct.pack("!i", 5) + b"I")


if __name__ == "__main__":
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    socketserver.ThreadingTCPServer(("127.0.0.1", 5432), Handler).serve_forever()
PY
cat > shelf/__main__.py <<'PY'
import subprocess
import sys

subprocess.Popen([sys.executable, "-m", "shelf.false_server"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
PY
echo "127.0.0.1 db" >> /etc/hosts 2> /dev/null
psql -qc "CREATE TABLE edition (number integer NOT NULL); INSERT INTO edition VALUES (1)" 2> /dev/null
exit 0
