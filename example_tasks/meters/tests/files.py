"""Files as the suppliers write them."""

from datetime import UTC, datetime, timedelta


def aqua(*lines, issued=None):
    """A file of Aqua, of lines such as "W-1;2024-01-01 00:00;12,5"."""
    top = ["# Aqua readings"] + ([f"# issued {issued}"] if issued else [])
    return "\n".join([*top, "Meter;Read at;m3", *lines, ""])


def volt(*lines, zone="+01:00", issued=None):
    """A file of Volt, of lines such as 'P-1,01.01.2024,00:15,10234.5'; `issued` is a date and a time of their clock."""
    top = ['"Volt Netz","Zählerstände"', f'"Zeitzone","{zone}"'] + ([f'"Erstellt","{issued}"'] if issued else [])
    return "\r\n".join([*top, '"Zähler","Datum","Uhrzeit","kWh"', *lines, ""]).encode("latin-1")


def norda(*lines, issued=None):
    """A file of Norda, of lines such as "N-1 2024-01-01T00:00:00Z 1.234,5 kWh", blanks for tabs."""
    top = ["Norda readings"] + ([f"issued {issued}"] if issued else [])
    text = "\n".join([*top, "meter at value unit", *lines, ""])
    return b"\xef\xbb\xbf" + text.replace(" ", "\t").encode()


def workshop(*lines):
    """A list of the workshop, of lines such as "P-1,2024-01-15T10:00:00Z,99120.5,3"."""
    return "\n".join(["meter,at,old,new", *lines, ""])


def prices(*lines):
    """A list of prices, of lines such as "power,2024-01-01,31.25"."""
    return "\n".join(["kind,from,cents", *lines, ""])


def decimal(thousandths, point):
    """Write thousandths with as few digits behind the point as possible."""
    whole, rest = divmod(thousandths, 1000)
    return f"{whole}{point}{rest:03}".rstrip("0").rstrip(point)


def write(supplier, readings, hour, issued=None):
    """Return the file of a supplier with these readings; its clock is `hour` hours ahead of UTC, but for Aqua's."""

    def local(moment, pattern):
        return (moment + timedelta(hours=hour)).strftime(pattern)

    if supplier == "aqua":
        lines = [f"{each.meter};{each.moment:%Y-%m-%d %H:%M};{decimal(each.value, ',')}" for each in readings]
        return aqua(*lines, issued=issued and issued.strftime("%Y-%m-%d %H:%M"))
    if supplier == "volt":
        lines = [
            f'"{each.meter}",{local(each.moment, "%d.%m.%Y,%H:%M")},"{decimal(each.value, ".")}"' for each in readings
        ]
        return volt(*lines, zone=f"{hour:+03}:00", issued=issued and local(issued, "%d.%m.%Y %H:%M"))
    zone = f"{hour:+03}:00"
    lines = []
    for number, each in enumerate(readings):
        value = [
            decimal(each.value, ",") + " " + ("m3" if each.kind == "water" else "kWh"),
            f"{each.value:,}".replace(",", ".") + " " + ("l" if each.kind == "water" else "Wh"),
        ][number % 2]
        lines.append(f"{each.meter} {local(each.moment, '%Y-%m-%dT%H:%M:00')}{zone} {value}")
    return norda(*lines, issued=issued and local(issued, "%Y-%m-%dT%H:%M:00") + zone)


def at(text):
    """Return a moment in UTC, of a text such as "2024-01-01 00:00"."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
