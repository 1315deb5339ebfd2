"""Cases that share a database, as it is the starts of the program that take time."""

import json

import pytest

SEPARATOR = "\x1e"  # Between what several commands print.
VIEWS = ["readings", "monthly", "suspects", "rejects", "bills"]


def answering(commands):
    """Return a script that runs commands, and prints what `answers` reads."""
    return "\n".join(f'{command} > out 2> err; printf "%s{SEPARATOR}" $? "$(<out)" "$(<err)"' for command in commands)


def answers(output):
    """Return the answer of each command: [(status, output, errors)], without line ends."""
    parts = output.split(SEPARATOR)[:-1]
    statuses = [int(part) if part.isdigit() else None for part in parts[::3]]
    return list(zip(statuses, parts[1::3], parts[2::3], strict=False))


def billed(*calls, asks):
    """Mark a case that is billed together with others, each of which has prices of its own: of another year or kind."""
    return pytest.mark.imports(*calls, asks=asks, group="bills")


class Case:
    """What a case asks for by `pytest.mark.imports(*calls, asks=[], group="readings")`.

    `calls` has the file or the files of each import, `asks` what is run after each of them, such as "report 2024-01".
    Cases of a group share a database, so the meters of each have names of their own.
    """

    def __init__(self, number, marker):
        self.calls = [call if isinstance(call, list) else [call] for call in marker.args]
        self.names = [[f"{number}-{at}-{file}.csv" for file in range(len(call))] for at, call in enumerate(self.calls)]
        self.asks = marker.kwargs.get("asks", [])
        self.group = marker.kwargs.get("group", "readings")


def play(workspace, cases):
    """Import what cases ask for, and return for each call a table of answers, by command or view.

    Of several cases, None where a command failed or did not end.
    """
    calls = []
    for number in range(max(len(case.calls) for case in cases)):
        asking = [case for case in cases if number < len(case.calls)]
        files = {}
        for case in asking:
            files |= zip(case.names[number], case.calls[number], strict=True)
        asks = sorted({ask for case in asking for ask in case.asks})
        commands = {"import": f"/app/meters import {' '.join(files)}"} | {ask: f"/app/meters {ask}" for ask in asks}
        views = {view: f"sqlite3 -readonly -json meters.db 'SELECT * FROM {view} ORDER BY 1, 2, 3'" for view in VIEWS}
        script = answering([*commands.values(), *views.values()])
        directory = f"{workspace.path}/{cases[0].group}"
        done = workspace.run(script, files=files, cwd=directory, timeout=20)
        calls.append(dict(zip([*commands, *views], answers(done.stdout), strict=False)))
        if len(cases) > 1 and not all(calls[-1].get(command, [None])[0] == 0 for command in commands):
            return None
    return calls


class Seen:
    """What there is of a case after its imports; `call` is 0 for the first, and the last one without."""

    def __init__(self, case, calls):
        """`calls` returns what `play` does, for this case and perhaps others."""
        self._case = case
        self._calls = calls

    def imported(self, call=-1):
        """Return what an import said of each file of the case, without the names."""
        starts = tuple(f"{name}: " for name in self._case.names[call])
        lines = self._output("import", call).splitlines()
        return [line.partition(": ")[2] for line in lines if line.startswith(starts)]

    def printed(self, ask, *meters, call=-1):
        """Return the lines on these meters of what a command printed."""
        starts = tuple(f"{meter} " for meter in meters)
        return [line for line in self._output(ask, call).splitlines() if line.startswith(starts)]

    def report(self, month, *meters, call=-1):
        return self.printed(f"report {month}", *meters, call=call)

    def rows(self, view, *meters, call=-1):
        """Return the rows on these meters of a view, in the order of the first columns."""
        rows = json.loads(self._output(view, call) or "[]")
        return [row for row in rows if row["meter"] in meters]

    def values(self, view, columns, *meters, call=-1):
        """Return columns of `rows`, as tuples."""
        return [tuple(row[column] for column in columns.split()) for row in self.rows(view, *meters, call=call)]

    def tuples(self, view, meters, call=-1):
        """Return sorted tuples of all columns of `rows`."""
        return sorted(tuple(row.values()) for row in self.rows(view, *meters, call=call))

    def rejects(self, number):
        """Return the rows of `rejects` that are of a file of the case's last call, in the order of their lines."""
        rows = json.loads(self._output("rejects", -1) or "[]")
        return [row for row in rows if row["file"] == self._case.names[-1][number]]

    def _output(self, command, call):
        calls = self._calls()
        table = calls[range(len(self._case.calls))[call]]
        status, output, errors = table[command]
        assert (status, errors) == (0, "")
        return output
