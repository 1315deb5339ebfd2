"""The functions that work on the one stock loaded last."""

from stockroom.stock import open_stock

_loaded = None


def load(directory):
    """Opens the directory's stock for the functions below; the number of its items."""
    global _loaded
    stock = open_stock(directory)
    if _loaded is not None:
        _loaded.close()
    _loaded = stock
    return len(stock.all_items())


def loaded():
    if _loaded is None:
        load(".")
    return _loaded


def add_item(sku, name, qty, price, location=None):
    loaded().add_item(sku, name, qty, price, location)


def change(sku, delta, note=""):
    return loaded().change(sku, delta, note)


def reserve(sku, n, ref):
    return loaded().reserve(sku, n, ref)


def release(ref):
    loaded().release(ref)


def ship(ref):
    return loaded().ship(ref)


def reservations():
    return loaded().reservations()


def find(sku):
    return loaded().find(sku)


def all_items():
    return loaded().all_items()


def total_value():
    return loaded().total_value()


def save():
    loaded().save()
