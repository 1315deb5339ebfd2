"""The messages, as the journal has them and as requests change them."""

import binascii

from courier.wire import NUMBER, QUEUE, Refused


class Message:
    def __init__(self, id, queue, body):
        self.id = id
        self.queue = queue
        self.body = body
        self.holder = None


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

    def take(self, queue, holder):
        """Return the oldest message that nobody holds, which `holder` does from now on, or None."""
        message = min(self._free(queue), key=lambda message: message.id, default=None)
        if message is not None:
            message.holder = holder
        return message

    def ack(self, id, holder):
        message = self._messages.get(id)
        if message is None or message.holder is not holder:
            raise Refused("not-held")
        self._journal.append("ACK", id)
        del self._messages[id]

    def nack(self, id, holder):
        message = self._messages.get(id)
        if message is None or message.holder is not holder:
            raise Refused("not-held")
        message.holder = None

    def count(self, queue):
        return sum(1 for _ in self._free(queue))

    def queues(self):
        """Return for each queue how many messages are free, and how many are held."""
        counts = {}
        for message in self._messages.values():
            counts.setdefault(message.queue, [0, 0])[message.holder is not None] += 1
        return counts

    def release(self, holder):
        """Let go of all that a connection holds."""
        for message in self._messages.values():
            if message.holder is holder:
                message.holder = None

    def _free(self, queue):
        return (each for each in self._messages.values() if each.queue == queue and each.holder is None)

    def _add(self, message):
        self._messages[message.id] = message
        self._last_id = max(self._last_id, message.id)

    def _apply(self, record):
        match record:
            case ["PUT", id, queue, body] if QUEUE.fullmatch(queue):
                self._add(Message(number(id), queue, decoded(body)))
            case ["ACK", id]:
                self._messages.pop(number(id), None)
            case _:
                raise ValueError(record)


def number(word):
    if not NUMBER.fullmatch(word):
        raise ValueError(word)
    return int(word)


def decoded(word):
    return b"" if word == "-" else binascii.a2b_base64(word, strict_mode=True)
