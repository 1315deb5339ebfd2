"""Find the words in a text that are specific to a task, and not part of any request to a programmer."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_STOP = """
a about above after again all also always an and any are as at back be because been before being below between both but
by can cannot could did do does doing done down during each either else enough even ever every few for from further get
gets give given go goes going good had has have having he her here him his how however i if in instead into is it its
itself just keep kept last least let like ll made make makes many may me might more most much must my need needed needs
neither never new next no nor not nothing now of off often on once one only or other others our out over own per
please put rather re same see several shall she should since so some something still such take taken takes than that
the their them then there these they thing things this those though three through time to together too took two under
until up upon us use used user users uses using very via want wanted wants was way we well were what when where whether
which while who why will with within without would yes yet you your first second third finally ready work works working
"""
_GENERIC = """
add added adding agent analysis analyze analyse application approach assert assertion assertions base behaviour behavior
bug bugs build builds call calls case cases change changed changes check checks class clean code codebase command
commands commit complete components consider correct correctly create created current cycle data debug define deliver
deliverable deploy design detail details develop development directory document documentation documented edge edit
ensure error errors example examine execute exist existing explore expected fail failing fails feature features file
files final find fix fixed fixes format function functions functionality goal good handle handling high identify
implement implementation implemented implementing improve include including input inspect integrate integration issue
issues iterate library line lines list logic main method methods modify module modules name note notes object objective
objectives output outputs overview pass passes passing path phase plan planned planning plans prepare problem process
product program programs project prompt properly python quality read refactor refine release report repository request
requested required requirement requirements requires research result results return returns review round rounds run
running runs scope script set setup simple software solution solve source spec specification start state step steps
strategy structure success suite summary support supports sure system task tasks team test tested testing tests text
todo tool tools type types understand understanding unit update updated updates validate validation value values verify
verification version word words workflow write writes writing written
"""
_STOPS = frozenset(f"{_STOP} {_GENERIC}".split())


def specific_words(text: str) -> set[str]:
    """Return the specific words of a text in lower case and without endings; names are split into their words.

    >>> sorted(specific_words("Implement parse_amount() so that negative amounts in brackets are read"))
    ['amount', 'bracket', 'negative', 'parse']
    """
    found = set()
    for match in _WORD.finditer(_CAMEL.sub(" ", text.replace("_", " "))):
        word = match[0].lower()
        if len(word) > 2 and word not in _STOPS:
            found.add(_stem(word))
    return found - _STOPS


def _stem(word: str) -> str:
    for ending, shortest in (("ies", 6), ("sses", 7), ("ing", 7), ("ed", 6), ("es", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= shortest and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word
