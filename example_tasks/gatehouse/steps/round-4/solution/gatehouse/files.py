"""Attachments of bookings, and pages."""

import os
import re
import shutil
from urllib.parse import quote

from gatehouse.store import Refused

PAGES = os.path.join(os.path.dirname(__file__), "pages")


def is_name(name):
    """Say whether an attachment may have this name."""
    return name not in (".", "..") and re.fullmatch(r"[^/\\\x00-\x1f\x7f]+", name) and len(name.encode()) <= 200


def directory(data, booking):
    return os.path.join(data, "files", str(booking))


def names(data, booking):
    path = directory(data, booking)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def sizes(data, booking):
    return {name: os.path.getsize(path_of(data, booking, name)) for name in names(data, booking)}


def path_of(data, booking, name):
    if not is_name(name):
        raise Refused(400, "this is no name of an attachment")
    return os.path.join(directory(data, booking), name)


def keep(data, booking, name, body):
    path = path_of(data, booking, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(body)


def read(data, booking, name):
    return contents(path_of(data, booking, name))


def remove(data, booking, name):
    try:
        os.remove(path_of(data, booking, name))
    except FileNotFoundError:
        raise Refused(404, "there is no such file") from None


def remove_all(data, booking):
    shutil.rmtree(directory(data, booking), ignore_errors=True)


def page(name):
    if name not in os.listdir(PAGES):
        raise Refused(404, "there is no such page")
    return contents(os.path.join(PAGES, name))


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise Refused(404, "there is no such file") from None


def headers(name):
    """Return the head of a download: never a page of ours."""
    return {
        "Content-Type": "application/octet-stream",
        "X-Content-Type-Options": "nosniff",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }
