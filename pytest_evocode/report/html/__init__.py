"""The HTML report: a folder of static files that a browser opens from disk.

:mod:`~pytest_evocode.report.html.contents` is what a report is made from, and
:mod:`~pytest_evocode.report.html.writing` writes it. The values that pages show are made in three packages,
:mod:`~pytest_evocode.report.html.overview`, :mod:`~pytest_evocode.report.html.rounds` and
:mod:`~pytest_evocode.report.html.steps`; their shapes are in ``viewer/data.d.ts``, and ``viewer/`` has the scripts that
show them. :mod:`~pytest_evocode.report.html.files` puts them on disk.
"""
