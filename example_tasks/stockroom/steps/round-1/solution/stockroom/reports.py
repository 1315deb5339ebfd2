"""Lists and sums over the whole stock."""

from stockroom import config, csvfile, items, storage


def one_line(text):
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def total_value():
    total = 0.0
    for item in storage.ITEMS:
        total = total + item["qty"] * item["price"]
    return round(total, 2)


def show_lines(sku):
    fields = storage.item_fields(items.known(sku))
    return [f"{name}: {one_line(str(field))}" for name, field in zip(storage.STOCK_HEADER, fields, strict=True)]


def list_lines():
    return ["\t".join(one_line(str(field)) for field in storage.item_fields(i)) for i in items.all_items()]


def csv_lines():
    return [csvfile.line(row) for row in [storage.STOCK_HEADER, *map(storage.item_fields, items.all_items())]]


def history_lines(sku):
    items.known(sku)
    return [f"{m['at']}\t{m['delta']:+d}\t{one_line(m['note'])}" for m in storage.MOVES if m["sku"] == sku]


def low_lines():
    return [f"{one_line(i['sku'])}\t{i['qty']}" for i in items.all_items() if i["qty"] < config.settings["low"]]


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
        lines.append(f"{one_line(place)}\t{len(here)}\t{units}\t{value:.2f}")
    return lines
