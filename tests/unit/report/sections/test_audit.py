"""The audit on the page: findings with their cells, and every check."""

from examples import report_tables
from examples.report_page import section


def test_the_audit_lists_what_it_found(tmp_path):
    page = section(tmp_path, "audit", report_tables.make())
    rows = page.rows("Findings")
    # 3.0 / 1.49 = 2.013, each ± 2 %; the cells of one finding stand below each other.
    above = "speedup above the number of GPUs; within noise"
    first = [row[1] for row in rows].index(above)
    assert rows[first] == [*("remark", above), *("course/ddp, 2 GPUs, b = 512", "2.013", "2.000")]
    assert rows[first + 1][0] == "fast/ddp, 4 GPUs, b = 512"
    assert page.row("Checks", "negative communication")[-1] == "3"
    assert page.row("Checks", "two baselines")[-1] == "0"


def test_a_clean_audit_says_so(tmp_path):
    tables = report_tables.make()
    tables["audit"] = tables["audit"][:0]
    page = section(tmp_path, "audit", tables)
    assert "Result: no findings." in page.text
    assert "Findings" not in page.tables
