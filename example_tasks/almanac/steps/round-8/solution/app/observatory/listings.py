"""Listings as the old scripts print them, and those that they never had."""

import re


def measured(each):
    """Return what all listings of observations end with."""
    return f"{each.observer[:3]:<3} {each.magnitude:>5} {each.seconds:>6}s {each.number}"


def list_lines(observations):
    return [f"{each.night} {each.time} {each.object[:12]:<12} {measured(each)}\n" for each in observations]


def object_lines(observations, name):
    lines = []
    for each in observations:
        if each.object == name:
            lines.append(f"{each.night} {each.time} {measured(each)}\n")
            if each.note:
                lines.append(f"    {each.note}\n")
    return lines


def night_lines(observations):
    nights = {}
    for each in observations:
        count, exposed = nights.get(each.night, (0, 0))
        nights[each.night] = count + 1, exposed + each.seconds
    return [f"{night} {count:>4} {exposed:>7}s\n" for night, (count, exposed) in nights.items()]


def report_lines(observations):
    """Return a line for each object, with its magnitudes as far as they were measured."""
    from decimal import ROUND_HALF_UP, Decimal  # Which takes its time, and only this listing has means.

    objects = {}
    for each in observations:
        objects.setdefault(each.object, []).append(each.magnitude)
    lines = []
    for name, magnitudes in sorted(objects.items()):
        line = f"{name}: {len(magnitudes)} observations"
        numbers = [text for text in magnitudes if re.fullmatch(r"[-+]?[0-9]+(\.[0-9]*)?", text)]
        if numbers:
            mean = sum(map(Decimal, numbers)) / len(numbers)
            mean = mean.quantize(Decimal("0.01"), ROUND_HALF_UP)
            brightest, faintest = min(numbers, key=Decimal), max(numbers, key=Decimal)
            line += f", brightest {brightest}, faintest {faintest}, mean {mean}"
        lines.append(f"{line}\n")
    return lines
