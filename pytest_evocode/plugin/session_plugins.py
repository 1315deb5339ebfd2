"""Which of our plugins a session that runs or checks tasks has; their hooks do everything else."""

from __future__ import annotations

import os

import pytest

from pytest_evocode.plugin.collection import CollectionHooks
from pytest_evocode.plugin.images_ahead import AHEAD, ImagesAheadPlugin
from pytest_evocode.plugin.report_files import GitHubActions, ReportFiles
from pytest_evocode.plugin.round_reports import RoundReports
from pytest_evocode.plugin.session import EvocodeSession, start_session
from pytest_evocode.plugin.session_hooks import SessionHooks


def register_session_plugins(config: pytest.Config) -> None:
    """Make the session, and register the plugins that its options ask for.

    Their order matters where hooks of two plugins are alike: pytest calls the one that was registered later first. The
    modules of options that few sessions use are imported only then, as is xdist's part.
    """
    session = start_session(config)
    settings, plugins = session.settings, config.pluginmanager
    plugins.register(SessionHooks(session), "evocode-session")
    plugins.register(CollectionHooks(session), "evocode-collection")
    plugins.register(RoundReports(session), "evocode-round-reports")
    _register_where_attempts_are_made(session)
    if settings.holds_forks:
        from pytest_evocode.plugin.debugging import RoundInspection

        plugins.register(RoundInspection(session), "evocode-inspection")
    if settings.pin and session.worker_input is None:
        from pytest_evocode.plugin.pinning import PinPlugin

        plugins.register(PinPlugin(session), "evocode-pinning")
    if settings.case and session.worker_input is None:
        from pytest_evocode.plugin.single_cases import SingleCases

        plugins.register(SingleCases(settings.case), "evocode-single-cases")
    if settings.process is not None:
        from pytest_evocode.plugin.process import ProcessPlugin

        plugins.register(ProcessPlugin(session, settings.process), "evocode-process")
    if settings.report is not None and session.worker_input is None and not config.option.collectonly:
        from pytest_evocode.plugin.html_report import HtmlReportPlugin

        plugins.register(HtmlReportPlugin(session), "evocode-report")
    if settings.check and session.worker_input is None:
        from pytest_evocode.plugin.checks import CachedChecks

        plugins.register(CachedChecks(), "evocode-cached-checks")
    if settings.warm and session.worker_input is None:
        from pytest_evocode.plugin.warming import WarmSummary

        plugins.register(WarmSummary(), "evocode-warm-summary")
    if session.worker_input is None:
        plugins.register(ReportFiles(session), "evocode-reports")
        if os.environ.get("GITHUB_ACTIONS") == "true" and not config.option.collectonly:
            plugins.register(GitHubActions(session), "evocode-github")
    if not config.option.collectonly:
        from pytest_evocode.plugin.live import live_plugin

        if (live := live_plugin(session)) is not None:
            plugins.register(live, "evocode-live")


def _register_where_attempts_are_made(session: EvocodeSession) -> None:
    """Register what belongs to a session with workers, or on a cluster, and builds images where that is done here."""
    settings, config, plugins = session.settings, session.config, session.config.pluginmanager
    if session.worker_input is not None:
        from pytest_evocode.plugin.xdist.worker import WorkerPlugin

        plugins.register(WorkerPlugin(session), "evocode-worker")
    elif plugins.hasplugin("xdist"):
        from pytest_evocode.plugin.xdist.controller import ControllerPlugin

        plugins.register(ControllerPlugin(session), "evocode-controller")
    if settings.cluster is not None:
        from pytest_evocode.plugin.cluster.hooks import ClusterPlugin

        plugins.register(ClusterPlugin(session), "evocode-cluster")
    elif session.worker_input is None and not (settings.check or settings.warm or config.option.collectonly):
        plugins.register(ImagesAheadPlugin(session), AHEAD)
