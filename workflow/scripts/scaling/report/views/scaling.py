"""Tables of the page: scaling and accuracy (Q1 to Q4), peaks of the machine, warnings."""

from operator import attrgetter
from typing import Any

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label
from scaling.core.grid import CELL_KEYS
from scaling.core.numbers import data, gpus, percent, significant, words
from scaling.report.planning import LAB, how_many_gpus
from scaling.report.quantities import define, printed, view, whole
from scaling.report.table import Column, fill
from scaling.tables.schema import StudyTables, rows_of

CELL = "configuration gpus batch_size"
ON = "configuration_on"
BY_BATCH: Any = {"across": "batch_size", "heading": str}
define(
    technique=Column("technique", words, attrgetter("options"), "remedy"),
    technique_accuracy=Column(
        "",
        percent,
        lambda row: f"rate {significant(row.learning_rate)}",
        "test_accuracy",
        flags={
            "diverged": attrgetter("diverged_seeds"),
            "at an end of its rates": attrgetter("at_edge"),
        },
    ),
)


def quotient(cells: pd.DataFrame) -> Markup | str:
    """Return the note of Table 1: its formula for the best cell, and why ratios are missing."""
    text = Markup("")
    shares = cells["training_speedup"] / cells["gpus"]
    best = shares[(cells["gpus"] > 1) & (shares <= 1)].nlargest(1).index
    for many in rows_of(cells.loc[best]):
        alone = cells[(cells["gpus"] == 1) & (cells["recipe"] == many.recipe)]
        for one in rows_of(alone[alone["batch_size"] == many.batch_size].head(1)):
            seconds = (printed(row, "training_seconds") for row in (one, many))
            ratio = printed(many, "training_speedup")
            text += fill("{} s / {} s = {}, {}. ", *seconds, ratio, label(many))
    return text + noted(cells)


def noted(cells: pd.DataFrame) -> Markup:
    """Return the names of cells without a ratio, and the reasons."""
    notes = cells[cells["note"].fillna("") != ""].groupby("note", sort=False)
    texts = (fill("{}: {}. ", ", ".join(map(label, rows_of(rows))), str(of)) for of, rows in notes)
    return Markup("").join(texts)


def sum_of_parts(cells: pd.DataFrame) -> Markup | str:
    """Return the note of Table 2: what its values are, and their sum for the longest delay."""
    for row in rows_of(cells.nlargest(1, "delay_seconds")):
        names = ("training_seconds", "computing_seconds", "exchange_seconds")
        return fill(
            "{} s of training = {} + {} s, {}. Communication is the training time with the "
            "gradient exchange minus that without it; of DataParallel, the time in which only "
            "messages run. Computing includes gaps in which the GPU waits for the processor.",
            *(printed(row, name, significant) for name in names),
            label(row),
        )
    return ""


def rule(rows: pd.DataFrame) -> str:
    """Return the note of `how_many_gpus`: what its columns compare, how rows are extrapolated."""
    text = "Speedup is weak scaling. “Pays from”: the shortest training that these GPUs finish "
    text += "first, start-up included, against one GPU with the same global batch."
    if rows["guess"].eq(True).any():
        text += " Extrapolated rows have twice the measured GPUs at the same efficiency and cost."
    return text


def rate(cells: pd.DataFrame) -> Markup | str:
    """Return the note of Table 3: its formula for the cell with the largest share of the peak."""
    for row in rows_of(cells[cells["utilization"] <= 1].nlargest(1, "utilization")):
        n, sent = int(row.gpus), data(row.bytes_per_iteration)
        if row.strategy == "ddp":  # An all-reduce in a ring.
            sent = f"2 · ({n} − 1) / {n} · {data(row.bytes_per_iteration * n / (2 * (n - 1)))}"
        names = ("iterations", "messages_seconds", "bandwidth_gb_per_s")
        terms = (printed(row, name) for name in names)
        return fill(
            "{} · {} steps / {} s = {} GB/s, {}.",
            *(sent, *terms, label(row)),
        )
    return ""


view(
    "gpus",
    "Seconds, GPU-seconds and kJ of one epoch",
    CELL,
    "epoch_seconds speedup fixed_global_batch_speedup job_seconds break_even gpu_seconds"
    " epoch_joules money_per_epoch startup_seconds",
    note=rule,
    how_many_gpus=how_many_gpus,
)
view(
    "Q1",
    "One epoch on one GPU: training time (batches already in memory), and with data loading",
    "batch_size",
    "training_seconds epoch_seconds loading_share",
    across="recipe",
    epoch_time=lambda study, cells: cells[cells["gpus"] == cells["gpus"].min()],
)
view(
    "Q2",
    "Table 1. Training time T(N, b) of an epoch in seconds, without data loading; "
    "speedup T(1, b) / T(N, b)",
    ON,
    "training_seconds training_speedup",
    note=quotient,
    training=lambda study, cells: cells.dropna(subset="training_seconds"),
    **BY_BATCH,
)
view(
    "Q2",
    "Table 1 with data loading: seconds of an epoch and speedup",
    ON,
    "epoch_seconds speedup",
    note=noted,
    speedup=lambda study, cells: cells,
    **BY_BATCH,
)


