"""Studies as the sentences of the summary read them, made of tables by hand."""

from pathlib import Path

import pandas as pd

from examples import report_tables
from scaling.tables.schema import StudyTables, read_study


def study(folder: Path, tables: dict[str, pd.DataFrame]) -> StudyTables:
    """The study of these tables, through their files below `folder`."""
    report_tables.write(folder, tables)
    shared = folder / "tables"
    own = shared / report_tables.STUDY
    return read_study(report_tables.STUDY, own, shared, folder / "manifest.json")


def only(tables: dict[str, pd.DataFrame], **columns: object) -> dict[str, pd.DataFrame]:
    """The tables with just the cells that have these values."""
    kept = {}
    for name, table in tables.items():
        for column, value in columns.items():
            if column in table and name not in ("interconnect", "interconnect_fit"):
                table = table[table[column] == value]
        kept[name] = table
    return kept
