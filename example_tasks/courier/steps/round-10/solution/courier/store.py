"""The messages, as the journal has them and as requests change them."""

import binascii
import contextlib
import copy
import math
import re
import time

from courier.journal import number
from courier.wire import ANY_QUEUE, KEY, QUEUE, Refused


class Message:
    def __init__(self, id, queue, body, key="", prio=5, expires=0):
        self.id = id
        self.queue = queue
        self.body = body
        self.key = key
        self.prio = prio
        self.expires = expires  # When it expires; 0 where it does not.
        self.place = 0
        self.attempt = 0
        self.until = 0  # When its lease ends; 0 where it has none.
        self.purged = False  # It is removed when its lease ends.
        self.dead = False

    @property
    def name(self):
        """The queue that it is in."""
        return f"{self.queue}.dead" if self.dead else self.queue

    @property
    def rank(self):
        """What comes first is least."""
        return (0, self.id) if self.dead else (-self.prio, self.place)

    def is_leased(self, now):
        return self.until > now

    def is_expired(self, now):
        return 0 < self.expires <= now


class Store:
    def __init__(self, journal, most_attempts):
        self._journal = journal
        self._most_attempts = most_attempts
        self._messages = {}
        self._gone = {}  # Attempts of which messages were acknowledged, None of those removed, with queues and keys.
        self._keys = {}  # Ids, by queue and key.
        self._last_id = 0
        self._last_place = 0
        journal.replay(self._apply)
        self._settle()

    @contextlib.contextmanager
    def all_or_nothing(self):
        """Do what the block does as one, or nothing where it raises."""
        self._settle()
        kept = {name: copy.deepcopy(value) for name, value in vars(self).items() if name != "_journal"}
        try:
            with self._journal.batch():
                yield
        except Refused:
            vars(self).update(kept)
            raise

    def put(self, queue, body, key, prio, ttl):
        if key and (queue, key) in self._keys:
            return self._keys[queue, key]
        id = self._last_id + 1
        expires = math.ceil(time.time() + ttl) if ttl else 0
        message = Message(id, queue, body, key, prio, expires)
        self._journal.append(*put_record(message))
        self._add(message)
        return id

    def take(self, queue, seconds):
        """Return the first message that is not leased, which it is from now on, or None."""
        self._settle()
        now = time.time()
        free = (each for each in self._messages.values() if each.name == queue and not each.is_leased(now))
        message = min(free, key=lambda message: message.rank, default=None)
        if message is not None:
            until = math.ceil(now + seconds)
            self._journal.append("TAKE", message.id, message.attempt + 1, until)
            message.attempt += 1
            message.until = until
        return message

    def ack(self, id, attempt):
        if id in self._gone and self._gone[id][0] == attempt:
            return
        self._leased(id, attempt)
        self._journal.append("ACK", id, attempt)
        self._remove(id, attempt)

    def nack(self, id, attempt):
        message = self._leased(id, attempt)
        self._journal.append("NACK", id, attempt)
        self._give_back(message)
        self._settle()

    def touch(self, id, attempt, seconds):
        message = self._leased(id, attempt)
        until = math.ceil(time.time() + seconds)
        self._journal.append("TAKE", id, attempt, until)
        message.until = until

    def purge(self, queue):
        """Remove what is not leased, and the rest when it is no more; return how many messages are gone at once."""
        number = self.queues().get(queue, [0, 0])[0]
        if any(not message.purged for message in self._of(queue)):
            self._journal.append("PURGE", queue)
            self._mark_purged(queue)
        return number

    def compact(self):
        self._settle()
        self._journal.replace(self._records())

    def _records(self):
        """Yield the records that lead to what there is now."""
        for id, (attempt, queue, key) in self._gone.items():
            yield "GONE", id, "-" if attempt is None else attempt, queue, key or "-"
        messages = sorted(self._messages.values(), key=lambda message: message.place)
        purged = [message for message in messages if message.purged]
        for message in purged:
            yield from records(message)
        for name in {message.name for message in purged}:
            yield "PURGE", name
        for message in messages:
            if not message.purged:
                yield from records(message)

    def queues(self):
        """Return for each queue how many messages are free, and how many are leased."""
        self._settle()
        now = time.time()
        counts = {}
        for message in self._messages.values():
            counts.setdefault(message.name, [0, 0])[message.is_leased(now)] += 1
        return counts

    def idle(self):
        """Return for how many seconds no lease ends and nothing expires; None where nothing ever does."""
        now = time.time()
        times = [time for message in self._messages.values() for time in (message.until, message.expires)]
        return min((time - now for time in times if time > now), default=None)

    def _settle(self):
        """Remove what was purged and let die what has to, but for what is leased."""
        now = time.time()
        for message in [each for each in self._messages.values() if not each.is_leased(now)]:
            if message.purged:
                self._remove(message.id, None)
            elif not message.dead and (message.is_expired(now) or message.attempt >= self._most_attempts):
                self._journal.append("DEAD", message.id)
                message.dead = True

    def _mark_purged(self, queue):
        for message in self._of(queue):
            message.purged = True

    def _of(self, queue):
        return [message for message in self._messages.values() if message.name == queue]

    def _leased(self, id, attempt):
        message = self._messages.get(id)
        if message is None or message.attempt != attempt or not message.is_leased(time.time()):
            raise Refused("stale")
        return message

    def _add(self, message):
        self._messages[message.id] = message
        self._place_last(message)
        if message.key:
            self._keys[message.queue, message.key] = message.id
        self._last_id = max(self._last_id, message.id)

    def _place_last(self, message):
        self._last_place += 1
        message.place = self._last_place

    def _give_back(self, message):
        message.until = 0
        self._place_last(message)

    def _remove(self, id, attempt):
        message = self._messages.pop(id)
        self._gone[id] = attempt, message.queue, message.key

    def _apply(self, record):
        match record:
            case ["PUT", id, queue, body, *more] if QUEUE.fullmatch(queue) and len(more) <= 3:
                self._add(Message(number(id), queue, decoded(body), *options(*more)))
            case ["TAKE", id, attempt, until] if re.fullmatch("[0-9]+", until):
                message = self._message(id)
                message.attempt, message.until = number(attempt), int(until)
            case ["NACK", id, attempt]:
                number(attempt)
                self._give_back(self._message(id))
            case ["ACK", id]:  # That of editions 1 and 2.
                self._remove(self._message(id).id, 1)
            case ["ACK", id, attempt]:
                self._remove(self._message(id).id, number(attempt))
            case ["GONE", id, attempt, queue, key] if QUEUE.fullmatch(queue):
                self._add(Message(number(id), queue, b"", options(key)[0]))
                self._remove(number(id), None if attempt == "-" else number(attempt))
            case ["DEAD", id]:
                self._message(id).dead = True
            case ["PURGE", queue] if ANY_QUEUE.fullmatch(queue):
                self._mark_purged(queue)
            case _:
                raise ValueError(record)

    def _message(self, id):
        """Return the message that a record is about."""
        message = self._messages.get(number(id))
        if message is None:
            raise ValueError(id)
        return message


def put_record(message):
    body = binascii.b2a_base64(message.body, newline=False).decode() or "-"
    return "PUT", message.id, message.queue, body, message.key or "-", message.prio, message.expires or "-"


def records(message):
    """Yield what the journal needs to say of a message."""
    yield put_record(message)
    if message.attempt:
        yield "TAKE", message.id, message.attempt, message.until
    if message.dead:
        yield "DEAD", message.id


def options(key="-", prio="5", expires="-"):
    """Return the last words of a PUT, which came in with editions 4, 5 and 7."""
    if (key != "-" and not KEY.fullmatch(key)) or not re.fullmatch("[0-9]", prio):
        raise ValueError(key, prio)
    if not re.fullmatch("-|[0-9]+", expires):
        raise ValueError(expires)
    return key.removeprefix("-"), int(prio), 0 if expires == "-" else int(expires)


def decoded(word):
    return b"" if word == "-" else binascii.a2b_base64(word, strict_mode=True)
