"""Find failures that a test makes by itself: by its names, fixtures, mocks and files, and not by an assertion."""

from __future__ import annotations

import posixpath
import re

from pytest_evocode.process.trajectory.environment_faults import is_environments
from pytest_evocode.process.trajectory.error_places import OutputPlace, frames, is_test_file, python_places

#: What runners and libraries of tests say of a test that is written wrong.
_MISUSED = re.compile(
    # pytest and unittest.mock.
    r"^E\s+(?:\w+\.)*Pytest(?:UnknownMark|Collection|ReturnNotNone)Warning: |No module named '[\w.]+\.tests?\.\w+'|"
    r"^E\s+fixture '(?!mocker|benchmark|httpx_mock|requests_mock|respx_mock|freezer|aiohttp_client|event_loop|qtbot|"
    r"live_server|httpserver|page|browser|rf\b|admin_client|settings|fs\b|snapshot|subtests|class_mocker|"
    r"session_mocker|"
    r"django_db_setup|celery_app|faker|datadir|shared_datadir|responses|postgresql|mongodb).*' not found|"
    r"in \"parametrize\" the number of|error when mocking a module|"
    r"not found in `markers` configuration|ScopeMismatch|Fixture \"\w+\" called directly|"
    r"function uses no (?:argument|fixture)|"
    r"AttributeError: <.*> (?:does not have the|has no) attribute|"
    r"AttributeError: '\w+' object at [\w.]+ has no attribute|module '(?:pytest|unittest(?:\.mock)?|mock|"
    r"hypothesis)' has no attribute|is not a valid assertion\. Use a spec|import file mismatch|"
    r"TypeError: (?:\w*Test\w*\.|test_)\w+\(\) |StopIteration$(?=[\s\S]*mock\.py)|"
    r"\bMock object has no attribute|recursive dependency involving fixture|"
    r"AttributeError: '(?:Test\w*|\w*Tests?|\w*TestCase)' object has no attribute |No module named '?(?:tests?|"
    r"(?:test_)?helpers|test_utils|factories|fixtures|"
    r"conftest)\b|cannot import name '\w+' from '(?:tests?|conftest)\b|"
    # jest, vitest, sinon, chai.
    r"module factory of `(?:jest|vi)\.mock\(\)`|\.mock\(\)? .*(?:out-of-scope|hoisted)|"
    r"No \"\w+\" export is defined on the \"\S+\" mock|"
    r"Cannot spy (?:on )?the \w+ property|Attempted to wrap (?:undefined|\w+ which is already)|Invalid Chai property|"
    r"expect\(.*\)(?:\.\w+)+ is not a function|TypeError: (?:vi|jest|sinon|assert|expect|chai|t|cy|"
    r"page|screen|userEvent|fireEvent|within)\.\w+ is not a function|must contain at least one test|"
    r"Fixture .* (?:is not defined|unknown)|"
    r"both .* `?done`? .* promise|Matcher error: |"
    # JUnit and Mockito.
    r"org\.junit\.platform\.commons\.JUnitException|Unnecessary ?[Ss]tubbing|io\.mockk\.MockKException: |"
    r"PHPUnit\\Framework\\MockObject\\\w+Exception|"
    r"UninitializedPropertyAccessException: .*\s+at [\w.$]+\(\w*Tests?\.|"
    r"org\.mockito\.exceptions\.(?:misusing|base)|Mox\.UnexpectedCallError\) no expectation defined|"
    r"Moq\.MockException : .* invocation failed|"
    r"ParameterResolutionException|PreconditionViolationException|"
    r"ExtensionConfigurationException|InvalidUseOfMatchersException|"
    r"because \"this\.\w+\" is null(?=\s+at [\w.$]+\(\w*Tests?\.)|"
    r"because \"\w+\" is null(?:\s+at [\w.$]+\(\w*Tests?\.\w+:\d+\)){2}|"
    # RSpec, minitest and FactoryBot; ExUnit, PHPUnit, bats.
    r"undefined (?:local variable or )?method [`'\"]?\w+[!?]?[`'\"]? for (?:#<|an instance of )(?:RSpec::|\w*Test\b|"
    r"\w*Spec\b)|"
    r"undefined local variable or method .* for (?:#<|an instance of )(?:RSpec::|\w*Test\b)|Factory not registered|"
    r"Call to undefined method \S*Test::|Class \"\S*Tests\\\S+\" not found|Undefined variable \$\w+.*\n+\S*Tests?\.php|"
    r"cannot load such file -- \S*(?:spec|test)_helper|"
    # A function that a script of tests does not define.
    r"^(?:# *)?[^\S\n]*\S*(?:\.bats|test[\w-]*\.sh): line \d+: \w+_\w+: command not found$",
    re.MULTILINE,
)
#: Stand-ins of tests, by their names, that are called wrongly or lack something.
_STAND_IN = re.compile(
    r"TypeError: _?(?:Fake|Mock|Stub|Dummy|Spy)\w*[.(]|AttributeError: '_?(?:Fake|Mock|Stub|Dummy|"
    r"Spy)\w+' object has no|"
    r"AttributeError: type object '_?(?:Fake|Mock|Stub|Dummy|Spy)\w+' has no|"
    r"\(reading '(?:mock\w*|and(?:Return|Call)\w+)'\)|\.mock(?:\w*(?:Value|Implementation)\w*|Clear|Reset|"
    r"Restore) is not a |"
    r"for an instance of (?:\w+::)*(?:Fake|Mock|Stub|Dummy|Spy)\w*$|#<(?:\w+::)*(?:Fake|Mock|Stub|Dummy|Spy)\w*[:> ]",
    re.MULTILINE,
)
#: What a test has prepared by name, and that is not as it says.
_PREPARED = re.compile(
    r"\bNo fixture named |fixture data: \w+Fixture |\b\w*Fixture\w*(?:::\w+)*(?:Error|Exception)\b|`(?:load|"
    r"bats_load_library) [^']*' failed|"
    r"getResource(?:AsStream)?\(String\)\" is null\s+at [\w.$]+\(\w*Tests?\.|"
    r"monkeypatch\.(?:set|del)(?:attr|item|env)\([\s\S]{0,300}?^E\s+(?:AttributeError|KeyError): ",
    re.MULTILINE,
)
#: What a function or a class of the product would have to have for a test's preparation to work.
_ASKS_FOR_MORE = re.compile(
    r"unexpected keyword|positional argument|has no attribute|cannot import|No module named|is not a function|"
    r"is not a constructor|undefined method|undefined local|Undefined (?:function|method|constant)|"
    r"Call to undefined|uninitialized constant|UndefinedFunctionError|no such (?:table|column)|(?:relation|column|"
    r"table|property) \S+ does not exist|not iterable|"
    r"FunctionClauseError|NoSuchMethodError"
)
#: Ruby raises it in the function that was called, and not in the one that calls.
_WRONG_CALL_IN_RUBY = re.compile(r"ArgumentError: (?:wrong number of arguments|(?:missing|unknown) keyword)")
#: A file that has no tests of its own and serves those that have, by its name.
_SUPPORT = re.compile(
    r"(?:^|/)(?:common|support|helpers?|utils?|fixtures?|factories|fakes?|mocks?|stubs?|builders?)(?:/|\.\w+$)|"
    r"(?:^|/)conftest\.py$|[_-](?:helpers?|utils?|support|case)\.\w+$|(?:Helpers?|TestCase|TestBase)\.\w+$"
)
_SET_UP_OF_PYTEST = re.compile(r"^_+ ERROR at (?:setup|teardown) of ", re.MULTILINE)
#: A line with the error that a test or a program in Python ended with.
_PYTHON_ERROR = re.compile(
    r"^(?:E\s+)?([\w.]*(?:Error|Exception|Warning|Interrupt|Refused|Configured|Exit|"
    r"NoReverseMatch|DoesNotExist|MultipleObjectsReturned))(?:: (.*))?$",
    re.MULTILINE,
)
#: Errors that a test makes by itself, when they are raised in its own file.
_OWN_ERRORS = ("NameError", "SyntaxError", "IndentationError", "TabError", "UnboundLocalError")
#: The error of a program in JavaScript.
_SCRIPT_ERROR = re.compile(r"^[^\S\n]*(?:Uncaught |Caused by: )?(\w*Error)\b(?: \[\w+\])?: (.*)", re.MULTILINE)
_SCRIPT_OWN_ERRORS = ("ReferenceError", "SyntaxError")
#: The file that a parser could not read, at the start of its message.
_NAMED_FILE = re.compile(r"(?:Error parsing |\[?)(/?[\w./@-]+\.[cm]?[jt]sx?)\b")
_LACKING_EXPORT = re.compile(r"does not provide an export named|has no exported member")
#: A file that is not there, and where it would be.
_NO_FILE = re.compile(
    r"(?:No such file or directory|ENOENT|NoSuchFileException|FileNotFoundException|NotFound|cannot find the file|"
    r"Failed to open stream)[^\n]*?['\"(: ](?P<path>[\w./-]*/[\w./-]+\.\w+)|"
    r"(?:open|stat|read) (?P<opened>[\w./-]*/[\w./-]+): no such file"
)
#: The error of a file that is not there, and no assertion about one.
_NO_SUCH_FILE = re.compile(
    r"^E?\s*FileNotFoundError: |kind: NotFound|Error: ENOENT|NoSuchFileException|Errno::ENOENT", re.MULTILINE
)
_DATA_OF_TESTS = re.compile(r"(?:^|/)(?:testdata|test[-_]data|__?fixtures?_?_?|fixtures?|golden|__snapshots__)/")
_RELATIVE_MODULE = re.compile(
    r"(?:Cannot find module|[Ff]ailed to resolve import) ['\"](?P<path>\.[^'\"]+)['\"] (?:imported )?from "
    r"['\"](?P<user>[^'\"]+)['\"]"
)
#: A panic or a crash whose innermost frame counts, in languages that print it first.
_CRASHED = re.compile(
    r"^panic: |AddressSanitizer|^SIGSEGV|System\.NullReferenceException|UndefinedBehavior", re.MULTILINE
)
_ASSERTED = re.compile(r"AssertionError|AssertionFailedError|ERR_ASSERTION|[Ee]xpected|assertion", re.MULTILINE)


