"""The messages, as the journal has them and as requests change them."""

import binascii
import math
import re
import time

from courier.wire import NUMBER, QUEUE, Refused


class Message:
    def __init__(self, id, queue, body):
        self.id = id
        self.queue = queue
        self.body = body
        self.attempt = 0
        self.until = 0  # When its lease ends; 0 where it has none.

    def is_leased(self, now):
        return self.until > now


class Store:
    def __init__(self, journal):
        self._journal = journal
        self._messages = {}
        self._last_id = 0
        journal.replay(self._apply)

    def put(self, queue, body):
        id = self._last_id + 1
        self._journal.append("PUT", id, queue, binascii.b2a_base64(body, newline=False).decode() or "-")
        self._add(Message(id, queue, body))
        return id

    def take(self, queue, seconds):
        """Return the oldest message that is not leased, which it is from now on, or None."""
        now = time.time()
        free = (each for each in self._messages.values() if each.queue == queue and not each.is_leased(now))
        message = min(free, key=lambda message: message.id, default=None)
        if message is not None:
            until = math.ceil(now + seconds)
            self._journal.append("TAKE", message.id, message.attempt + 1, until)
            message.attempt += 1
            message.until = until
        return message

    def ack(self, id, attempt):
        self._leased(id, attempt)
        self._journal.append("ACK", id, attempt)
        del self._messages[id]

    def nack(self, id, attempt):
        message = self._leased(id, attempt)
        self._journal.append("NACK", id, attempt)
        message.until = 0

    def count(self, queue):
        return self.queues().get(queue, [0, 0])[0]

    def queues(self):
        """Return for each queue how many messages are free, and how many are leased."""
        now = time.time()
        counts = {}
        for message in self._messages.values():
            counts.setdefault(message.queue, [0, 0])[message.is_leased(now)] += 1
        return counts

    def idle(self):
        """Return for how many seconds no lease ends; None where there is none."""
        now = time.time()
        untils = [message.until for message in self._messages.values() if message.is_leased(now)]
        return min(untils) - now if untils else None

    def _leased(self, id, attempt):
        message = self._messages.get(id)
        if message is None or message.attempt != attempt or not message.is_leased(time.time()):
            raise Refused("stale")
        return message

    def _add(self, message):
        self._messages[message.id] = message
        self._last_id = max(self._last_id, message.id)

    def _apply(self, record):
        match record:
            case ["PUT", id, queue, body] if QUEUE.fullmatch(queue):
                self._add(Message(number(id), queue, decoded(body)))
            case ["TAKE", id, attempt, until] if re.fullmatch("[0-9]+", until):
                message = self._message(id)
                message.attempt, message.until = number(attempt), int(until)
            case ["NACK", id, attempt]:
                number(attempt)
                self._message(id).until = 0
            case ["ACK", id] | ["ACK", id, _]:  # The first form is that of editions 1 and 2.
                number(record[-1])
                del self._messages[self._message(id).id]
            case _:
                raise ValueError(record)

    def _message(self, id):
        """Return the message that a record is about."""
        message = self._messages.get(number(id))
        if message is None:
            raise ValueError(id)
        return message


def number(word):
    if not NUMBER.fullmatch(word):
        raise ValueError(word)
    return int(word)


def decoded(word):
    return b"" if word == "-" else binascii.a2b_base64(word, strict_mode=True)
