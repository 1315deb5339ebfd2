"""A prototype: one connection after the other, and the only request it knows is QUIT."""

import socket


def serve(data, port):
    with socket.create_server(("127.0.0.1", port)) as listener:
        print("listening", listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as stream:
                for line in stream:
                    if line == b"QUIT\n":
                        stream.write(b"BYE\n")
                        break
                    stream.write(b"ERR unknown-command\n")
                    stream.flush()
