"""Markdown of tasks as a tree, ``Written`` in ``data.d.ts``: the viewer makes the elements, and none is HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

Written: TypeAlias = "str | dict[str, Any]"

#: What a token becomes; all others are passed over for what is in them.
_TAGS = {
    "paragraph": "p",
    "strong": "strong",
    "em": "em",
    "s": "s",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "hr": "hr",
    "hardbreak": "br",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}
_ABOVE = 3
"""Levels of the page's own headings."""
_SCHEMES = ("http://", "https://")


def written(text: str) -> list[Written]:
    """Return the elements of a text in Markdown; HTML in it stays text, and no image is one.

    >>> written("a *b*")
    [{'tag': 'p', 'href': '', 'children': ['a ', {'tag': 'em', 'href': '', 'children': ['b']}]}]
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return _children(SyntaxTreeNode(parser.parse(text)).children)


def _children(nodes: Sequence[SyntaxTreeNode]) -> list[Written]:
    found: list[Written] = []
    for each in (each for node in nodes for each in _node(node)):
        # Texts side by side are one.
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        else:
            found.append(each)
    return found


def _node(node: SyntaxTreeNode) -> Iterator[Written]:
    if node.type in ("text", "softbreak"):
        yield node.content or "\n"
    elif node.type in ("code_inline", "code_block", "fence"):
        yield _element("code" if node.type == "code_inline" else "pre", [node.content])
    elif node.type == "image":
        yield f"[image: {node.content or node.attrGet('src')}]"
    elif node.type == "heading":
        yield _element(f"h{min(6, int(node.tag[1:]) + _ABOVE)}", _children(node.children))
    elif node.type == "link":
        address = str(node.attrGet("href") or "")
        yield from _link(address, _children(node.children))
    elif node.type == "paragraph" and node.hidden:  # Of a list whose items are close to one another.
        yield from _children(node.children)
    elif node.type in _TAGS:
        yield _element(_TAGS[node.type], _children(node.children))
    else:
        yield from _children(node.children)


def _link(address: str, children: list[Written]) -> Iterator[Written]:
    """Yield a link to a page of the web; any other is its text, with where it leads."""
    if address.lower().startswith(_SCHEMES):
        yield _element("a", children, address)
    else:
        yield from [*children, f" ({address})"] if address and children != [address] else children


def _element(tag: str, children: list[Written], href: str = "") -> Written:
    return {"tag": tag, "href": href, "children": children}
