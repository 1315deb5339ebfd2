"""Lint rules about suites: tests that never run or are not there, invalid Python, lost state, and shadowed modules."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from pytest_evocode.checks.lint.bypasses import product_modules
from pytest_evocode.checks.lint.sources import SourceFile, SuiteModules, TaskSources, parse_python
from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.layout import is_test_module
from pytest_evocode.tasks.text_files import check_python


def find_lost_tests(sources: TaskSources) -> Iterator[TaskError]:
    """Yield test files that no suite runs, and tests that a later one of the same name replaces."""
    yield from _never_collected(sources)
    yield from _never_started(sources)
    for file in sources.tests:
        if is_test_module(file.path.name):
            yield from _replaced(file)


def find_rounds_without_tests(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the directories of tests of rounds that add no test to the native suite.

    Nothing is said where rounds share all tests or a test knows the round that it runs in, and of a round whose workdir
    brings what may break the tests of earlier ones.
    """
    has_own = any(each.tests for each in sources.rounds)
    if not has_own or any("evocode_round" in file.text for file in sources.tests):
        return
    tested = {test.round for test in sources.task.tests}
    names = [each.round.name for each in sources.rounds if not each.round.has_script]
    for module in SuiteModules(sources).modules.values():
        # Tests may be imported or made there; what this Python cannot parse is another rule's.
        if is_test_module(module.file.path.name) and (
            module.tree is None or any(name.lower().startswith("test") for name in module.names)
        ):
            place = PurePosixPath(module.place).parts[0]
            tested.add(place if place in names else names[0])
    for each in sources.rounds:
        if not (each.round.has_script or each.workdir or each.round.name in tested):
            path = each.round.directory / "tests"
            yield TaskError("has no test: write what the request asks for", path)


def _never_collected(sources: TaskSources) -> Iterator[TaskError]:
    """Yield files of native suites that have tests under a name that pytest passes over."""
    native = [each for each in sources.rounds if not each.round.has_script]
    files = [*(sources.shared_tests if native else ()), *(file for each in native for file in each.tests)]
    modules = [file for file in files if file.path.suffix == ".py"]
    for file in modules:
        if is_test_module(file.path.name) or file.path.name == "conftest.py":
            continue
        # Tests that another module imports or inherits run there.
        if _has_tests(file) and not _is_imported(file, (other for other in modules if other is not file)):
            name = _collected_name(file.path.stem)
            advice = f"move them to {name}" if file.path.with_name(name).exists() else f"rename it {name}"
            yield TaskError(f"holds tests that never run, because pytest collects test_*.py; {advice}", file.path)


def _never_started(sources: TaskSources) -> Iterator[TaskError]:
    """Yield files of tests beside a ``test.sh`` that starts neither them nor anything that could start them."""
    for each in sources.rounds:
        if not each.round.has_script:
            continue
        files = [*sources.shared_tests, *each.tests]
        others = [file for file in files if not is_test_module(file.path.name)]
        if any(PATTERNS.find(file.text, "runs_tests") for file in others):
            continue
        for file in files:
            rest = (other for other in files if other is not file)
            if is_test_module(file.path.name) and _has_tests(file) and not _is_named(file, rest):
                message = f"no test.sh of {each.round.name} runs it; run it there, or remove it"
                yield TaskError(message, file.path)


def _is_named(file: SourceFile, others: Iterable[SourceFile]) -> bool:
    name = re.compile(rf"\b{re.escape(file.path.stem)}\b")
    return any(name.search(other.text) for other in others)


def _is_imported(file: SourceFile, others: Iterable[SourceFile]) -> bool:
    """Return whether other modules import a file or give its name in quotes; in prose it may be any word."""
    stem = re.escape(file.path.stem)
    name = re.compile(rf"""\b(?:from|import)\b[^\n(]*(?:\([^)]*)?\b{stem}\b|["'](?:[\w./]*[./])?{stem}(?:\.py)?["']""")
    return any(name.search(other.text) for other in others)


def _collected_name(stem: str) -> str:
    words = [word for word in re.split(r"[-_.]+", stem) if word and word.lower() not in ("test", "tests")]
    return "_".join(["test", *(words or ["cases"])]) + ".py"


def _has_tests(file: SourceFile) -> bool:
    tree = parse_python(file.content)
    return tree is not None and any(_test_name(statement) for statement in tree.body)


