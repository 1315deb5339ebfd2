"""The daemon: connections, their requests and answers, in one loop that waits for none of them."""

import selectors
import signal
import socket
import time

from courier.wire import Inbox, Refused


class Connection:
    def __init__(self, stream):
        self.stream = stream
        self.inbox = Inbox()
        self.outbox = bytearray()
        self.ending = False  # Nothing more is read; it is closed when all is sent.
        self.closed = False


class Waiter:
    """A client whose TAKE is not answered yet."""

    def __init__(self, connection, request, until):
        self.connection = connection
        self.request = request
        self.until = until


class Server:
    def __init__(self, store, port):
        self._store = store
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.setblocking(False)
        self._stopped = False
        self._waiters = []  # In the order in which they began to wait.

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
            for key, _ in self._selector.select(self._idle()):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is not None:
                    self._serve(key.data)
            self._end_waits()
            self._serve_waiters()

    def _idle(self):
        """Return for how many seconds nothing is to be done of itself; None for ever."""
        if not self._waiters:
            return None
        seconds = min(waiter.until for waiter in self._waiters) - time.monotonic()
        lease = self._store.idle()
        return max(0.0, seconds if lease is None else min(seconds, lease))

    def _is_waiting(self, connection):
        return any(waiter.connection is connection for waiter in self._waiters)

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
        if connection.closed:
            return
        try:
            if not connection.ending:
                data = connection.stream.recv(65536)
                connection.inbox.feed(data)
                self._answer(connection)
                if not data:
                    connection.ending = True
                    self._waiters = [waiter for waiter in self._waiters if waiter.connection is not connection]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        self._send(connection)

    def _answer(self, connection):
        while not connection.ending and not self._is_waiting(connection):
            try:
                request = connection.inbox.next()
                if request is None:
                    return
                answer = getattr(self, f"_{request.command.lower()}")(connection, request)
            except Refused as refused:
                answer = line("ERR", refused.code)
                connection.ending = refused.final
            connection.outbox += answer
            self._serve_waiters()

    def _serve_waiters(self):
        """Hand out what is free to those who wait for it, the first ones first."""
        served = []
        for waiter in self._waiters[:]:
            message = self._store.take(waiter.request.queue, waiter.request.lease)
            if message is not None:
                self._waiters.remove(waiter)
                waiter.connection.outbox += handed_out(message)
                served.append(waiter.connection)
        for connection in served:
            self._go_on(connection)

    def _end_waits(self):
        now = time.monotonic()
        while waiter := next((waiter for waiter in self._waiters if waiter.until <= now), None):
            self._waiters.remove(waiter)
            waiter.connection.outbox += line("EMPTY")
            self._go_on(waiter.connection)

    def _go_on(self, connection):
        """Answer what a connection has sent while it was waiting."""
        self._answer(connection)
        self._send(connection)

    def _send(self, connection):
        if connection.closed:
            return
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
        self._waiters = [waiter for waiter in self._waiters if waiter.connection is not connection]
        self._selector.unregister(connection.stream)
        connection.stream.close()
        connection.closed = True

    # Requests.

    def _put(self, connection, request):
        return line("OK", self._store.put(request.queue, request.body, request.key, request.prio, request.ttl))

    def _take(self, connection, request):
        message = self._store.take(request.queue, request.lease)
        if message is not None:
            return handed_out(message)
        if not request.wait:
            return line("EMPTY")
        self._waiters.append(Waiter(connection, request, time.monotonic() + request.wait))
        return b""

    def _ack(self, connection, request):
        self._store.ack(request.id, request.attempt)
        return line("OK")

    def _nack(self, connection, request):
        self._store.nack(request.id, request.attempt)
        return line("OK")

    def _touch(self, connection, request):
        self._store.touch(request.id, request.attempt, request.seconds)
        return line("OK")

    def _purge(self, connection, request):
        return line("OK", self._store.purge(request.queue))

    def _queues(self, connection, request):
        counts = {name: [*numbers, 0] for name, numbers in self._store.queues().items()}
        for waiter in self._waiters:
            counts.setdefault(waiter.request.queue, [0, 0, 0])[2] += 1
        return line("OK", len(counts)) + b"".join(line(name, *counts[name]) for name in sorted(counts))

    def _len(self, connection, request):
        return line("OK", self._store.count(request.queue))

    def _quit(self, connection, request):
        connection.ending = True
        return line("BYE")


def handed_out(message):
    return line("MSG", message.id, message.attempt, len(message.body)) + message.body + b"\n"


def line(*words):
    return " ".join(map(str, words)).encode("ascii") + b"\n"
