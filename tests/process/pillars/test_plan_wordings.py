"""Which items and sentences announce a step of the work."""

from __future__ import annotations

import pytest

from pytest_evocode.process.pillars.copied_words import says_again
from pytest_evocode.process.pillars.plan_steps import plan_steps


@pytest.mark.parametrize(
    "text",
    [
        "# What I will do\n\n1. `escape()` in src/writer.cpp: write escapes\n2. `pretty(int)` in src/writer.hpp\n",
        "## Plan\n- blog/views.py\n- `make test`\n",
        "- [ ] blog/models.py: objects = PostManager()\n- [ ] python manage.py test blog\n",
        "Files to change:\n- src/a.py\n- src/b.py\n",
        "My plan is to add `parse()` to a.py and then wire it into b.py.",
        "I intend to extend `load()` in a.py, then update b.py.",
        "The idea is to move `load()` into a.py and delete b.py.",
        "Plan: add `parse()` to a.py, then run pytest.",
        "I'm planning to split a.py, and then rename `load()`.",
    ],
)
def test_what_will_be_done_has_steps(text: str) -> None:
    assert len([step for step in plan_steps(text) if step.acts and not step.looks]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "The project has these files:\n- src/a.py\n- src/b.py\n",
        "## Plan\n- `parse()` fails for empty lines\n- a.py is never closed\n",
        "What I found:\n- `load()` in a.py\n- `dump()` in b.py\n",
        "The plan in docs/plan.md was written last year, and a.py follows it.",
        "I'll use these to look:\n- `grep -n load a.py`\n- `cat b.py`\n",
    ],
)
def test_what_is_there_has_none(text: str) -> None:
    assert not [step for step in plan_steps(text) if step.acts]


def test_a_long_plan_that_has_the_words_of_a_long_request_in_another_order_says_it_again() -> None:
    step, request = ("of a file in the list " * 1500, "to the list of a file " * 1500)
    assert says_again(step, [request])
