"""A study that the audit finds nothing in, and studies made like it."""

from examples.records import GRADIENT_BYTES, sweep, timing_row, timing_table
from scaling.audit.limits import audit
from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.limits import interconnect
from scaling.tables.speedup import speedup

# 44,695,848 B in 1 ms on 2 GPUs: a peak of 44.7 GB/s
SWEEP = interconnect([sweep(("bucket", GRADIENT_BYTES, 1e-3), gpus=2)])


def study_of(*rows):
    """The study whose timing table has these rows, everything else derived from it."""
    timing = timing_table(*rows)
    parts = communication(timing)
    rates = bandwidth(timing, parts, SWEEP, GRADIENT_BYTES, schema.frame("costs"))
    ratios = speedup(timing, schema.frame("costs"))
    return but(None, timing=timing, speedup=ratios, communication=parts, bandwidth=rates)


def but(study, **tables):
    """The study with other tables."""
    return schema.StudyTables("demo", (study.found if study else {}) | tables, "", {})


# An iteration communicates for 4 ms: T(2,128) = 18/2 + 196 · 4 ms, T(2,512) = 17/2 + 49 · 4 ms.
# Loading takes 0.2 s on one GPU and 0.1 s on two, so both estimates agree.
TIMED = [
    timing_row(1, 128, 18.0, loader_seconds=0.2),
    timing_row(1, 512, 17.0, loader_seconds=0.2),
    timing_row(2, 128, 9.784, loader_seconds=0.1),
    timing_row(2, 512, 8.696, loader_seconds=0.1),
]
CLEAN = study_of(*TIMED, *(timing_row(gpus, 8192, status="oom") for gpus in (1, 2)))


def timed_but(row):
    """The rows of the clean study's times, with `row` in the place of that of its cell."""
    cell = ("gpus", "batch_size")
    return [row if all(row[key] == own[key] for key in cell) else own for own in TIMED]


def changed(table, row, **values):
    """`table` with other values in the row numbered `row`."""
    table = table.copy()
    for column, value in values.items():
        table.loc[row, column] = value
    return table


def only_finding(study):
    table = audit(study)
    assert len(table) == 1, table.to_string()
    return table.iloc[0]