def _test_name(statement: ast.stmt) -> str:
    """Return the name under which pytest collects what a statement defines, or an empty text."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test"):
        return statement.name
    if isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
        return statement.name
    return ""


def _replaced(file: SourceFile) -> Iterator[TaskError]:
    tree = parse_python(file.content)
    scopes = [tree.body] if tree is not None else []
    for body in scopes:
        scopes += [statement.body for statement in body if isinstance(statement, ast.ClassDef)]
        last: dict[str, int] = {}
        for index, statement in enumerate(body):
            if name := _test_name(statement):
                if name in last and not _is_used(name, body[last[name] + 1 : index], statement):
                    lost = body[last[name]].lineno
                    message = f"{name} is defined again, and the one at {file.path}:{lost} is lost; rename one of them"
                    yield TaskError(message, file.path, statement.lineno)
                last[name] = index


def _is_used(name: str, between: Sequence[ast.stmt], again: ast.stmt) -> bool:
    """Return whether the first of two definitions is used before the second, or by its decorators."""
    decorators = again.decorator_list if isinstance(again, ast.FunctionDef | ast.AsyncFunctionDef) else []
    nodes = (node for part in [*between, *decorators] for node in ast.walk(part))
    return any(isinstance(node, ast.Name) and node.id == name for node in nodes)


_LONGEST = 1 << 24


def find_syntax_errors(sources: TaskSources) -> Iterator[TaskError]:
    """Yield test modules and ``conftest.py`` that cannot be compiled, and what they import.

    Nothing is said where the image has a newer Python than this one, which may understand what this one does not.
    """
    verifier = sources.task.config.verifier.environment
    images = [sources.dockerfile, sources.task.config.environment.docker_image, verifier and verifier.docker_image]
    minors = PATTERNS["version_of_python"].findall("\n".join(str(image or "") for image in images))
    if any(int(minor) > sys.version_info.minor for minor in minors):
        return
    for file in _modules(sources):
        if (problem := _problem(file)) is not None:
            yield problem


def _modules(sources: TaskSources) -> Iterator[SourceFile]:
    """Yield the modules that suites load; other files beside them may be data."""
    suite = SuiteModules(sources)
    native = suite.modules.values()
    imported = {each for module in native for each in suite.imports(module)}
    for module in native:
        if _is_loaded(module.file) or module in imported:
            yield module.file
    known = {module.file for module in native}
    # Beside a test.sh, deeper files may be what it works on.
    yield from (file for file in sources.tests if "/" not in file.place and _is_loaded(file) and file not in known)


def _is_loaded(file: SourceFile) -> bool:
    """Return whether pytest loads a file by itself."""
    name = PurePosixPath(file.place).name
    return is_test_module(name) or name == "conftest.py"


def _problem(file: SourceFile) -> TaskError | None:
    try:
        check_python(content := file.read(_LONGEST), file.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # More than parsing: a `return` outside of a function shows only here. Nothing is run.
            compile(content, str(file.path), "exec", dont_inherit=True)
    except SyntaxError as error:
        what = f"is not valid Python {sys.version_info.major}.{sys.version_info.minor}: {error.msg}"
        return TaskError(f"{what}; correct it, its suite cannot run", file.path, error.lineno or None)
    except ValueError as error:
        return TaskError(f"is not valid Python: {error}; correct it, its suite cannot run", file.path)
    except TaskError as error:
        return error
    except RecursionError:
        pass
    return None


#: A suite's own, those of everybody, and those of the kernel.
_EXPECTED = ("/logs", "/tests", "/tmp", "/var/tmp", "/dev", "/proc", "/sys", "/run")
_METHODS = ("write_text", "write_bytes", "mkdir", "touch")


def find_lost_state(sources: TaskSources) -> Iterator[TaskError]:
    """Yield lines of suites that write outside of the workspace, /logs, /tests and /tmp, in tasks of several rounds."""
    task = sources.task
    if len(task.rounds) == 1 or task.in_place:
        return
    evocode = task.config.metadata.evocode
    fine = (*_EXPECTED, *evocode.verifier_state, *evocode.state, *sources.workspace_roots)
    for file in sources.tests:
        for path, line in _written(file):
            if not any(PurePosixPath(path).is_relative_to(each) for each in fine):
                message = (
                    f"writes {path}, which is gone when the suite has ended; where a later suite needs it, name its "
                    "directory in verifier_state of [metadata.evocode], else write below /tmp"
                )
                yield TaskError(message, file.path, line)
                break  # One note for each file will do.


def _written(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Yield absolute paths that a file certainly writes when it is run, with their lines."""
    if file.path.suffix == ".py":
        tree = parse_python(file.content)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and (path := _written_by(node)).startswith("/"):
                yield path, node.lineno
    elif file.path.suffix == ".sh":
        for number, line in enumerate(file.text.splitlines(), 1):
            if not line.lstrip().startswith("#") and (found := PATTERNS["written_in_shell"].search(line)):
                yield found[1], number


