"""A program under test that writes its own cases to a stderr that the suite lets it have: an error, and no score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integrity.places import Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# The suite keeps what the tool says on stdout to itself, and gives it its own stderr.
WRITES_CASES = """
cat > /app/tool.py <<'END'
import sys
for number in range({number}):
    print(f"CASE_RESULT case_id={name} status=success actual={text}", file=sys.stderr)
print("hello" if sys.argv[1:] == ["greet"] else "what?")
END
"""


def _writes(
    name: str, number: int, case: str, *, text: str = "x", pinned: bool = False, nightly: bool = False
) -> Attack:
    script = WRITES_CASES.replace("{number}", str(number)).replace("{name}", case).replace("{text}", text)
    return Attack(name, script, suite="careless pinned" if pinned else "careless", nightly=nightly)


FLOODS = [
    _writes("a-few-more-than-pinned", 3, "more-{number}", pinned=True),
    _writes("a-million", 1_000_000, "more-{number}", nightly=True),
    _writes("long-ones", 4_000, "more-{number}", text="x" * 3000),
]
REPEATS = [
    _writes("cases-of-the-suite", 1, "word-1"),
    _writes("cases-of-the-suite-again-and-again", 2_000, "greet", pinned=True),
]


@in_all_places(FLOODS)
def test_a_flood_of_cases_is_the_agents_failure_and_no_score(
    attack: Attack, place: Place, play: Play, honest: Honest
) -> None:
    nothing_done = honest(attack, place)
    played = play(attack, place)
    scores = played.run.scores[played.agent]
    assert [(round_.outcome, round_.fault) for round_ in played.record.rounds] == [("failed", None)] * 2
    assert all("have test.sh keep" in round_.cause for round_ in played.record.rounds), played.text
    assert (scores["dataset_score"], scores["case_score"]) == (0, 0)
    assert nothing_done.case_score is not None
    assert max(path.stat().st_size for path in played.attempt.rglob("*.json")) < 4 * 2**20


@in_all_places(REPEATS)
def test_a_case_that_a_program_repeats_gains_nothing(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played, nothing_done = play(attack, place).outcome, honest(attack, place)
    assert (played.dataset_score, played.case_score) == (nothing_done.dataset_score, nothing_done.case_score)
    for (outcome, rewards, cases), expected in zip(played.rounds, nothing_done.rounds, strict=True):
        assert (outcome, rewards, sorted(cases)) == (*expected[:2], sorted(expected[2]))
