"""Listings as the old scripts print them."""


def measured(each):
    """Return what all listings of observations end with."""
    return f"{each.observer[:3]:<3} {each.magnitude:>5} {each.seconds:>6}s {each.number}"


def list_lines(observations):
    return [f"{each.night} {each.time} {each.object[:12]:<12} {measured(each)}\n" for each in observations]
