"""What is taken out of text and files, and what is left as it is."""

from __future__ import annotations

import base64
import html
import itertools
import json
import time
from urllib.parse import quote, quote_plus

import pytest
from _pytest._io.saferepr import saferepr
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.secrets import SHORTEST, Scrubber

KEY = "sk-proj-aB3_+/=&<'\"\\x\tü 0123456789"
PLAIN = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"

# Without brackets, of which the replacement is made.
_values = st.text(st.characters(codec="utf-8", exclude_characters="[]*"), min_size=8, max_size=40).filter(
    lambda value: len(value.strip()) >= 8 and not value.strip().startswith("/")
)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="[]*"), max_size=30)


def test_text_without_secrets_is_the_same_object() -> None:
    text = "nothing to see " * 10
    assert Scrubber({"API_KEY": PLAIN}).text(text) is text
    assert Scrubber({}).text(text) is text


@given(_values, st.lists(_texts, min_size=1, max_size=4))
def test_no_value_is_left_in_any_text(value: str, around: list[str]) -> None:
    value = value.strip()
    assert value not in Scrubber({"API_KEY": value}).text(value.join(around))


@given(st.lists(st.text("ab", min_size=8, max_size=20), min_size=1, max_size=3), st.text("ab", max_size=80))
def test_values_that_overlap_all_go(values: list[str], text: str) -> None:
    scrubbed = Scrubber({f"KEY_{index}": value for index, value in enumerate(values)}).text(text + "".join(values))
    assert not any(value in scrubbed for value in values)


@given(_values, _texts, _texts)
def test_text_around_a_value_stays(value: str, before: str, after: str) -> None:
    value = value.strip()
    # A character between, so that the rest cannot be taken for more of the value.
    text = f"{before}]{value}[{after}"
    if value[:8] not in before + after and value[-8:] not in before + after:
        scrubbed = Scrubber({"API_KEY": value}).text(text)
        assert scrubbed.startswith(f"{before}][")
        assert scrubbed.endswith(f"][{after}")


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        json.dumps(KEY),
        json.dumps(KEY, ensure_ascii=False),
        repr(KEY),
        f"https://example.org/?key={quote(KEY)}&x=1",
        f"https://example.org/?key={quote(KEY, safe='')}",
        f"key={quote_plus(KEY)}",
        html.escape(KEY),
        html.escape(KEY, quote=False),
    ],
)
def test_usual_forms_of_a_value_are_found(written: str) -> None:
    scrubbed = Scrubber({"API_KEY": KEY}).text(f"say {written}!")
    assert "[API_KEY]" in scrubbed
    assert "0123456789" not in scrubbed
    assert "sk-proj" not in scrubbed


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "ab", "Bearer ", "user:"])
@pytest.mark.parametrize("after", ["", "\n", "--"])
def test_a_value_in_base64_is_found_at_any_place(encode, before: str, after: str) -> None:  # type: ignore[no-untyped-def]
    written = encode(f"{before}{KEY}{after}".encode()).decode()
    scrubbed = Scrubber({"API_KEY": KEY}).text(written)
    assert "[API_KEY]" in scrubbed
    assert len(scrubbed) < 30


def test_the_longest_of_overlapping_values_gives_the_name() -> None:
    scrubber = Scrubber({"A_KEY": "12345678", "B_KEY": "0123456789", "C_KEY": "23456789"})
    assert scrubber.text("<0123456789> <12345678>") == "<[B_KEY]> <[A_KEY]>"


@pytest.mark.parametrize("cut", [PLAIN[:16], PLAIN[:30], PLAIN[-16:], PLAIN[-30:]])
def test_a_value_that_was_cut_off_is_found_by_what_is_left(cut: str) -> None:
    assert Scrubber({"API_KEY": PLAIN}).text(f"'{cut}...'") == "'[API_KEY]...'"


def test_the_beginning_that_many_keys_share_is_no_secret() -> None:
    assert Scrubber({"API_KEY": PLAIN}).text("keys look like sk-proj-...") == "keys look like sk-proj-..."


@pytest.mark.parametrize("size", [24, 30, 36, 42])
@pytest.mark.parametrize("around", ["{}", "Bearer {}", "{}; charset=utf-8", "-H 'Authorization: Bearer {}' -v"])
def test_a_value_that_pytest_shortens_in_its_middle_is_found_by_what_is_left(size: int, around: str) -> None:
    shown = saferepr(around.format(PLAIN), maxsize=size)
    assert "..." in shown
    for scrubbed in (
        Scrubber({"API_KEY": PLAIN}).text(f"key = {shown} != ''"),
        b"".join(Scrubber({"API_KEY": PLAIN}).chunks([f"key = {shown} != ''".encode()])).decode(),
    ):
        left = {scrubbed[at : at + SHORTEST] for at in range(len(scrubbed))}
        # Less than 12 characters of its beginning may stay where none of its end is shown: many keys share them.
        assert not left.intersection(PLAIN[at : at + SHORTEST] for at in range(4, len(PLAIN) - SHORTEST + 1))


