"""What was run on what: the facts at the head of the report, and its last section."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, TableCell, head, make_table, status, text
from scaling.tables.schema import StudyTables
from scaling.tables.timing import TIMED

# What differs between two runs of one environment.
OF_A_RUN = [
    *("recipe", "strategy", "gpus", "batch_size", "seed", "status", "measured_as"),
    *(
        "compiled_batch_sizes",
        "device_ids",
        "slurm_job_id",
        "slurm_gpus",
        "config_digest",
        "started",
        "ended",
    ),
]
DIGEST_CHARACTERS = 12


def facts(tables: StudyTables) -> list[tuple[str, str]]:
    """(what, value) pairs for the head of the report, from provenance, grid and manifest."""
    runs = _recorded(tables)
    devices = _distinct(runs, "device_names")
    if tables.on_cpu:
        devices = "none: CPU only"
    pairs = [
        ("Dataset", _dataset(tables.manifest)),
        ("Model", _models(runs)),
        ("Training", _per_recipe(runs, "training")),
        ("Recipe options", _per_recipe(runs, "recipe_options")),
        ("Grid", _grid(tables)),
        ("GPUs", devices),
        ("CPU", _distinct(runs, "cpu")),
        ("Machine", _distinct(runs, "hosts")),
        ("Software", _software(runs)),
        ("Run", _period(runs)),
        ("Commit", ", ".join(dict.fromkeys(map(_commit, _values(runs, "commit"))))),
    ]
    return [(what, value or "not recorded") for what, value in pairs]


def cpu_threads(tables: StudyTables) -> str:
    """The threads of each training process, "" where no run recorded them."""
    return _distinct(_recorded(tables), "cpu_threads")


def provenance(tables: StudyTables) -> dict[str, Any]:
    """A column for each distinct environment, and a row for each run that names its environment."""
    runs = _recorded(tables)
    kept = [column for column in runs.columns if column not in OF_A_RUN]
    environments = [rows for _, rows in runs.groupby(kept, sort=False)] if len(runs) else []
    numbers = {
        index: number for number, rows in enumerate(environments, start=1) for index in rows.index
    }
    slurm = SLURM if _values(runs, "slurm_job_id") else []
    numbered = tables.provenance.assign(environment=tables.provenance.index.map(numbers))
    return {
        "environments": _environments(environments, kept),
        "runs": make_table(
            "Runs",
            numbered,
            [*RUN, *slurm, CONFIG_DIGEST],
            instead=lambda row: status(row.status) if row.status == "missing" else None,
        ),
    }


def _environments(environments: list[pd.DataFrame], kept: list[str]) -> Table:
    """A row for each property that one has, a column for each; what all share is said once."""
    names = [f"E{number}" for number in range(1, len(environments) + 1)]
    rows = []
    for column in kept:
        values = [str(runs[column].iloc[0]) for runs in environments]
        if column == "commit":
            values = [_commit(value) for value in values]
        if any(values):
            rows.append([head(column.replace("_", " ")), *_across(values)])
    return Table(
        title="Environments of the grid’s runs",
        columns=["property", *names],
        rows=[
            [head("runs"), *(text(f"{len(runs):,}") for runs in environments)],
            [head("first start to last end"), *_across([_period(runs) for runs in environments])],
            *rows,
        ],
        text_columns=frozenset(names),
    )


def _across(values: list[str]) -> list[TableCell]:
    """An entry for each value, one for all where they are the same."""
    if len(set(values)) == 1:
        return [TableCell(values[0] or "–", kind="text", columns=len(values))]
    return [text(value or "–") for value in values]


def _recorded(tables: StudyTables) -> pd.DataFrame:
    return tables.provenance[tables.provenance["status"] != "missing"]


def _dataset(manifest: dict[str, Any]) -> str:
    classes = manifest["classes"]
    return (
        f"{manifest['source']} ({manifest['origin']}): {manifest['train_images']:,} training and "
        f"{manifest['test_images']:,} test images, {len(classes)} classes; "
        f"SHA-256 {manifest['checksum'][:DIGEST_CHARACTERS]}…"
    )


def _grid(tables: StudyTables) -> str:
    timing = tables.timing
    seeds = tables.provenance["seed"].nunique()
    batches = ", ".join(f"{int(size)}" for size in sorted(timing["batch_size"].unique()))
    counts = ", ".join(f"{int(count)}" for count in sorted(timing["gpus"].unique()))
    return (
        f"recipes {', '.join(timing['recipe'].unique())}; strategies "
        f"{', '.join(timing['strategy'].unique())}; GPUs {counts}; batch sizes per GPU {batches}; "
        f"{fmt.plural(seeds, 'seed')}"
    )


def _per_recipe(runs: pd.DataFrame, column: str) -> str:
    """The distinct values for each recipe, from its runs with a time where it has some.

    A value that all recipes share is said once, without their names.
    """
    said: dict[str, str] = {}
    for recipe, rows in runs.groupby("recipe", sort=False):
        timed = rows[rows["status"].isin(TIMED)]
        said[str(recipe)] = " or ".join(_values(timed if len(timed) else rows, column))
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{recipe}: {value or 'none'}" for recipe, value in said.items())


def _software(runs: pd.DataFrame) -> str:
    names = {"torch": "torch", "cuda": "CUDA", "nccl": "NCCL", "driver": "driver"}
    return ", ".join(
        f"{name} {_distinct(runs, column)}"
        for column, name in names.items()
        if _values(runs, column)
    )


def _values(runs: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column that has some, in order."""
    return [value for value in runs[column].unique() if value] if column in runs else []


def _distinct(runs: pd.DataFrame, column: str) -> str:
    return "; ".join(_values(runs, column))


def _models(runs: pd.DataFrame) -> str:
    """The models, without those that a run that ended early only began to describe."""
    models = _values(runs, "model")
    return "; ".join(
        model for model in models if not any(other.startswith(f"{model}, ") for other in models)
    )


def _commit(commit: str) -> str:
    """The first characters of a commit, with the mark of a changed checkout."""
    name, changes, _ = commit.partition("+changes")
    short = name[:DIGEST_CHARACTERS] or "–"
    return f"{short} with uncommitted changes" if changes else short


def _period(runs: pd.DataFrame) -> str:
    """From the first start to the last end."""
    started, ended = _values(runs, "started"), _values(runs, "ended")
    if not started:
        return ""
    first, last = _time(min(started)), _time(max(ended or started))
    return first if first == last else f"{first} to {last}"


def _time(stamp: str) -> str:
    """An ISO time to the minute: `2025-11-20 09:00 UTC`."""
    if not stamp:
        return "–"
    zone = " UTC" if stamp.endswith(("+00:00", "Z")) else stamp[19:]
    return stamp[:16].replace("T", " ") + zone


RUN = [
    Column("run", lambda row: f"{fmt.cell_name(row)}, seed {int(row.seed)}", kind="head"),
    Column(
        "status",
        "status",
        kind="text",
        instead=lambda row: None if row.status == "ok" else status(row.status),
    ),
    Column("environment", "environment", lambda number: f"E{int(number)}", "text"),
    Column("started", "started", _time, "text"),
    Column("ended", "ended", _time, "text"),
]
SLURM = [
    Column("Slurm job", "slurm_job_id", lambda job: job or "–", "text"),
    Column("Slurm GPUs", "slurm_gpus", lambda gpus: gpus or "–", "text"),
]
CONFIG_DIGEST = Column(
    "config digest", "config_digest", lambda digest: digest[:DIGEST_CHARACTERS] or "–", "text"
)
