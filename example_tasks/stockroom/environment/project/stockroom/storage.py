"""The stock in memory and in its files."""
import os

from stockroom import config
from stockroom.errors import StockError

ITEMS = []
MOVES = []
DIRECTORY = "."


def load(directory):
    global DIRECTORY
    if not os.path.isdir(directory):
        raise StockError("no such directory: %s" % directory)
    config.read(directory)
    DIRECTORY = directory
    del ITEMS[:]
    del MOVES[:]
    path = os.path.join(directory, "stock.csv")
    if not os.path.exists(path):
        return 0
    f = open(path)
    for line in f.read().split("\n")[1:]:
        try:
            sku, name, qty, price, location = line.split(",")
            ITEMS.append({"sku": sku, "name": name, "qty": int(qty), "price": float(price), "location": location})
        except ValueError:
            continue
    f.close()
    return len(ITEMS)


def save():
    f = open(os.path.join(DIRECTORY, "stock.csv"), "w")
    f.write("sku,name,qty,price,location\n")
    for item in sorted(ITEMS, key=lambda i: i["sku"]):
        f.write("%s,%s,%d,%.2f,%s\n" % (item["sku"], item["name"], item["qty"], item["price"], item["location"]))
    f.close()
    if MOVES:
        f = open(os.path.join(DIRECTORY, "moves.csv"), "w")
        f.write("at,sku,delta,note\n")
        for move in MOVES:
            f.write("%s,%s,%d,%s\n" % (move["at"], move["sku"], move["delta"], move["note"]))
        f.close()


def read_moves():
    path = os.path.join(DIRECTORY, "moves.csv")
    moves = []
    if os.path.exists(path):
        for line in open(path).read().split("\n")[1:]:
            try:
                at, sku, delta, note = line.split(",")
                moves.append({"at": at, "sku": sku, "delta": int(delta), "note": note})
            except ValueError:
                continue
    return moves
