"""Listings as the old scripts print them."""


def list_lines(observations):
    return [
        "%s %s %-12.12s %-3.3s %5s %6ds %s\n"
        % (each.night, each.time, each.object, each.observer, each.magnitude, each.seconds, each.number)
        for each in observations
    ]