#: A hook of tests that took too long or failed.
_HOOK = re.compile(
    r"\"(?:before|after)(?: each| all|Each|All)\" hook|\"(?:before|after)(?:Each|All)\" hook timeout|"
    r"Exceeded timeout of .* for a hook|Hook timed out|\b(?:before|after)(?:Each|All) hook (?:timed out|failed)|"
    r"Failure in: \S*(?:before|after)",
)
#: Errors with which a library refuses what the preparation of a test gives it.
_OF_PREPARATION = (
    "TypeError", "FieldError", "IntegrityError", "ValueError", "DoesNotExist", "MultipleObjectsReturned", "KeyError",
    "IndexError", "ValidationError", "FileNotFoundError", "JSONDecodeError",
)  # fmt: skip
#: Functions that prepare tests.
_SET_UP = re.compile(r"^(?:setUp|setUpClass|setUpTestData|setup_method|setup_class|setup|setup_module|tearDown)$")
#: The header with which node names a file that it cannot read, and the error.
_UNREADABLE = re.compile(
    r"^(?:file://)?(?P<path>/?[\w./@-]+\.[cm]?[jt]sx?):\d+\n(?:.*\n){0,6}?\s*SyntaxError: (?!.*(?:does not provide an "
    r"export|requested module))",
    re.MULTILINE,
)
#: What says that a file cannot be parsed, and not that data cannot be.
_SYNTAX = re.compile(
    r"^(?!.*(?:JSON|json|assert|expect\(|export named|requested module)).*(?:[Ss]yntax ?[Ee]rror|Transform failed|"
    r"[Pp]arse error|PARSE_ERROR|ERROR: (?:Expected|Unexpected|Unterminated)|TokenMissingError|"
    r"MismatchedDelimiterError|"
    r"TS\d+ \[ERROR\]: Cannot find name|error(?: CS(?:10[012]\d|15\d\d)|: expected| TS1\d{3}):? )",
    re.MULTILINE,
)
_LINE_OF_FILE = re.compile(r"(?P<path>/?(?:[\w@.-]+/)*[\w@.-]+\.[a-z]{1,5})(?::\d+|: |\(\d+,\d+\))")
_LAST_FRAME = re.compile(r'^(?:E\s+)?\s*File "(?P<path>[^"]+)", line \d+, in (?P<function>\S+)$', re.MULTILINE)


