"""What a final message claims as done, takes for granted, and asks."""

from __future__ import annotations

import pytest

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
