"""Which items and sentences announce a step of the work."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.planning import plan_steps, says_again


def test_a_long_plan_that_has_the_words_of_a_long_request_in_another_order_says_it_again() -> None:
    step, request = ("of a file in the list " * 1500, "to the list of a file " * 1500)
    assert says_again(step, [request])


@pytest.mark.parametrize("text", ["." * 60_000, "1. " * 20_000, "a/" * 30_000, "I'll add `x`, " * 6000])
def test_a_text_of_one_sign_is_read_in_time(text: str) -> None:
    """Patterns would be searched for in it for minutes if its lines were not shortened."""
    assert len(plan_steps(text)) <= 150


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # One sentence says several things, or several tell an order.
        ("Let me add the `open` event and update the template.", 2),
        ("I will modify `load()`, and I will add a test to tests/test_load.py.", 2),
        ("Two fixes needed: drop the stale key in store.ts, and guard `loadUser` against null.", 2),
        ("I'm moving the logic out of `auth.ts`. I'll then update the imports in `api.ts`.", 2),
        ("I want to do three things: 1) rename `limit` in config.py 2) delete legacy.py 3) rerun the benchmark", 3),
        ("I'll apply the fix to `read_csv` and `read_json`, and add a test for each.", 2),
        ("We need to change two files. In `a.c` the rule has to take one, and in `b.c` the token has to be kept.", 2),
        ("We'll need a route in `api.rb`, a serializer for `Refund`, and a spec.", 3),
        # Thinking aloud, and one step with two objects.
        ("Let's change `parse()`. I'll add the check.", 0),
        ("Now I'll add the `/stats` route and the `totals()` function.", 0),
        ("`load()` is called first. Then it reads `a.py`.", 0),
        ("I tried `numpy`, then `pandas`.", 0),
        # Of the lists of a text those count that are announced.
        ("## Plan\n**Files:**\n- `a.py` has the parser\n\n**Steps:**\n1. Split `a.py`\n2. Add `b()`\n", 2),
        ("Here's what I learned:\n1. `Foo.bar` caches results\n2. `Foo.baz` clears it\n", 0),
        ("The changes so far:\n- `models.py`: new field\n- `views.py`: filter by it\n", 0),
    ],
)
def test_a_step_is_known_by_layout_and_by_what_announces_it(text: str, number: int) -> None:
    assert len(plan_steps(text)) == number
