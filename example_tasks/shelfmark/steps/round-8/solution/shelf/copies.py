"""Which copy of a title a loan gets."""

import datetime

_NEVER = datetime.date.max


def _days(out, back):
    """Return the first day of a loan and the one after its last."""
    if back is None:
        return out, _NEVER
    return out, max(back, out + datetime.timedelta(1))


class Copies:
    """The copies in the database, and when they are out."""

    def __init__(self, cursor) -> None:
        self._cursor = cursor

    def free(self, sig, out, back, wanted=None, besides=None) -> int:
        """Return the copy for a loan: the wanted one or else the first that is in on all its days, or one more."""
        self._cursor.execute("SELECT number FROM copy WHERE sig = %s ORDER BY number", (sig,))
        numbers = [number for (number,) in self._cursor.fetchall()]
        self._cursor.execute(
            "SELECT copy_number, out_on, back_on FROM loan"
            " WHERE sig = %s AND copy_number IS NOT NULL AND id IS DISTINCT FROM %s",
            (sig, besides),
        )
        first, end = _days(out, back)
        taken = set()
        for number, *period in self._cursor.fetchall():
            start, until = _days(*period)
            if start < end and first < until:
                taken.add(number)
        if wanted is not None and wanted not in taken:
            return wanted
        for number in numbers:
            if number not in taken:
                return number
        return self.add(sig, numbers[-1] + 1 if numbers else 1)

    def add(self, sig, number) -> int:
        self._cursor.execute("INSERT INTO copy VALUES (%s, %s)", (sig, number))
        return number

    def ensure(self, sig, count) -> None:
        """Give a title as many copies as a dump says, if it has fewer."""
        self._cursor.execute("SELECT count(*), coalesce(max(number), 0) FROM copy WHERE sig = %s", (sig,))
        found, last = self._cursor.fetchone()
        for number in range(last + 1, last + 1 + count - found):
            self.add(sig, number)
