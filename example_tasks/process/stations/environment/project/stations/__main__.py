"""The command line."""

import sys

from stations.alerts import find_alerts
from stations.export import csv_lines
from stations.readings import read
from stations.summary import summarize

COMMANDS = {"summary": summarize, "alerts": find_alerts, "export": csv_lines}


def main(command, path):
    for line in COMMANDS[command](read(path)):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
