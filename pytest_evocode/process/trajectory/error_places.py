"""Find the places in files that an output names: where errors were raised, and what a compiler complains about.

Python prints the innermost frame of a traceback last; most other languages print it first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_evocode.process.trajectory.file_roles import FileRoles

_ROLES = FileRoles()
_FOREIGN = re.compile(
    r"(^|/)(site-packages|dist-packages|node_modules|lib/python[\d.]+|\.cargo|go/pkg|gems|vendor|deps|\.pub-cache|"
    r"rustc|"
    r"\.m2|\.gradle|_testmain\.go)(/|$)|^/(usr|opt|nix|lib)/|^<|^node:|^internal/(modules|process|main|timers|deps)/|"
    r"library/(core|std|alloc)/"
)
#: Packages of Java's and Kotlin's libraries and test runners, of which a frame names no path.
_FOREIGN_PACKAGE = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|org\.(?:junit|mockito|opentest4j|assertj|hamcrest|"
    r"gradle|"
    r"apache|springframework|hibernate|scalatest|testng|slf4j|codehaus|h2|postgresql)|io\.(?:kotest|mockk|netty)|"
    r"com\.(?:fasterxml|google|zaxxer)|reactor|jakarta|app//org\.junit|worker\.org)\."
)
#: Classes that serve tests, in languages whose frames name no directory.
_SUPPORTS_TESTS = re.compile(
    r"(?:^|/)(?:Test[A-Z]\w*|\w*(?:Fixtures?|TestData|TestUtils?|TestHelpers?|TestBase))\.(?:java|kt|scala|groovy|cs)$"
)
_PYTHON = re.compile(
    r'^(?:E[^\S\n]+)?[^\S\n]*File "(?P<python>[^"]+)", line \d+|'
    r"^(?P<pytest>[\w./@+-]+\.py):\d+:(?: (?:in \S+|[A-Z]\w*|))?[^\S\n]*$|"
    r"^_+ ERROR collecting (?P<collected>\S+) _+$",
    re.MULTILINE,
)
#: Frames of languages that print the innermost one first.
_FRAMES = re.compile(
    # JavaScript: `at f (a.js:1:2)` and vitest's arrow.
    r"^[^\S\n]*(?:at (?:.* \()?|\u276f (?:.* )?)(?:file://)?(?P<script>[^\s():]+\.[cm]?[jt]sx?|[^\s():]+\.(?:vue|"
    r"svelte)):\d+:\d+\)?|"
    # Java, Kotlin, Scala.
    r"^[^\S\n]*at (?P<java_class>[\w.$/<>]+)\((?P<java>\w+\.(?:java|kt|scala|groovy)):\d+\)|"
    # C#.
    r"^[^\S\n]*at .* in (?P<csharp>\S+\.(?:cs|fs|vb)):line \d+|"
    # Go: the line below the function's.
    r"^\t(?P<go>\S+\.go):\d+(?: \+0x\w+)?$|"
    # Rust.
    r"panicked at (?:'.*', )?(?P<rust>[^\s:']+\.rs):\d+:\d+|"
    # Ruby, with the marks of rspec and minitest.
    r"^[^\S\n]*(?:# |from )?(?P<ruby>[^\s:#]+\.(?:rb|rake)):\d+:in |"
    # PHP.
    r"^(?:#\d+ )?(?P<php>/\S+\.php)(?::\d+$|\(\d+\))|\bin (?P<php_line>/?\S+\.php)(?: on line |:)\d+|"
    # Elixir.
    r"^[^\S\n]*(?!\((?:elixir|stdlib|kernel|ex_unit|mix|logger|ecto\w*|phoenix\w*|plug\w*|db_connection|postgrex|myxql|"
    r"exqlite|jason|mox|telemetry\w*|oban|finch|req|tesla|absinthe\w*|swoosh|gettext|nimble_\w+|decimal|ex_machina|"
    r"floki|timex|bypass|mint) [\d.]+\) )(?:\([\w ]+[\d.]+\) )?(?P<elixir>[\w./-]+\.exs?):\d+: |"
    # Sanitizers, valgrind and debuggers.
    r"^[^\S\n]*#\d+ .* (?:in|at) (?:.* )?(?P<native>[^\s:]+\.\w+):\d+|"
    r"^==\d+==[^\S\n]+(?:at|by) 0x\w+: .* \((?P<valgrind>[^\s:]+\.\w+):\d+\)|"
    # Perl, Dart.
    r" at (?P<perl>[\w./-]+\.(?:pl|pm|t)) line \d+|^[^\S\n]*(?P<dart>(?:package:)?[\w./-]+\.dart) \d+:\d+",
    re.MULTILINE,
)
#: What compilers, type checkers and interpreters complain about. Warnings and notes are none.
_COMPLAINTS = re.compile(
    r"^[^\S\n]*--> (?P<rust>[^\s:]+):\d+:\d+|"
    r"^[^\S\n]*(?:\u2502 +)?on (?P<block>\S+\.\w+) line \d+|"
    r"^(?:\[(?:ERROR|error)\] |ERROR: |e: |ERROR in |psql:|error: |vet: |\s*\u2514\u2500 )?(?:file://)?(?:\./)?"
    r"(?P<compiled>[\w./@+-]+\.\w{1,6})"
    r"(?::\d+(?::\d+)?:?|:\[\d+,\d+\]|\(\d+,\d+\):|\(\d+\):)(?! ?(?:warning|note|remark|info)\b) ?(?=[^\s:+|])|"
    # TypeScript, as test runners pass it on.
    r"^[^\S\n]+(?P<typescript>[\w./@+-]+\.[cm]?tsx?):\d+:\d+ - error TS\d+|"
    r"^(?:PHP )?(?:Parse|Fatal|Compile) error: .* in (?P<php>\S+\.php) on line \d+|"
    r"^\*\* \((?:Compile|Syntax|Token\w+)Error\) (?P<elixir>\S+\.exs?):\d+|"
    r"^(?P<shell>\S+\.(?:sh|bash|bats)): (?:line )?\d+: ",
    re.MULTILINE,
)
#: Words of a compiler, or of an interpreter that cannot read a file.
_COMPILER = re.compile(
    r"^error(?:\[E\d+\])?: |\[(?:build|setup) failed\]|\berror (?:TS|CS|FS)\d+: |: (?:fatal )?error: |: undefined: |"
    r"COMPILATION ERROR|"
    r"Compilation (?:failed|error)|could not compile|^\*\* \((?:Compile|Syntax|Token\w+)Error\)|: syntax error|"
    r"Parse error: |"
    r"^e: |Compile\w+ FAILED|error: cannot find symbol|imported and not used|declared and not used|"
    r"^# \S+ \[\S+\.test\]$|\.dart:\d+:\d+: Error: ",
    re.MULTILINE,
)
#: What a test asks for and the product does not have: the complaint is about a test, and the product is to blame.
_PRODUCT_LACKS = re.compile(
    r"has no member|no (?:method|field|variant|associated item|function or associated item)(?: or \w+)? (?:named|"
    r"called)|"
    r"has no field or method|does not exist on type|has no exported member|"
    r"unresolved import `(\w+)(?:::\S+)?`[\s\S]*could not compile `\1`|"
    r"unresolved import `(?:crate|super|self)\b|no `\w+` in `|"
    r"isn't defined for the (?:class|type)|is not a member of|: undefined: \w+\.\w+|"
    r"(?<!'Assert' )does not contain a definition|"
    r"(?:too many|not enough) arguments in call|"
    r"has no (?:property|attribute|constructor)|Unresolved reference .* on|"
    r"symbol:\s+(?:method|variable|class) \w+(?:\(.*\))?\s+location:\s+(?:class|variable|package) (?![\w.]*(?:Tests?|"
    r"IT|Spec)\b)|"
    r"cannot be applied to given types|undefined method .* for class|undefined function \w+\.",
)
#: What a test asks for, which is there, and which it has not imported.
_NOT_IMPORTED = re.compile(r"^help: trait `\w+` which provides `\w+` is implemented but not in scope", re.MULTILINE)
#: An assertion that failed, printed as compilers print errors.
_ASSERTED_BY_XCTEST = re.compile(
    r"XCTAssert\w* failed|XCTUnwrap failed|Expectation failed|: error: -?\[?\w+[. ]\w+\]? : "
)


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """A place in a file that an output names."""

    path: str
    at: int
    """The offset in the output."""

    @property
    def in_tests(self) -> bool:
        """Whether the file belongs to tests, by its name."""
        return is_test_file(self.path)


def is_test_file(path: str) -> bool:
    """Return whether a path is that of a test, wherever the workspace is."""
    return _SUPPORTS_TESTS.search(path) is not None or _ROLES.of(path.lstrip("/").removeprefix("../")) == "tests"


def python_places(output: str) -> list[OutputPlace]:
    """Return the places of the project in tracebacks of Python, the innermost of each traceback last."""
    return list(_places(_PYTHON, output))


def frames(output: str, begin: int = 0) -> list[OutputPlace]:
    """Return the project's frames in the order of the output, the innermost of each error first."""
    return list(_places(_FRAMES, output, begin))


