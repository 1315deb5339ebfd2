"""The daemon: connections, their requests and answers, in one loop that waits for none of them."""

import selectors
import signal
import socket

from courier.wire import Inbox, Refused


class Connection:
    def __init__(self, stream):
        self.stream = stream
        self.inbox = Inbox()
        self.outbox = bytearray()
        self.ending = False  # Nothing more is read; it is closed when all is sent.


class Server:
    def __init__(self, store, port):
        self._store = store
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.setblocking(False)
        self._stopped = False

    def run(self):
        """Serve until SIGTERM."""
        awake, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        signal.signal(signal.SIGTERM, self._stop)
        self._selector.register(awake, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        print("listening", self._listener.getsockname()[1], flush=True)
        while not self._stopped:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is not None:
                    self._serve(key.data)

    def _stop(self, *_):
        self._stopped = True

    def _accept(self):
        try:
            stream, _ = self._listener.accept()
        except OSError:  # It has gone already.
            return
        stream.setblocking(False)
        self._selector.register(stream, selectors.EVENT_READ, Connection(stream))

    def _serve(self, connection):
        """Read what has come, answer what is whole, send what can be sent."""
        try:
            if not connection.ending:
                data = connection.stream.recv(65536)
                connection.inbox.feed(data)
                self._answer(connection)
                connection.ending = connection.ending or not data
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        self._send(connection)

    def _answer(self, connection):
        while not connection.ending:
            try:
                request = connection.inbox.next()
                if request is None:
                    return
                answer = getattr(self, f"_{request.command.lower()}")(connection, request)
            except Refused as refused:
                answer = line("ERR", refused.code)
                connection.ending = refused.final
            connection.outbox += answer

    def _send(self, connection):
        try:
            while connection.outbox:
                del connection.outbox[: connection.stream.send(connection.outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        if connection.ending and not connection.outbox:
            self._drop(connection)
            return
        wanted = 0 if connection.ending else selectors.EVENT_READ
        wanted |= selectors.EVENT_WRITE if connection.outbox else 0
        self._selector.modify(connection.stream, wanted, connection)

    def _drop(self, connection):
        self._selector.unregister(connection.stream)
        connection.stream.close()
        self._store.release(connection)

    # Requests.

    def _put(self, connection, request):
        return line("OK", self._store.put(request.queue, request.body))

    def _take(self, connection, request):
        message = self._store.take(request.queue, connection)
        if message is None:
            return line("EMPTY")
        return line("MSG", message.id, len(message.body)) + message.body + b"\n"

    def _ack(self, connection, request):
        self._store.ack(request.id, connection)
        return line("OK")

    def _len(self, connection, request):
        return line("OK", self._store.count(request.queue))

    def _quit(self, connection, request):
        connection.ending = True
        return line("BYE")


def line(*words):
    return " ".join(map(str, words)).encode("ascii") + b"\n"
