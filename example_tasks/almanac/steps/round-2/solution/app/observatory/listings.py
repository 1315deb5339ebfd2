"""Listings as the old scripts print them."""


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
