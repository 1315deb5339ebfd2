"""The pick list for the terminals of the haulier, of whose format his tool was the only description."""

from functools import reduce

from stockroom import money

BLANKS = dict.fromkeys(range(32), " ")


def made_of(items):
    """The bytes of the list, and how many items stand in it."""
    wanted = sorted((item for item in items if item.qty), key=lambda item: (item.location.upper(), item.sku))
    text = ""
    before = None
    for item in wanted:
        if item.location != before:
            text += f"*{item.location.translate(BLANKS):12.12}\r\n"
        before = item.location
        # His tool knew cents only, and rounded as binary fractions are rounded.
        price = f"{item.price / money.UNIT:.2f}".replace(".", ",")
        text += f"{item.sku.translate(BLANKS):8.8}{item.name.translate(BLANKS):20.20}{item.qty:6d}{price:>10}\r\n"
    body = text.encode("latin-1", "replace")
    check = reduce(lambda sum, byte: (sum * 31 + byte) % 9973, body, 0)
    return body + b"#%04d%04d\x1a" % (len(wanted), check), len(wanted)
