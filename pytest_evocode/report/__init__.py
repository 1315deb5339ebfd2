"""Text for people and other programs, made from records by pure functions: tables, Markdown, CSV and Parquet.

:mod:`~pytest_evocode.report.views` prints tables of declared columns in every format, and functions of other modules
return them. :mod:`~pytest_evocode.report.score_columns` alone says what the column of a score is and which tables have
it, and :mod:`~pytest_evocode.report.score_lines` makes tables of it, with the notes below. Other modules are named for
the view, the command or the file whose text they make; ``html`` is a page with all of it, whose JavaScript is in
``html/viewer``.
"""