def complaints(output: str) -> list[OutputPlace]:
    """Return the places of the project that compilers complain about."""
    return list(_places(_COMPLAINTS, output))


def _places(pattern: re.Pattern[str], output: str, begin: int = 0) -> Iterator[OutputPlace]:
    for match in pattern.finditer(output, begin):
        groups = match.groupdict()
        java_class = groups.pop("java_class", None)
        path = next(filter(None, groups.values()))
        if not _FOREIGN.search(path) and not (java_class and _FOREIGN_PACKAGE.search(java_class)):
            yield OutputPlace(path, match.start())


def last_place(output: str) -> str:
    """Return the innermost file of the project, as far as the output tells; empty where it names none."""
    places = python_places(output) or frames(output)[:1] or complaints(output)
    return places[-1].path if places else ""


def is_a_compilers(output: str) -> bool:
    """Return whether a compiler, or an interpreter that cannot read a file, complains about a place in the project."""
    return _COMPILER.search(output) is not None and bool(complaints(output))


def complains_about_tests_only(output: str) -> bool:
    """Return whether a compiler stopped in test files, about something that is not the product's to have."""
    places = complaints(output)
    if _ASSERTED_BY_XCTEST.search(output):
        return False
    if not is_a_compilers(output) or not all(place.in_tests for place in places):
        return False
    return _NOT_IMPORTED.search(output) is not None or not _PRODUCT_LACKS.search(output)
