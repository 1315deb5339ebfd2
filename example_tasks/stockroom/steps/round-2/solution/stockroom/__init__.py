"""Stock keeping for one warehouse."""

from stockroom.errors import StockError
from stockroom.items import add_item, all_items, change, find, load, save, total_value
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
    "save",
    "total_value",
]
