"""Tables on the records: what the audit found, and the environments of runs."""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.frames import SEVERITIES
from scaling.report.quantities import define, view
from scaling.report.table import Column
from scaling.tables.schema import StudyTables, rows_of

OF_A_RUN = [
    *("recipe", "strategy", "gpus", "batch_size", "seed", "status", "measured_as", "training"),
    *("recipe_options", "compiled_batch_sizes", "cpu_threads", "device_ids", "slurm_job_id"),
    *("slurm_gpus", "config_digest", "started", "ended", "repeat"),
]
"""Columns of provenance.csv that differ between runs of one environment."""

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


@view("provenance", "Environments of the runs", "property", "value", across="environment")
def environments(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each known property of an environment, and each environment."""
    runs = study.provenance[study.provenance["status"] != "missing"]
    kept = [str(column) for column in runs if column not in OF_A_RUN]
    rows = []
    for number, (_, same) in enumerate(runs.groupby(kept, sort=False), start=1):
        first = same.iloc[0]
        facts = {"runs": str(len(same)), "first start": same["started"].min()}
        facts |= {column: str(first[column]) for column in kept if first[column]}
        rows += [
            {"environment": f"E{number}", "property": name.replace("_", " "), "value": value[:60]}
            for name, value in facts.items()
        ]
    return pd.DataFrame(rows)
