"""Print the names of the backups that may be deleted."""

import argparse
import re
import sys
from datetime import datetime
from typing import NamedTuple

_NAME = re.compile(r"([a-z0-9-]+)-(\d{4}-\d\d-\d\dT\d{4})\.tar\.gz", re.ASCII)


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
    """The calendar week a backup was made in, with its year."""
    return backup.made.isocalendar()[:2]


def newest_of_each(backups, period, count):
    """Of each of the latest periods that have a backup, the newest; `period` tells which a backup is in."""
    newest = {period(each): each for each in sorted(backups, key=lambda each: each.made)}
    return {newest[key] for key in sorted(newest, reverse=True)[:count]}


def keep(backups, daily, weekly):
    """Those of the backups of one machine that are kept."""
    newest = max(backups, key=lambda each: each.made)
    return {newest} | newest_of_each(backups, day_of, daily) | newest_of_each(backups, week_of, weekly)


def prune(backups, daily, weekly):
    """The backups that may go, in the order given."""
    kept = set()
    for machine in {each.machine for each in backups}:
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
    options = parser.parse_args()
    backups = []
    for line in filter(None, map(str.strip, sys.stdin)):
        backup = parse_backup(line)
        if backup:
            backups.append(backup)
        else:
            print(f"skipped: {line}", file=sys.stderr)
    for backup in prune(backups, options.daily, options.weekly):
        print(backup.name)


if __name__ == "__main__":
    main()