def is_raised_by_tests(output: str) -> bool:
    """Return whether a failure is a test's own, by the error and by the file it was raised in."""
    if _MISUSED.search(output) or _lacks_a_file_of_tests(output) or _breaks_off_preparing(output):
        return True
    if _STAND_IN.search(output) or _PREPARED.search(output) or _breaks_in_a_helper(output):
        return True
    if unreadable := _UNREADABLE.search(output):
        return is_test_file(unreadable["path"])
    if not python_places(output) and (unread := _files_with_syntax_errors(output)):
        return all(map(is_test_file, unread))
    innermost = python_places(output)[-1:] or frames(output)[:1]
    if innermost and innermost[0].in_tests and _NO_SUCH_FILE.search(output):
        return True
    if relative := _RELATIVE_MODULE.search(output):
        return _is_of_tests(relative["user"], relative["path"])
    if places := python_places(output):
        return _is_pythons(output, places)
    scripts = list(_SCRIPT_ERROR.finditer(output))
    if scripts and all(_is_scripts(output, error) for error in scripts):
        return True
    return bool(innermost) and innermost[0].in_tests and _CRASHED.search(output) is not None


def _breaks_off_preparing(output: str) -> bool:
    """Return whether a test was still being prepared, outside of the product, when it broke off."""
    if _HOOK.search(output):
        if is_environments(output, lambda _: True):
            return False
        innermost = python_places(output)[-1:] or frames(output)[:1]
        return not innermost or innermost[0].in_tests
    places = python_places(output)
    if not places or not places[-1].in_tests:
        return False
    preparing = [each for each in _LAST_FRAME.finditer(output) if is_test_file(each["path"])]
    errors = [match[1].rpartition(".")[2] for match in _PYTHON_ERROR.finditer(output)]
    own = bool(errors) and errors[-1] in _OF_PREPARATION
    library = output.rfind("-packages/") > places[-1].at
    return own and library and bool(preparing) and _SET_UP.match(preparing[-1]["function"]) is not None