@view(
    "Q3.1",
    "Table 2. Computing and communication, seconds of an epoch's training",
    ON,
    "computing_seconds exchange_seconds",
    note=sum_of_parts,
    **BY_BATCH,
)
def compute_and_communication(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return communication.csv with exchange (delay, else exposed messages) and computing, in s."""
    found = study.communication
    for end in ("", "_low", "_high"):
        exchange = found[f"delay_seconds{end}"].fillna(found[f"exposed_seconds{end}"])
        found = found.assign(**{f"exchange_seconds{end}": exchange})
    rest = found["training_seconds"] - found["exchange_seconds"]
    return found.assign(computing_seconds=found["compute_seconds"].fillna(rest))


view(
    "Q3.1",
    "Three measures of communication, seconds of an epoch",
    CELL,
    "delay_seconds exposed_seconds messages_seconds",
    communication=lambda study, cells: study.communication,
)
view(
    "Q3.1",
    "Where an epoch goes",
    CELL,
    "flops_per_second_per_gpu utilization slower_share exposed_share waiting_share loading_share"
    " idle_besides_share idle_share unknown_share power_capped_share joules_per_image"
    " money_per_epoch",
    epoch_parts=lambda study, cells: cells[cells["status"] == "ok"],
)
view(
    "Q3.2",
    "Table 3. Bandwidth of gradients, GB/s: bytes of an epoch / seconds of its messages",
    ON,
    "bandwidth_gb_per_s link_utilization",
    note=rate,
    bandwidth_by_batch=lambda study, cells: study.bandwidth.dropna(subset="bandwidth_gb_per_s"),
    **BY_BATCH,
)
view(
    "Q3.2",
    "All-reduce by message size",
    "message_bytes message_kind",
    "message_seconds seconds_p99 start_skew_seconds algbw_gb_per_s busbw_gb_per_s",
    across="gpus",
    heading=gpus,
    interconnect=lambda study, cells: study.interconnect,
)


@view(
    "Q4",
    "Q4.1. The reference and the largest batch, at the lab's learning rate",
    "configuration gpus batch_size",
    "epoch train_loss train_accuracy test_accuracy",
)
def large_batch(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the reference and the largest global batch of recipe `LAB` or, without it, of all."""
    known = cells.dropna(subset="epoch")
    known = known[known["status"] == "ok"].assign(whole=known["gpus"] * known["batch_size"])
    known = known[known["recipe"].eq(LAB) | (LAB not in set(known["recipe"]))]
    # DataParallel's before DistributedDataParallel's.
    known = known.sort_values(["whole", "strategy"], ascending=[True, False])
    largest = known.drop_duplicates("recipe", keep="last")
    found = pd.concat([known[known["reference"].eq(True)], largest]).drop_duplicates(CELL_KEYS)
    return found.sort_values(["recipe", "whole"]) if len(found) > 1 else found.iloc[:0]


view(
    "Q4",
    "Accuracy of every configuration after as many epochs, at the lab's learning rate",
    CELL,
    "epoch train_loss train_accuracy test_accuracy",
    accuracy=lambda study, cells: cells.dropna(subset="test_accuracy"),
)
view(
    "Q4",
    "Techniques by global batch: test accuracy after the same number of epochs",
    "technique",
    "technique_accuracy",
    across="global_batch",
    heading=whole,
    techniques=lambda study, cells: study.remedies,
)
view(
    "Q4",
    "Trainings to an accuracy, run to their end",
    "trained_on",
    "trained_epochs reached trained_accuracy to_accuracy_seconds trained_run_seconds"
    " training_joules to_accuracy_speedup",
    trained_to_accuracy=lambda study, cells: study.trained_to_accuracy,
)


@view("limits", "What the machine reaches", "quantity precision size", "rate")
def peaks(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    found = study.peaks
    found = found[(found["quantity"] != "gpu_to_gpu_copy") | found["peak"]]
    sizes = found["matrix_size"].map("{:g}".format).where(found["matrix_size"] > 0)
    sizes = sizes.fillna(found["copy_bytes"].map(data))
    return found.assign(size=sizes + found["state"].map({"sustained": ", sustained"}).fillna(""))


view("limits", "Warnings", CELL, "message found expected", findings=lambda study, _: study.audit)
