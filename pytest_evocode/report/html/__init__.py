"""The HTML report: a folder of static files that a browser opens from disk.

:mod:`~pytest_evocode.report.html.contents` is what a report is made from, and
:mod:`~pytest_evocode.report.html.writing` writes it. The values that pages show have their shapes in
``viewer/data.d.ts``, and ``viewer/`` has the scripts that show them. What all attempts say together is made by
``index``, ``rows``, ``runs`` and ``processes``; what pages of tasks and rounds show by ``task``, ``attempt``, ``cells``
and ``introduced``; what steps did by ``trajectory``, ``step``, ``changes`` and ``sparse_text``. ``task_files``,
``summaries`` and ``folder`` put it on disk.
"""
