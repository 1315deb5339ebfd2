"""Attachments of bookings, and pages."""

import mimetypes
import os

from gatehouse.store import Refused

PAGES = os.path.join(os.path.dirname(__file__), "pages")


def directory(data, booking):
    return os.path.join(data, "files", str(booking))


def names(data, booking):
    path = directory(data, booking)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def keep(data, booking, name, body):
    path = os.path.join(directory(data, booking), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(body)


def read(data, booking, name):
    return contents(os.path.join(directory(data, booking), name))


def page(name):
    return contents(os.path.join(PAGES, name))


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise Refused(404, "there is no such file") from None


def headers(name):
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return {"Content-Type": kind, "Content-Disposition": f'inline; filename="{name}"'}
