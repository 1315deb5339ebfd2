"""The shell agent's tool ``terminal``: it stays open, for interactive programs; tmux in the environment keeps it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from pytest_evocode.agents.words import TOOLS

TERMINAL = TOOLS["terminal"]
_LONGEST_WAIT = 60.0  # seconds
_SCRIPT = """
command -v tmux >/dev/null || { echo "This machine has no tmux, which keeps the terminal: use bash."; exit 127; }
type() { tmux -L evocode send-keys "$@"; }
tmux -L evocode has-session 2>/dev/null || tmux -u -L evocode -f /dev/null new-session -d -x 120 -y 40 || exit
text=$1 wait=$2
shift 2
[ -z "$text" ] || type -l -- "$text"
[ $# = 0 ] || type "$@"
sleep "$wait"
tmux -L evocode capture-pane -p
"""


def complaint_about_terminal(arguments: Mapping[str, Any] | None) -> str:
    """Return what is wrong with a call's arguments, for the model; empty where nothing is."""
    if arguments is None:
        return "The arguments are no JSON object."
    typed = [arguments.get(name, "") for name in ("text", "keys")]
    if not all(isinstance(each, str) and "\0" not in each for each in typed):
        return "The arguments 'text' and 'keys' have to be texts."
    wait = arguments.get("wait", 1)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= _LONGEST_WAIT:
        return f"The argument 'wait' has to be a number of seconds from 0 to {_LONGEST_WAIT:g}."
    return ""


def terminal_script(arguments: Mapping[str, Any]) -> str:
    """Return the script that types into the terminal and prints its screen."""
    keys = arguments.get("keys", "").split()
    wait = f"{arguments.get('wait', 1):g}"
    return shlex.join(["bash", "-c", _SCRIPT, "bash", arguments.get("text", ""), wait, *keys])