def test_of_a_value_shortened_in_its_middle_nothing_is_left() -> None:
    scrubber = Scrubber({"API_KEY": "sk-verysecretvalue1234567890x"})
    assert scrubber.text("'sk-verysecre...ue1234567890x'") == "'[API_KEY]'"
    assert scrubber.text("'sk-verysecre...ue12345678...") == "'[API_KEY]..."
    assert scrubber.text("{'a': 'sk-verys...7890x', 'b': 1}") == "{'a': '[API_KEY]', 'b': 1}"


def test_dots_beside_other_text_stay() -> None:
    text = "sk-... 4567...890x wait...done .......F...."
    assert Scrubber({"API_KEY": "sk-verysecretvalue1234567890x"}).text(text) is text


def test_every_line_of_a_private_key_is_secret() -> None:
    lines = ["-----BEGIN KEY-----", "MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB", "-----END KEY-----"]
    scrubber = Scrubber({"SIGNING_KEY": "\n".join(lines)})
    shown = scrubber.text("\n".join(f"    {line}" for line in lines))
    assert shown.split() == ["-----BEGIN", "KEY-----", "[SIGNING_KEY]", "[SIGNING_KEY]", "-----END", "KEY-----"]
    assert scrubber.text("key: " + "\n".join(lines)) == "key: -----BEGIN KEY-----\n[SIGNING_KEY]\n-----END KEY-----"


def test_what_stands_for_a_secret_does_not_give_another_away() -> None:
    assert Scrubber({"WATCHWORD_KEY": "WATCHWORD"}).text("the WATCHWORD") == "the [*]"


def test_what_comes_into_the_environment_later_is_known_and_what_leaves_it_stays_known() -> None:
    environ: dict[str, str] = {}
    scrubber = Scrubber(environ)
    assert scrubber.text(PLAIN) == PLAIN
    environ["LATE_KEY"] = PLAIN
    assert scrubber.text(PLAIN) == "[LATE_KEY]"
    del environ["LATE_KEY"]
    assert scrubber.text(PLAIN) == "[LATE_KEY]"


def test_a_declared_variable_is_secret_whatever_it_is_called() -> None:
    environ = {"LICENCE": PLAIN}
    scrubber = Scrubber(environ)
    scrubber.learn(environ, ["LICENCE"])
    assert scrubber.text(PLAIN) == "[LICENCE]"


def test_several_environments_may_have_secrets() -> None:
    scrubber = Scrubber({"A_KEY": "0123456789"})
    scrubber.learn({"B_KEY": PLAIN}, [])
    assert scrubber.text(f"0123456789 {PLAIN}") == "[A_KEY] [B_KEY]"


def test_much_text_costs_little() -> None:
    environ = {f"KEY_{index}": f"{index:02}-{PLAIN}" for index in range(10)}
    scrubber = Scrubber(environ)
    text = "an ordinary line of a suite's output, 42 of 99\n" * 100_000
    scrubber.text("")
    started = time.process_time()
    assert scrubber.text(text) is text
    assert time.process_time() - started < 10


@pytest.mark.parametrize("line", ["." * 60 + "\n", "loading sk-pr... ok ...wxyz\n", "sk-p...\n"])
def test_much_text_with_dots_costs_little(line: str) -> None:
    scrubber = Scrubber({f"KEY_{index}": f"{index:02}-{PLAIN}" for index in range(10)})
    text = line * 20_000
    started = time.process_time()
    assert scrubber.text(text) is text
    assert time.process_time() - started < 10


# Streams.


@given(st.binary(max_size=60), st.lists(st.integers(1, 60), max_size=8), st.integers(0, 3))
def test_a_stream_is_scrubbed_whatever_its_chunks(noise: bytes, cuts: list[int], times: int) -> None:
    scrubber = Scrubber({"API_KEY": PLAIN})
    whole = noise.join([PLAIN.encode()] * (times + 1)) + noise
    borders = [0, *sorted({cut * len(whole) // 60 for cut in cuts}), len(whole)]
    chunks = [whole[start:end] for start, end in itertools.pairwise(borders)]
    expected = noise.join([b"[API_KEY]"] * (times + 1)) + noise
    if not (PLAIN.encode().startswith(noise[:1]) or PLAIN.encode().endswith(noise[-1:])):
        assert b"".join(scrubber.chunks(chunks)) == expected
    assert PLAIN.encode() not in b"".join(scrubber.chunks(chunks))
