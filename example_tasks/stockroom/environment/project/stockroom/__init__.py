"""Stock keeping for one warehouse."""
from stockroom.errors import StockError
from stockroom.items import add_item, all_items, change, find
from stockroom.reports import total_value
from stockroom.storage import load, save

__all__ = ["StockError", "add_item", "all_items", "change", "find", "load", "save", "total_value"]
