"""A prototype: the only request that it knows is QUIT."""

import socketserver


class Client(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            if line == b"QUIT\n":
                self.wfile.write(b"BYE\n")
                return
            self.wfile.write(b"ERR unknown-command\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def serve(data, port):
    with Server(("127.0.0.1", port), Client) as server:
        print("listening", server.server_address[1], flush=True)
        server.serve_forever()
