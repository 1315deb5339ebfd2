"""Print the names of the backups that may be deleted."""

import argparse
import csv
import re
import sys
from datetime import date, datetime, timedelta
from typing import NamedTuple

RETIRED_DAYS = 30
_NAME = re.compile(r"([a-z0-9-]+)-(\d{4}-\d\d-\d\dT\d{4})\.tar\.gz", re.ASCII)


class ListError(Exception):
    """The list of retired machines cannot be relied on; says why."""


class Backup(NamedTuple):
    """One backup, by its name."""

    machine: str
    made: datetime
    name: str


def parse_backup(name):
    """The backup that is called so, None where it is the name of none."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    try:
        return Backup(match[1], datetime.strptime(match[2], "%Y-%m-%dT%H%M"), name)
    except ValueError:
        return None


def day_of(backup):
    """The day a backup was made on."""
    return backup.made.date()


def week_of(backup):
    """The Sunday that a backup's week began on."""
    return day_of(backup) - timedelta(backup.made.isoweekday() % 7)


def newest_of_each(backups, period, count):
    """Of each of the latest periods that have a backup, the newest; `period` tells which a backup is in."""
    newest = {period(each): each for each in sorted(backups, key=lambda each: each.made)}
    return {newest[key] for key in sorted(newest, reverse=True)[:count]}


def keep(backups, daily, weekly):
    """Those of the backups of one machine that are kept."""
    newest = max(backups, key=lambda each: each.made)
    return {newest} | newest_of_each(backups, day_of, daily) | newest_of_each(backups, week_of, weekly)


def read_retired(path):
    """The machines of a list with the days of their retirement; raises ListError unless all of it is understood."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file)
        if header != ["machine", "retired"]:
            raise ListError(f"{path}: the header is not machine,retired")
        retired = {}
        for machine, day in lines:
            retired[machine] = max(retired.get(machine, date.min), parse_day(day))
        return retired
    except (OSError, ValueError, csv.Error) as error:
        raise ListError(f"{path}: {error}") from None


def parse_day(text):
    """The day that is written YYYY-MM-DD; raises ValueError for anything else."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        raise ValueError(f"not a day: {text!r}")
    return date.fromisoformat(text)


def is_gone(machine, retired, today):
    """Whether a machine has been retired for more than 30 days."""
    return machine in retired and today - retired[machine] > timedelta(RETIRED_DAYS)


def prune(backups, daily, weekly, gone=()):
    """The backups that may go, in the order given; of the machines in `gone` all of them."""
    kept = set()
    for machine in {each.machine for each in backups}.difference(gone):
        kept |= keep([each for each in backups if each.machine == machine], daily, weekly)
    return [each for each in backups if each not in kept]


def count(text):
    """A whole number from 0 on; raises ValueError for anything else."""
    if not re.fullmatch("[0-9]+", text):
        raise ValueError(text)
    return int(text)


def main():
    parser = argparse.ArgumentParser(prog="prune.py")
    parser.add_argument("--daily", type=count, default=7)
    parser.add_argument("--weekly", type=count, default=4)
    parser.add_argument("--retired", metavar="FILE")
    parser.add_argument("--today", type=parse_day, default=date.today())
    options = parser.parse_args()
    try:
        retired = read_retired(options.retired) if options.retired is not None else {}
    except ListError as error:
        sys.exit(f"error: {error}")
    gone = {machine for machine in retired if is_gone(machine, retired, options.today)}
    backups = []
    for line in filter(None, map(str.strip, sys.stdin)):
        backup = parse_backup(line)
        if backup:
            backups.append(backup)
        else:
            print(f"skipped: {line}", file=sys.stderr)
    for backup in prune(backups, options.daily, options.weekly, gone):
        print(backup.name)


if __name__ == "__main__":
    main()
