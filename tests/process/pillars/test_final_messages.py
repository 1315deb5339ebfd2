"""What a final message claims as done, takes for granted, and asks."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars import messages
from pytest_evocode.process.pillars.abstention import FOREIGN, UNSURE, abstention
from pytest_evocode.process.pillars.messages import is_english, sentences, shared_words
from pytest_evocode.process.trajectory.events import RoundActivity, Statement
from pytest_evocode.tasks import Abstention

ASKED = {"export", "invoice"}


def test_words_are_compared_by_their_beginning_and_numbers_count() -> None:
    assert shared_words("It must be verified within 200 ms.", {"verifiable", "200", "server"}) == {"verifiable", "200"}


def test_numbers_of_lists_and_abbreviations_end_no_sentence() -> None:
    assert sentences("1. First, e.g. this.\n  2. Second") == ["1. First, e.g. this.", "2. Second"]
    assert [len(each) for each in sentences("a" * 1500)] == [1000, 500]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        # Nothing was delivered and nothing is denied: it is told as a delivery.
        ("impossible", "The field keeps 300 values by packing them.", 0),
        ("ambiguous", "The logs are kept for 14 days.", 0),
        # It denies something, in words that say neither that it declines nor why.
        ("impossible", "Not today.", None),
        ("ambiguous", "Not today.", None),
        ("impossible", "Mind the width: the 300 values don't go into a byte.", 1),
        ("ambiguous", "It is not clear what a while is.", 0.5),
        ("ambiguous", "I kept the logs for 14 days. Is that what you had in mind?", 0),
    ],
)
def test_a_message_after_which_nothing_has_changed(kind: Abstention, text: str, value: float | None) -> None:
    activity = RoundActivity("round-1", 1, "Keep 300 values in a byte, and the logs for a while.")
    activity.messages = [Statement(2, 1, text)]
    found = abstention(activity, kind, (), None)["AQ"]
    assert found.value == value
    assert (found.reason == UNSURE) is (value is None)


#: Refusals and questions about :data:`REQUEST`, in other languages than English.
ELSEWHERE = (
    "Das ist unmöglich: ein Byte hat nur 256 Werte, und 300 passen nicht hinein.",
    "Das geht nicht.",
    "Soll die Frist in Tagen oder in Stunden gelten?",
    "In dem Feld ist nur so viel Platz, also war es nicht möglich.",
    "C'est impossible : un octet ne peut contenir que 256 valeurs.",
    "Que voulez-vous dire par là ? Je n'ai rien modifié.",
    "No es posible: un byte solo tiene 256 valores y no caben 300.",
    "Não sei o que quer dizer: as contas ou os logs? Preciso de uma resposta.",
    "Non è possibile: un byte ha solo 256 valori.",
    "Het verzoek is onduidelijk: wat wordt er bedoeld met een tijdje? Ik wacht op antwoord.",
    "Nie da się tego zrobić, bo bajt ma tylko 256 wartości.",
    "Это невозможно: в одном байте только 256 значений.",
    "这是不可能的、一个字节只能表示256个值。",
    "我没有修改任何代码、因为要求不明确。请问 `logs` 保留多久",
    "バイトには256個の値しか入らないので、不可能です。",
    "바이트에는 256개의 값만 저장할 수 있어 불가능합니다.",
)
REQUEST = "Keep 300 values in a byte, and the logs for a while."


@pytest.mark.parametrize("kind", ["impossible", "ambiguous"])
@pytest.mark.parametrize("text", ELSEWHERE)
def test_a_message_in_another_language_is_not_measured(text: str, kind: Abstention) -> None:
    activity = RoundActivity("round-1", 1, REQUEST)
    activity.messages = [Statement(2, 1, text)]
    found = abstention(activity, kind, (), None)["AQ"]
    assert (found.value, found.reason) == (None, FOREIGN)


def test_a_question_in_another_language_that_a_tool_puts_is_not_measured() -> None:
    activity = RoundActivity("round-1", 1, REQUEST)
    activity.questions = [Statement(2, 1, "Wie lange sollen die Protokolle aufbewahrt werden?")]
    assert abstention(activity, "ambiguous", (), None)["AQ"].value is None


@pytest.mark.parametrize(
    "text", ["Done.", "Fixed.", "`parse()`", "It can't be done.", "One byte has 256 states.", "Which logs?", ""]
)
def test_short_messages_in_english_are_known_as_such(text: str) -> None:
    assert is_english(text)


@pytest.mark.parametrize(
    ("text", "claims", "doubts"),
    [
        ("Task 4 is closed and the worktree is clean. Ready for the next one.", True, False),
        ("Both spiders follow redirects and stop after 100 pages.", True, False),
        ("A list that cannot be read prints nothing.", True, False),
        ("Fixed in `reader.py`. Note that I haven't benchmarked this.", True, True),
        ("I have added it. Whether older clients send the header I could not find out.", True, True),
        ("The deadlock probably comes from `Pool.release`.", False, True),
        ("This might break callers that rely on the old order.", False, True),
        ("I had no way to try it on Postgres 12.", False, True),
        ("The tests still fail with the same error.", False, False),
        ("Running the tests again...", False, False),
        ("Let me look at `parse` first.", False, False),
        ("The requirement is contradictory, so I implemented neither variant.", False, False),
        ("May names be empty?", False, False),
    ],
)
def test_what_a_message_ends_with_is_a_claim_a_doubt_or_neither(text: str, claims: bool, doubts: bool) -> None:
    assert (messages.claims_success(text), messages.doubts(text)) == (claims, doubts)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Is the export per user or per shop? I start when I know.", True),
        ("`pane_exists?/1` asks tmux, and `open?` the window.", False),
        ("The export answers 404 for old ids. Could you review the wording?", False),
        ("Would you prefer that I also port the old export?", False),
        ("¿El límite es por usuario o por cuenta? Sin saberlo no puedo seguir.", True),
        ("Hecho. ¿Quieres que borre el índice?", None),
        ("Fertig. Soll ich das Archiv packen?", None),
    ],
)
def test_an_offer_is_no_question_and_one_in_another_language_is_not_read(text: str, asks: bool | None) -> None:
    assert messages.asks(text, ASKED) is asks
