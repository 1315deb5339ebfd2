"""Lists and sums over the whole stock."""
from stockroom import config, items, storage


def total_value():
    total = 0.0
    for item in storage.ITEMS:
        total = total + item["qty"] * item["price"]
    return round(total, 2)


def show_lines(sku):
    item = items.known(sku)
    return [
        "sku: %s" % item["sku"],
        "name: %s" % item["name"],
        "qty: %d" % item["qty"],
        "price: %.2f" % item["price"],
        "location: %s" % item["location"],
    ]


def list_lines(separator):
    lines = []
    for i in items.all_items():
        lines.append(separator.join([i["sku"], i["name"], str(i["qty"]), "%.2f" % i["price"], i["location"]]))
    return lines


def history_lines(sku):
    items.known(sku)
    return ["%s\t%+d\t%s" % (m["at"], m["delta"], m["note"]) for m in storage.read_moves() if m["sku"] == sku]


def low_lines():
    return ["%s\t%d" % (i["sku"], i["qty"]) for i in items.all_items() if i["qty"] < config.settings["low"]]


def location_lines():
    places = []
    for item in storage.ITEMS:
        if item["location"] not in places:
            places.append(item["location"])
    lines = []
    for place in sorted(places):
        here = [i for i in items.all_items() if i["location"] == place]
        units = sum([i["qty"] for i in here])
        value = sum([i["qty"] * i["price"] for i in here])
        lines.append("%s\t%d\t%d\t%.2f" % (place, len(here), units, value))
    return lines
