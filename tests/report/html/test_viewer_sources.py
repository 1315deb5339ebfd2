"""What the viewer's sources must not have, because what they show was written by agents, programs and tasks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.report.html import bundle

pytestmark = pytest.mark.every_python

LONGEST_FILE = 400
SCRIPTS = sorted(bundle.VIEWER.glob("*.js"))
STYLES = sorted(bundle.VIEWER.glob("*.css"))
#: What makes a program or a page of a text, or goes past the page's policy.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|parseFromString|DOMParser|srcdoc\s*="
    r"|document\.write|\beval\(|\bFunction\(|import\(|\.cssText|createElement\(\s*[\"']style|\.insertRule"
    r"|setAttribute\(\s*[\"'](?:style|on\w+|src|href)\b|setTimeout\(\s*[\"'`]|window\.open|\bfetch\(|XMLHttpRequest"
    r"|WebSocket|sendBeacon|https?://(?!www\.w3\.org/2000/svg)"
)
#: Files that may do one of these, which they check.
ALLOWED = {("elements.js", "srcdoc")}
CODE_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_makes_no_page_and_no_program_of_a_text(path: Path) -> None:
    found = {match.group() for match in FORBIDDEN.finditer(code_of(path))}
    assert not {text for text in found if (path.name, text) not in ALLOWED}


@pytest.mark.parametrize("path", [*SCRIPTS, *STYLES], ids=lambda path: path.name)
def test_a_file_is_short_enough_to_be_read(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST_FILE
    assert lines[0].startswith(("/*", "//")), "It begins with what it is."


def test_only_the_loader_adds_scripts_and_only_from_data() -> None:
    adding = [
        path.name for path in SCRIPTS if re.search(r"h\(\s*[\"']script|createElement\(\s*[\"']script", code_of(path))
    ]
    assert adding == ["loading.js"]


def test_only_the_base_sheet_names_colours_which_it_has_for_both_themes() -> None:
    """Those of a mark that the browser draws, which is the same in both themes, aside."""
    named = {
        path.name: [line for line in path.read_text(encoding="utf-8").splitlines() if COLOUR.search(line)]
        for path in STYLES
        if path.name != "base.css"
    }
    assert not {name: lines for name, lines in named.items() if [line for line in lines if "::highlight" not in line]}


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.name)
def test_a_sheet_loads_nothing(path: Path) -> None:
    assert not re.search(r"@import|url\(|expression\(", path.read_text(encoding="utf-8"))


def test_no_two_scripts_define_the_same_name() -> None:
    """They are joined in one function, where the second one would win or fail."""
    owners: dict[str, str] = {}
    for path in SCRIPTS:
        for name in re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", code_of(path), re.MULTILINE):
            assert name not in owners, f"{path.name} and {owners[name]} define {name}"
            owners[name] = path.name


def test_every_script_and_sheet_is_in_what_a_report_has() -> None:
    assert set(bundle.scripts()) == set(SCRIPTS)
    assert set(bundle.styles()) == set(STYLES)
    assert {*bundle.FIRST, bundle.LAST} <= {path.name for path in SCRIPTS}
    assert bundle.scripts()[-1].name == bundle.LAST
    joined = bundle.joined_scripts()
    for name in ("h", "shownText", "definePage", "table", "cellGrid", "virtualList", "start"):
        assert f"function {name}(" in joined


@pytest.mark.parametrize(
    ("built", "sources"),
    [(bundle.script, bundle.joined_scripts), (bundle.style, bundle.joined_styles)],
    ids=["script", "style"],
)
def test_what_a_report_gets_was_built_of_these_sources(built: Callable[[], str], sources: Callable[[], str]) -> None:
    """Whether the build gives it to the byte is for ``tox -e viewer``, which has Node.js."""
    assert built().startswith(bundle.heading(sources())), (
        "viewer/ changed since built/ was built of it: run `tox -e viewer -- build`, "
        "or `python .ci/build_viewer.py build` where esbuild is in the PATH"
    )


def test_the_page_allows_only_its_own_script_and_sheet() -> None:
    page = bundle.page()
    assert "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:" in page
    assert re.findall(r"<script\b[^>]*>(.*?)</script>", page, re.DOTALL) == [""]
    assert "<style" not in page
    assert not re.search(r"\son\w+=|\sstyle=", page)


def code_of(path: Path) -> str:
    """A script without its comments."""
    return CODE_COMMENT.sub("", path.read_text(encoding="utf-8"))
