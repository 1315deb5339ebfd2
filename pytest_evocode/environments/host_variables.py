"""The variables of this process, for programs that it starts."""

from __future__ import annotations

import os


def host_variables() -> dict[str, str]:
    """Return a copy of the variables, also while another thread changes one, as pytest does in each test."""
    while True:
        try:
            return dict(os.environ)
        except KeyError:  # One was removed meanwhile.
            continue
