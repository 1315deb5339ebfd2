"""Instructions in Markdown: what they are in the report, and what they cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pytest_evocode.report.html.task import Written, written

TEXT = """# Title

One *two* **three** `four` [five](https://example.org/a?b=1&c) line\\
break

1. first
2. second
   - inner

> quoted

```python
print("<b>")
```

| a | b |
|---|---|
| 1 | ~~2~~ |

---
"""


def elements(parts: Sequence[Written]) -> Iterator[tuple[str, str]]:
    """The tags of elements with their addresses, in order."""
    for part in parts:
        if isinstance(part, dict):
            yield part["tag"], part["href"]
            yield from elements(part["children"])


def text(parts: Sequence[Written]) -> str:
    return "".join(part if isinstance(part, str) else text(part["children"]) for part in parts)


def test_what_people_write_becomes_elements() -> None:
    tags = [tag for tag, _ in elements(written(TEXT))]
    assert tags == [
        *("h4", "p", "em", "strong", "code", "a", "br"),
        *("ol", "li", "li", "ul", "li", "blockquote", "p", "pre"),
        *("table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td", "s", "hr"),
    ]
    assert ("a", "https://example.org/a?b=1&c") in elements(written(TEXT))
    assert 'print("<b>")\n' in text(written(TEXT))


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<iframe src='https://example.org'></iframe>\n",
        "<!-- hidden -->",
    ],
)
def test_html_is_text(source: str) -> None:
    assert {tag for tag, _ in elements(written(source))} <= {"p"}
    assert source.strip() in text(written(source))


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("![a cat](https://example.org/cat.png)", "[image: a cat]"),
        ("![](https://example.org/cat.png)", "[image: https://example.org/cat.png]"),
        ("[here](javascript:alert(1))", "[here](javascript:alert(1))"),
        ("[here](data:text/html,x)", "[here](data:text/html,x)"),
        ("[here](../secret.md)", "here (../secret.md)"),
        ("[here](//example.org)", "here (//example.org)"),
        ("<mailto:a@example.org>", "mailto:a@example.org"),
    ],
)
def test_no_image_and_no_link_but_to_the_web(source: str, shown: str) -> None:
    assert text(written(source)) == shown
    assert all(tag == "p" and not href for tag, href in elements(written(source)))


def test_what_is_nested_deep_or_long_takes_no_time() -> None:
    assert len(list(elements(written("> " * 5000 + "x")))) < 50
    assert text(written("[" * 20000)) == "[" * 20000
    assert text(written("*a " * 20000)) == ("*a " * 20000).strip()
