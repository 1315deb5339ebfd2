"""Tables of declared columns in each format."""

from __future__ import annotations

import re

from pytest_evocode.report.views import Column, Table, View, csv_text, latex_text, printed

AGENT = Column.text("agent", "agent")
SCORE = Column.number("score", "score", "What it passed.")


def test_no_text_is_a_command_of_latex_or_the_argument_of_one() -> None:
    table = Table(
        "t",
        "50 % of a_b",
        [AGENT, SCORE],
        [{"agent": "[x] \\input{/etc/passwd} & #1 ^~$", "score": 1}],
        notes=["[n]", "*"],
    )
    text = latex_text(table)
    assert "\\caption{50 \\% of a\\_b}" in text
    assert (
        "{}[x] \\textbackslash{}input\\{/etc/passwd\\} \\& \\#1 \\textasciicircum{}\\textasciitilde{}\\$ & 1.0" in text
    )
    assert not re.search(r"\\\\\n\s*[\[*]", text)
    assert "score: What it passed." in text
    assert "What it passed." not in latex_text(table, definitions=False)


def test_a_column_with_nothing_is_for_programs_only() -> None:
    cost = Column("cost", lambda row: "n/a", fields=("cost",), nothing="n/a", help="Dollars.")
    table = Table("t", "T", [AGENT, cost, SCORE], [{"agent": "a", "cost": None, "score": None}])
    assert printed(View([table]), "text").splitlines() == ["agent  score", "a        n/a", "score: What it passed."]
    assert csv_text(table) == "agent,cost,score\na,,\n"


def test_values_across_are_columns_in_their_order_with_all_of_them_first() -> None:
    columns = [AGENT, Column("round", lambda row: str(row["round"] or "all"), fields=("round",)), SCORE]
    rows = [{"agent": "a", "round": index, "score": index or 9} for index in (10, 2, None)]
    rows.append({"agent": "b", "round": 2, "score": 5})
    table = Table("t", "T", columns, rows, across=1)
    assert printed(View([table]), "text").splitlines() == [
        "agent  all    2    10",
        "a      9.0  2.0  10.0",
        "b           5.0",
        "all to 10: By round, What it passed.",
    ]
    assert csv_text(table).splitlines()[1:] == ["a,10,10", "a,2,2", "a,,9", "b,2,5"]


def test_sections_are_tables_of_their_own_for_people_and_one_for_programs() -> None:
    columns = [AGENT, Column.count("n", "n")]
    rows = [{"agent": "a", "n": 1}, {"agent": "a", "n": 2}, {"agent": "b", "n": 3}]
    table = Table("t", "T", columns, rows, by_section=True)
    assert printed(View([table]), "text").splitlines() == ["a:", "n", "1", "2", "", "b:", "n", "3"]
    assert latex_text(table).count("\\begin{table}") == 2
    assert csv_text(table).splitlines() == ["agent,n", "a,1", "a,2", "b,3"]


def test_people_see_the_first_rows_and_programs_all() -> None:
    table = Table("t", "T", [Column.count("n", "n")], [{"n": 1}, {"n": 2}], most=1, notes=["and 1 more"])
    assert printed(View([table]), "text").splitlines() == ["n", "1", "and 1 more"]
    assert csv_text(table).splitlines() == ["n", "1", "2"]
