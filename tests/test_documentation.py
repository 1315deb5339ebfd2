"""The pages of the documentation are short, begin with what they answer, and name only what there is."""

from __future__ import annotations

import re
import runpy
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from pytest_evocode.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Where one looks for a change, and never reads on: it does not count as words to read, and names what there was.
HISTORY = ROOT / "docs" / "history.md"
READ = [page for page in PAGES if page != HISTORY]
IMAGES = ROOT / "docs" / "images"
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
MOST_WORDS, MOST_OF_README, MOST_OF_CONTRIBUTING = 35_000, 900, 1_200


def words(path: Path) -> int:
    return len(GENERATE["by_hand"](path.read_text(encoding="utf-8")).split())


def test_the_documentation_stays_short() -> None:
    assert words(ROOT / "README.md") < MOST_OF_README
    assert words(ROOT / "CONTRIBUTING.md") < MOST_OF_CONTRIBUTING
    assert sum(map(words, (ROOT / "README.md", *READ))) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_begins_with_a_title_and_a_sentence(page: Path) -> None:
    title, blank, first = page.read_text(encoding="utf-8").splitlines()[:3]
    assert title.startswith("# ")
    assert (blank, first[:1].isalpha()) == ("", True)


@pytest.mark.parametrize("page", [ROOT / "README.md", *READ], ids=lambda page: page.stem)
def test_a_page_names_options_and_commands_that_there_are(page: Path, pytestconfig: pytest.Config) -> None:
    options = {f"--{name.replace('_', '-')}" for name in vars(pytestconfig.option)}
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?<![\w-])--evocode-[a-z-]*[a-z]", text)) - options == set()
    assert set(re.findall(r"^ {4}evocode ([a-z-]+)", text, re.MULTILINE)) - set(COMMANDS) == set()


def test_the_index_has_a_link_to_every_page_that_works_without_a_build() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(([a-z-]+)\.md\)", text)) == [page.stem for page in PAGES if page.stem != "index"]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_what_a_page_has_from_the_code_is_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert GENERATE["completed"](text) == text, "run: python docs/generate.py"


def test_each_part_that_is_made_from_the_code_is_in_one_page() -> None:
    found = [name for page in READ for _, name in GENERATE["PART"].findall(page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(GENERATE["PARTS"])


def shown_commands() -> list[tuple[str, list[str]]]:
    """Return the calls of pytest and evocode that the pages show, each with its page."""
    found = []
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *READ):
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in re.findall(r"^(?: {4}|\$ |- run: )((?:pytest|evocode) .*)$", text, re.MULTILINE):
            # What is shown beside a command is two spaces away, or a comment.
            command = re.split(r"\s{2,}|\s#|\s\|\||\s&&|\s>", line.replace("  --", " --"))[0]
            found.append((page.stem, shlex.split(command)))
    return found


def test_pages_show_many_commands() -> None:
    assert len(shown_commands()) > 60


@pytest.mark.parametrize(
    ("page", "command"), [pytest.param(*each, id=f"{each[0]}-{' '.join(each[1])[:60]}") for each in shown_commands()]
)
def test_a_shown_command_can_be_called(page: str, command: list[str], option_parser: pytest.Parser) -> None:
    program, *arguments = command
    if program == "evocode":
        # Help comes after all options have been parsed, and before any is looked at.
        result = CliRunner().invoke(main, [*arguments, "--help"])
        assert result.exit_code == 0, f"{page}: {result.output}"
    else:
        assert option_parser.parse_known_and_unknown_args(arguments)[1] == [], page


def test_the_drawings_are_what_their_program_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "drawings.py"))["drawn"]()
    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in IMAGES.glob("concept-*.svg")}


def test_what_is_cited_is_the_version_that_there_is() -> None:
    """Beside pyproject.toml it stands nowhere else, but in the output that README shows."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == version
    assert f" evocode-{version}, " in (ROOT / "README.md").read_text(encoding="utf-8")