def _written_by(call: ast.Call) -> str:
    """Return the path that ``open(path, "w")``, ``os.makedirs(path)`` or ``Path(path).mkdir()`` writes, or nothing."""
    match call:
        case ast.Call(
            func=ast.Name(id="open"), args=[ast.Constant(value=str() as path), ast.Constant(value=str() as mode)]
        ):
            return path if set(mode) & set("wax+") else ""
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="os"), attr="mkdir" | "makedirs"),
            args=[ast.Constant(value=str() as path), *_],
        ):
            return path
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(func=ast.Name(id="Path"), args=[ast.Constant(value=str() as path)]), attr=str() as method
            )
        ):
            return path if method in _METHODS else ""
    return ""


_TOOLS = sys.stdlib_module_names | {"pytest", "pip", "coverage", "tox"}
"""What ``-m`` starts that is not the agent's work, which has to be imported from there."""
_ADVICE = (
    "{} imports from the working directory first, so a {}.py that the agent left there runs instead; add -P (Python "
    "3.11 and newer) or -I, run a file below /tests, or set safe_path = true in [metadata.evocode]"
)


def find_shadowing(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the lines of script suites that start Python with the working directory first on its path.

    A suite that sets ``PYTHONSAFEPATH`` for all that it starts is passed over, as are starts in another directory,
    those of the agent's own modules, and code in a file that imports any of these.
    """
    task = sources.task
    if task.config.metadata.evocode.safe_path or PATTERNS.find(sources.dockerfile, "sets_safe_path"):
        return
    imports_work = re.compile(rf"\b(?:import|from)\s+(?:{'|'.join(sorted(product_modules(sources))) or '(?!)'})\b")
    for each in sources.rounds:
        if not each.round.has_script or each.round.suite_environment or "PYTHONSAFEPATH" in each.round.verifier_env:
            continue
        files = [file for file in (*sources.shared_tests, *each.tests) if re.fullmatch(r"[^/]+\.sh", file.place)]
        exports = (line for file in files for line in file.text.splitlines() if "export" in line)
        if any(PATTERNS.find(line, "sets_safe_path") for line in exports):
            continue
        for file in files:
            for number, start, module in _starts(file.text):
                if module in _TOOLS if module else not imports_work.search(file.text):
                    yield TaskError(_ADVICE.format(start, module or "json"), file.path, number)


def _starts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the starts of Python in a shell script that have the working directory first, as :func:`_start` does."""
    inside = True
    for number, line in _commands(text):
        for word in PATTERNS["starts_python"].finditer(line):
            if word["directory"]:
                inside = not PATTERNS["elsewhere"].match(word["directory"])
            elif inside and not PATTERNS.find(line, "sets_safe_path") and (found := _start(line, word)):
                yield number, *found


def _start(line: str, word: re.Match[str]) -> tuple[str, str] | None:
    """Return how Python is started with the working directory first on its path, and the module that ``-m`` names."""
    before, after = line[: word.start()], line[word.end() :]
    if PATTERNS.find(before, "only_printed"):
        return None
    if (code := PATTERNS["given_code"].match(after)) is None:
        is_piped = PATTERNS.find(before, "piped_into") and re.match(r"\s*(?:$|[>|;)&])", after)
        return (word[0], "") if is_piped else None
    if re.search(r"\s-\w*[IP]", f"{code['options']} -{code['more'] or ''}"):
        return None
    return " ".join(f"{word[0]}{code[0]}".split()), (code["module"] or "").partition(".")[0]


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a shell script with their numbers: continued ones as one, no comments and here-documents."""
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        while line.endswith("\\"):
            line = line[:-1] + next(lines, (0, ""))[1]
        line = re.sub(r"(?:^|\s)#.*", "", line)
        yield number, line
        for _, end in PATTERNS["here_document"].findall(line):
            while next(lines, (0, end))[1].strip() != end:
                pass
