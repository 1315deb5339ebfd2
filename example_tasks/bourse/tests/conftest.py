"""What the tests of all rounds share: the fixture `bourse`."""

import re
import resource
import subprocess
import sys

import pytest
from model import Model

KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Variables with which no program is compiled anew; the image has it otherwise, for the sake of the agent's files."""
TIMES = 10
"""How many times as long as the yardstick the contract lets the program take."""
YARDSTICK = "/app/yardstick.py"
"""The yardstick of the image, as no agent has touched it."""


def yardstick(lines):
    """Return the seconds of processor time that the yardstick takes for these lines, here and now."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The workspace has no part in what it is measured by.
    subprocess.run([sys.executable, YARDSTICK], input=lines, capture_output=True, text=True, check=True)  # verifier
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Bourse:
    """The program, with a book of its own where a test asks for one."""

    def __init__(self, workspace, edition):
        self.workspace = workspace
        self.edition = edition

    @property
    def path(self):
        return f"{self.workspace.path}/book"

    def write(self, book):
        self.workspace.write(self.path, book)

    def book(self):
        return self.workspace.read_text(self.path)

    @staticmethod
    def orders(book):
        """Return the lines of a book that have orders."""
        return [line for line in book.splitlines() if line.startswith(("BID ", "ASK "))]

    def run(self, requests, with_book=False):
        """Return what the program leaves: status, standard output, standard error."""
        command = ["python3", "-m", "bourse", *(["--book", self.path] if with_book else [])]
        done = self.workspace.run(command, input=requests, env=KEEP_BYTECODE, timeout=20)
        return done.exit_code, done.stdout, done.stderr

    def answers(self, requests, with_book=False):
        """Return the answers to requests, all in one text, of a program that has to end well."""
        status, answers, errors = self.run(requests, with_book)
        assert (status, errors) == (0, "")
        return answers

    def apart(self, scenes):
        """Hold a day of several scenes, each with goods and IDs of its own, against their right answers."""
        requests, answers = [], []
        for number, (sent, said) in enumerate(scenes):
            requests.append(re.sub(r"\b([a-z]|rye|oats)\b", rf"\1-{number}", sent))
            answers.append(re.sub(r"\b([a-z]|rye|oats)\b", rf"\1-{number}", said))
        assert self.answers("".join(requests)) == "".join(answers)

    def day(self, requests, book=None):
        """Return the answers of a day and the book after it, with this book before it or that of the day before."""
        if book is not None:
            self.write(book)
        answers = self.answers(requests, with_book=True)
        return answers, self.book()

    def model(self, book=""):
        """Return what the contract says in this round, as a program."""
        return Model(self.edition, book)

    def keeps_pace(self, requests, answers, book=None, after=None):
        """Hold a day's answers, and its book, against those that are right, and its time against the yardstick."""
        lines = "".join([requests, answers, book or "", after or ""])
        assert lines.count("\n") >= 20000
        allowed = TIMES * yardstick(lines)
        option = "" if book is None else f" --book {self.path}"
        script = f"ulimit -t {int(allowed) + 2}; TIMEFORMAT='%U %S'; time python3 -m bourse{option}"
        took = []
        while len(took) < 3:
            if book is not None:
                self.write(book)
            done = self.workspace.run(script, input=requests, env=KEEP_BYTECODE, timeout=50)
            took.append(sum(map(float, done.stderr.splitlines()[-1].split())))
            assert (done.exit_code, done.stdout == answers) == (0, True), (
                f"status {done.exit_code} after {took[-1]} s, {allowed:.2f} s are allowed"
            )
            if took[-1] <= allowed:
                break
        assert min(took) <= allowed
        if after is not None:
            assert self.book() == after


@pytest.fixture
def bourse(workspace, evocode_round):
    return Bourse(workspace, evocode_round.index)
