"""Natural plans in many layouts and languages, and texts that are none, with what the agent did afterwards."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.process.pillars.planning import find_plan
from tests.process.trajectories import INSTRUCTION, LEDGER, REPORT, TESTS, Recording, activity_of

TEXTS = tomllib.loads(Path(__file__).with_name("plans.toml").read_text(encoding="utf-8"))["text"]
#: Least precision and recall.
TARGET = (0.9, 0.9)


@dataclass(frozen=True)
class Project:
    """A request, the files at its start, and the work: files that are written one by one, and a run of the tests."""

    request: str
    files: Mapping[str, str]
    work: Mapping[str, str]
    test: str


PROJECTS = {
    "ledger": Project(
        INSTRUCTION,
        {"ledger.py": LEDGER, "report.py": "def show(total):\n    print(total)\n", "other.py": "X = 1\n"},
        {
            "report.py": "def show(total, overdrafts):\n    print(total)\n    print(*overdrafts)\n",
            "ledger.py": REPORT,
            "tests/test_budget.py": TESTS,
        },
        "pytest",
    ),
    "cart": Project(
        "Customers can enter a coupon code in the cart: a percentage or a fixed amount. Expired codes are refused "
        "with a message at checkout.",
        {
            "src/cart.js": "export class Cart {\n  total() { return this.sum; }\n}\n",
            "src/checkout.js": "export function checkout(cart) { return cart.total(); }\n",
        },
        {
            "src/coupons.js": "export function isExpired(coupon) { return coupon.until < new Date(); }\n"
            "export function applyCoupon(cart, code) {\n  if (code.percentage) return cart.total * code.percentage;\n"
            "  return cart.total - code.fixed; // a fixed amount off\n}\n",
            "src/cart.js": "import { applyCoupon } from './coupons.js';\nexport class Cart {\n"
            "  total() { return applyCoupon(this, this.coupon); }\n}\n",
            "src/checkout.js": "export function checkout(cart) {\n  if (isExpired(cart.coupon)) throw new Error('This "
            "coupon has expired: the checkout refuses it');\n  return cart.total();\n}\n",
            "test/coupons.test.js": "test('a coupon that has expired is refused', () => expect(1).toBe(1));\n",
        },
        "npm test",
    ),
    "rates": Project(
        "The lookup of rates is slow. Cache each rate for an hour, and serve old ones when the upstream fails.",
        {
            "rates/client.go": "package rates\n\nfunc (c *Client) Rate(name string) float64 { return c.get(name) }\n",
            "main.go": "package main\n\nfunc main() {}\n",
        },
        {
            "rates/cache.go": "package rates\n\ntype Cache struct { ttl time.Duration }\n\n"
            "func (c *Cache) Get(name string) (float64, bool) { return c.rates[name], true }\n",
            "rates/client.go": "package rates\n\nfunc (c *Client) Rate(name string) (float64, error) {\n"
            "\tif rate, ok := c.cache.Get(name); ok { return rate, nil }\n\treturn c.upstream(name)\n}\n",
        },
        "go test ./...",
    ),
}


def planned(text: Mapping[str, Any]) -> bool:
    """Return whether a plan is found in a text, with the work of its project after it or before it."""
    project = PROJECTS[text["project"]]
    recording = Recording(project.request, project.files)
    if not text.get("after"):
        _tell(recording, text)
    recording.bash(f"cat {' '.join(project.files)}", "\n".join(project.files.values()))
    for path, content in project.work.items():
        recording.bash("edit", changes={path: content})
    recording.bash(project.test, "", 0)
    if text.get("after"):
        _tell(recording, text)
    return find_plan(activity_of(recording)) is not None


def _tell(recording: Recording, text: Mapping[str, Any]) -> None:
    if "says" in text:
        recording.say(text["says"].strip())
    elif "writes" in text:
        recording.write("notes/budget.md", text["writes"].lstrip())
    elif "plan_mode" in text:
        recording.call("ExitPlanMode", {"plan": text["plan_mode"].strip()})
    else:
        recording.call("TodoWrite", {"todos": [{"content": each, "status": "pending"} for each in text["todos"]]})


def test_plans_are_found_in_any_layout_and_language_and_nothing_else_is_one() -> None:
    found = [(text, planned(text)) for text in TEXTS]
    wrong = [(text["plan"], text["why"]) for text, said in found if said != text["plan"]]
    right = sum(text["plan"] and said for text, said in found)
    assert len(TEXTS) >= 80
    assert right / sum(said for _, said in found) >= TARGET[0], wrong
    assert right / sum(text["plan"] for text, _ in found) >= TARGET[1], wrong


@pytest.mark.parametrize("text", [text for text in TEXTS if text.get("after")], ids=lambda text: text["why"])
def test_a_plan_after_the_fact_is_none(text: Mapping[str, Any]) -> None:
    assert not planned(text)
