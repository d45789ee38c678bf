"""The table of what the audit found."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.frames import SEVERITIES
from scaling.report.quantities import define, view
from scaling.report.table import Column
from scaling.tables.schema import StudyTables, rows_of

define(message=Column("finding", fmt.words), value=Column(""))


@view("audit", "Findings", "severity message", "cells found expected")
def findings(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the audit's errors and warnings, merged by message."""
    rows = []
    for severity in ("error", "warning"):
        name = SEVERITIES[severity]
        own = study.audit[study.audit["severity"] == severity]
        for message, same in own.groupby("message", sort=False):
            first = fmt.distinguishable(same["found"].iloc[0], same["expected"].iloc[0])
            places = [
                "whole study" if pd.isna(row.gpus) else fmt.cell_name(row) for row in rows_of(same)
            ]
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            figures = dict(zip(("found", "expected"), first, strict=True))
            rows.append({"severity": name, "message": message, "cells": places[0] + more} | figures)
    return pd.DataFrame(rows)
