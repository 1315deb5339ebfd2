"""What a model is told whose reply neither calls a tool nor says anything, or shows a script in place of a call."""

from __future__ import annotations

import re

from pytest_evocode.llm.protocol import Reply

_SCRIPT = re.compile(r"^[ \t]*(```|~~~)[ \t]*(bash|sh|shell|console|zsh)\b", re.MULTILINE | re.IGNORECASE)
_EMPTY = (
    "Your reply was empty. Go on with the request by calling the tool; or if all is done, say in a few sentences what "
    "you did."
)
_NO_CALL = (
    "Nothing was run: a script in a reply's text is only text. To run it, call the tool `bash` with the script as its "
    "argument `command`. If nothing is left to be run, say that you are done."
)
#: How often a turn's empty replies are asked for again, one after the other.
_EMPTY_REPLIES = 2


class Nudges:
    """The nudges of one turn; they follow from the replies alone, so a turn that is replayed has the same."""

    def __init__(self) -> None:
        self._empty = 0
        self._has_called = False

    def after(self, reply: Reply) -> tuple[str, str]:
        """Return why the turn goes on after a reply, and what the model is told; twice nothing where it does not."""
        if reply.calls:
            self._has_called, self._empty = True, 0
            return "", ""
        is_empty = not reply.text.strip() and not reply.cut_off
        if (is_empty or reply.ending == "paused") and self._empty < _EMPTY_REPLIES:
            self._empty += 1
            return "empty reply", _EMPTY
        # One that has called the tool knows how, and may show a script to the user.
        if not self._has_called and not reply.cut_off and _SCRIPT.search(reply.text):
            self._has_called = True
            return "script without a call", _NO_CALL
        return "", ""
