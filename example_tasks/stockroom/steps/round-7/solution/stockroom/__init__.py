"""Stock keeping for one warehouse."""

from stockroom.errors import StockError
from stockroom.items import (
    add_item,
    all_items,
    change,
    find,
    load,
    release,
    reservations,
    reserve,
    save,
    ship,
    total_value,
)
from stockroom.stock import Stock, open_stock

__all__ = [
    "Stock",
    "StockError",
    "add_item",
    "all_items",
    "change",
    "find",
    "load",
    "open_stock",
    "release",
    "reservations",
    "reserve",
    "save",
    "ship",
    "total_value",
]
