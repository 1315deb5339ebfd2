"""Parts of pytest that it keeps to itself and for which it has no public counterpart, each with the reason.

All were seen to work with pytest 8.4, 9.0 and 9.2; the tox environment ``lowest`` has the oldest of them, and
``pytestmain`` tries the newest pre-release.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO, cast

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from _pytest._io import TerminalWriter as TerminalWriter
from _pytest.config import findpaths
from _pytest.terminal import _get_node_id_with_markup

_BEFORE_9 = pytest.version_tuple < (9,)


def add_fixture(name: str, function: Callable[..., object], node: pytest.Collector) -> None:
    """Add a session-scoped fixture for what is below a collector.

    ``_register_fixture``: what pytest 9.1 has made public as ``register_fixture``.
    """
    if hasattr(pytest, "register_fixture"):
        pytest.register_fixture(name=name, func=function, node=node, scope="session")
    else:
        manager = node.session._fixturemanager
        manager._register_fixture(name=name, func=function, nodeid=node.nodeid, scope="session")


def fixture_info_of(item: pytest.Function) -> Any:
    """Return what pytest found out about the fixtures of an item, to make another item of the same function with it.

    ``_fixtureinfo``: ``Function.from_parent`` takes it as ``fixtureinfo``, but no public attribute has it. To find it
    out for every round takes half the time of collecting them.
    """
    return item._fixtureinfo


def finish_with(request: pytest.FixtureRequest, owner: pytest.Collector | None) -> None:
    """Have the fixture that is being set up end with ``owner``, or with the item that asks for it, at the latest.

    ``_fixturedef``, ``_pyfuncitem``: pytest has no scope that is a collector of ours, and ends a session-scoped fixture
    with the session; the request does not show its definition, nor to a session-scoped fixture its item.
    """
    definition = request._fixturedef  # type: ignore[attr-defined]
    (owner or request._pyfuncitem).addfinalizer(lambda: definition.finish(request))


def keep_out_conftest(config: pytest.Config, directory: Path) -> None:
    """Have pytest take the conftest.py of a directory for loaded, and use those of the directories above there.

    ``_dirpath2confmods``, ``_getconftestmodules``: ``confcutdir`` only cuts off what lies above a directory, and
    ``collect_ignore`` comes after the conftest files were imported.
    """
    plugins = config.pluginmanager
    plugins._dirpath2confmods[directory] = list(plugins._getconftestmodules(directory.parent))


def import_as_written(config: pytest.Config, package: str) -> None:
    """Have pytest import a plugin's package like any other, and not with its ``assert`` statements rewritten.

    ``_must_rewrite``, ``_marked_for_rewrite_cache``: pytest marks all that is distributed with a plugin, and a
    ``PYTEST_DONT_REWRITE`` in a docstring spares a module the rewriting alone. What pytest caches takes five times as
    long to read as what Python does, and where nothing can be written, as in many images, every session compiles all.
    """
    hook = config.pluginmanager.rewrite_hook
    if marked := getattr(hook, "_must_rewrite", None):
        marked.discard(package)
        hook._marked_for_rewrite_cache.clear()  # type: ignore[attr-defined]


def replace_settings(config: pytest.Config, args: list[str], root: Path | None) -> None:
    """Have a configuration be as if the ini file that pytest found were not there; to be called before conftest files.

    ``determine_setup`` and what ``Config.parse`` does with its result: pytest reads its ini file before any plugin is
    loaded. What its ``-p`` loaded stays.

    Args:
        config: The configuration.
        args: The command line, in which ``addopts`` are replaced.
        root: The root directory of a session without an ini file; None for what there is where pytest was started.
    """
    parser = config._parser
    config._unconfigure_python_path()
    added = config.getini("addopts")
    del args[: len(added)]
    given = parser.parse_known_args(args, namespace=copy.copy(config.option))
    _find_settings(config, given.override_ini, given.rootdir or (str(root) if root is not None else None))
    if root is not None:
        # pytest 8 has what -o overrides elsewhere.
        overridden = {} if _BEFORE_9 else findpaths.parse_override_ini(given.override_ini)
        setattr(config, _SETTINGS, overridden)
        config._inipath = None
    config._inicache.clear()
    parser.extra_info.update(rootdir=str(config.rootpath), inifile=str(config.inipath))
    args[:0] = added = config.getini("addopts")
    config.known_args_namespace = namespace = parser.parse_known_args(args, namespace=copy.copy(config.option))
    if namespace.confcutdir is None:
        namespace.confcutdir = str(config.inipath.parent if config.inipath is not None else config.rootpath)
    config._configure_python_path()
    config.pluginmanager.consider_preparse(added)


_SETTINGS = "inicfg" if _BEFORE_9 else "_inicfg"


def _find_settings(config: pytest.Config, overridden: list[str] | None, root: str | None) -> None:
    """Take the settings that pytest finds where it was started; ``root`` is what is given as its root directory."""
    places: dict[str, Any] = {"inifile": None, "args": [], "rootdir_cmd_arg": root}
    places["invocation_dir"] = config.invocation_params.dir
    if not _BEFORE_9:
        places["override_ini"] = overridden
    config._rootpath, config._inipath, settings, *ignored = findpaths.determine_setup(**places)
    setattr(config, _SETTINGS, settings)
    if ignored:
        (config._ignored_config_files,) = ignored


def leave_out_options(config: pytest.Config, args: list[str]) -> list[str]:
    """Take options that nobody declares out of those that the ini file adds to a command line, and return them.

    ``parse_known_and_unknown_args``: pytest's own parser is the only one that knows which options have values. What
    follows an unknown one, and would be a path, is taken for its value.
    """
    added = config.getini("addopts")
    known, unknown = config._parser.parse_known_and_unknown_args(added, copy.copy(config.option))
    if not unknown or args[: len(added)] != added:
        return []
    values = (each for before, each in pairwise(added) if before in unknown and each in known.file_or_dir)
    unknown += list(values)
    args[: len(added)] = [each for each in added if each not in unknown]
    return unknown


def forget_settings(config: pytest.Config, names: Iterable[str]) -> None:
    """Have pytest not find settings in its ini file.

    ``_inicfg``, in pytest 8 ``inicfg``: pytest warns of those that nobody declares, which a ``filterwarnings`` or
    ``strict_config`` there makes an error that ends the session.
    """
    for name in names:
        getattr(config, _SETTINGS).pop(name, None)


def names_of_settings(config: pytest.Config) -> tuple[set[str], set[str]]:
    """Return the names of the settings in pytest's ini file that nobody declares, and of those that are declared.

    ``_get_unknown_ini_keys``, ``_inidict``: ``getini`` only answers for a name that one knows already. Those of ``-o``
    are among them, in pytest 8 by ``_override_ini``.
    """
    known = set(config._parser._inidict)
    given: Iterable[str] = getattr(config, "_override_ini", ())
    overridden = {each.partition("=")[0] for each in given}
    return set(config._get_unknown_ini_keys()) | (overridden - known), known


def change_captured_sections(item: pytest.Item, change: Callable[[Any], Any]) -> None:
    """Change what was captured during an item's phases so far, before it gets into a report.

    ``_report_sections``: other plugins, such as pytest-json-report's, read it from the item and not from the report.
    """
    item._report_sections[:] = change(item._report_sections)


def change_json_report(report: pytest.TestReport, change: Callable[[Any], Any]) -> None:
    """Change what pytest-json-report attaches to a report, with all that was logged.

    ``_json_report_extra``: seen in pytest-json-report 1.5, which has no hook for it.
    """
    if extra := getattr(report, "_json_report_extra", None):
        report._json_report_extra = change(extra)  # type: ignore[attr-defined]


def show_failure(report: pytest.TestReport, reporter: pytest.TerminalReporter) -> None:
    """Print a failure now, and not once more when the session ends.

    ``_tw``, ``_pdbshown``: what pytest's own ``--pdb`` does it with.
    """
    report.toterminal(reporter._tw)
    report._pdbshown = True  # type: ignore[attr-defined]


def make_failure(item: pytest.Item, text: str) -> ReprExceptionInfo:
    """Return a failure without a traceback for the report of an item; the first line of the text sums it up.

    ``_pytest._code``: a failure that is a mere string has no line of its own in short summaries and JUnit files.
    """
    summary = text.partition("\n")[0]
    style = item.config.getoption("tbstyle", "auto")  # Not there with -p no:terminal.
    entries = [] if style == "line" else [ReprEntryNative([f"{text}\n"])]
    return ReprExceptionInfo(
        reprtraceback=ReprTraceback(entries, extraline=None, style="native"),
        reprcrash=ReprFileLocation(str(item.path), 1, summary),
    )


#: The outcomes that pytest's short summary lists, by their letters in ``-r``.
_LISTED = {"f": "failed", "E": "error", "s": "skipped", "x": "xfailed", "X": "xpassed", "p": "passed"}


def list_in_short_summary(
    reporter: pytest.TerminalReporter, letter: str, word: str, reports: Mapping[pytest.TestReport, str]
) -> None:
    """Have pytest's short summary list the tests of an outcome of our own where ``-r`` asks for it, or for all.

    ``short_test_summary``, ``_get_node_id_with_markup``, ``_tw``: pytest lists its own outcomes, and no hook is between
    them and what follows. To be called before it does, in ``pytest_terminal_summary``.

    Args:
        reporter: Who prints the summary.
        letter: What stands for the outcome in ``-r``, beside ``a`` and ``A``.
        word: What the outcome is called in a line.
        reports: Those of the tests, each with why its test has the outcome.
    """
    asked = False
    for char in reporter.config.option.reportchars:  # The reporter's own have neither of the letters for all.
        asked = char != "N" and (asked or char in ("a", "A", letter))
    if not asked or not reports:
        return
    list_others = reporter.short_test_summary

    def list_all() -> None:
        list_others()
        if not any(reporter.stats.get(_LISTED[char]) for char in reporter.reportchars if char in _LISTED):
            reporter.write_sep("=", "short test summary info", cyan=True, bold=True)
        for report, why in reports.items():
            node = _get_node_id_with_markup(reporter._tw, reporter.config, report)
            reporter.write_line(f"{reporter._tw.markup(word, yellow=True)} {node} - {why}")

    reporter.short_test_summary = list_all  # type: ignore[method-assign]


def file_of(writer: TerminalWriter) -> TextIO:
    """Return the file that a terminal writer writes to.

    ``_file``: no public attribute tells whether pytest writes to a terminal, and to which.
    """
    return writer._file


def redirect(writer: TerminalWriter, file: object) -> None:
    """Have a terminal writer write to another file, which need not be one in more than its methods.

    ``_file``: whoever shows lines below pytest's output has to know when it writes.
    """
    writer._file = cast(TextIO, file)


def change_junit_reports(config: pytest.Config, change: Callable[[pytest.TestReport], pytest.TestReport]) -> None:
    """Have ``--junitxml`` take what it writes of a test from a changed report; do nothing without that option.

    ``xml_key``, ``LogXML.finalize``: a test's properties come from its report, and no hook is between.
    """
    from _pytest.junitxml import xml_key

    if (xml := config.stash.get(xml_key, None)) is not None:
        finalize = xml.finalize
        xml.finalize = lambda report: finalize(change(report))  # type: ignore[method-assign]