def _breaks_in_a_helper(output: str) -> bool:
    """Return whether a file that helps tests broke off, called by another file of tests, and no assertion failed.

    So did a fixture of pytest's that got as far as a library. What the product does not have is the product's fault.
    """
    if (callee := frames(output)[:1]) and callee[0].in_tests and _WRONG_CALL_IN_RUBY.search(output):
        return True
    if _ASSERTED.search(output) or _ASKS_FOR_MORE.search(output) or is_environments(output, lambda _: True):
        return False
    python = python_places(output)
    places = python[::-1] or frames(output)
    if not places or not places[0].in_tests:
        return False
    if python and _SET_UP_OF_PYTEST.search(output):
        return True
    if _SUPPORT.search(places[0].path):
        return True
    called_by = places[1] if len(places) > 1 else places[0]
    return called_by.in_tests and called_by.path != places[0].path


def _is_pythons(output: str, places: list[OutputPlace]) -> bool:
    found = list(_PYTHON_ERROR.finditer(output))
    if not found or not places[-1].in_tests:
        return False
    kind, says = found[-1][1].rpartition(".")[2], found[-1][2] or ""
    misspelt = kind in ("AttributeError", "ImportError", "KeyError", "TypeError") and "Did you mean" in says
    return kind in _OWN_ERRORS or misspelt or kind in ("NoReverseMatch", "FixtureLookupError", "FixtureError")


def _files_with_syntax_errors(output: str) -> set[str]:
    """Return the files that could not be parsed: those that the first error names, or the line before or behind it."""
    for error in _SYNTAX.finditer(output):
        before = output[: error.start()].splitlines()[-1:]
        behind = output[error.end() :].splitlines()[:3]
        for text in (error[0] + (behind[0] if behind else ""), *behind[1:], *before):
            named = {match["path"] for match in _LINE_OF_FILE.finditer(text) if "node_modules" not in match["path"]}
            if named:
                return named
    return set()


def _is_scripts(output: str, error: re.Match[str]) -> bool:
    """Return whether an error in JavaScript is a name that a test does not have, or its syntax."""
    if error[1] not in _SCRIPT_OWN_ERRORS or _LACKING_EXPORT.search(error[2]):
        return False
    if named := _NAMED_FILE.match(error[2]):
        return is_test_file(named[1])
    innermost = frames(output, error.end())[:1]
    return bool(innermost) and innermost[0].in_tests


def _lacks_a_file_of_tests(output: str) -> bool:
    """Return whether a file is missing that a test brings: data, a fixture, a helper."""
    missing = _NO_FILE.search(output)
    if missing is None:
        return False
    path = missing["path"] or missing["opened"]
    data = _DATA_OF_TESTS.search(path) is not None
    return (data or is_test_file(f"{posixpath.splitext(path)[0]}.py")) and not path.endswith(("/autoload.php", ".h"))


def _is_of_tests(user: str, path: str) -> bool:
    """Return whether a test asks for a module of tests that is not there; one of the product may come later."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(user), path))
    named = re.search(
        r"mock|fixture|helper|stub|fake|setup|testing|(?:^|/|\b)tests?[-_]?\w*/|test[-_]?util", path, re.I
    )
    return is_test_file(user) and (bool(named) or is_test_file(f"{target}.js"))
