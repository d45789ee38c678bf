"""Tables on scaling and accuracy (Q1 to Q4), peak rates of the machine, and warnings."""

from operator import attrgetter

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label, measured, of_grid, on_several_gpus
from scaling.claims.scaling import PARTS
from scaling.core.grid import CELL_KEYS
from scaling.core.numbers import data, percent, significant, whole_span, words
from scaling.registry.strategy import DP
from scaling.report.planning import LAB, changes, how_many_gpus
from scaling.report.quantities import define, whole
from scaling.report.table import Column, View, fill, merged, over_machines, printed
from scaling.tables.epoch_parts import exchange
from scaling.tables.schema import StudyTables, by_configuration, rows_of

MESSAGES = ["exposed_share", "waiting_share", "message_waits"]
WAITS = "Exposed messages include waits."
CELL = "configuration gpus batch_size"
ON = "configuration_on"
define(
    kernels=Column(
        "",
        detail=lambda row: "" if pd.isna(row.reached) else percent(row.reached),
        name="kernel_class",
        text=lambda row: significant(1e3 * row.seconds),
    ),
    technique=Column("technique", words, attrgetter("options"), "remedy"),
    technique_accuracy=Column(
        "",
        detail=lambda row: f"rate {significant(row.learning_rate)}",
        name="test_accuracy",
        text=lambda row: percent(row.test_accuracy),
        flags={
            "diverged: {0.diverged_seeds:.0f} of {0.seeds:.0f}": attrgetter("diverged_seeds"),
            "at an end of its rates": attrgetter("at_edge"),
        },
    ),
)


def noted(cells: pd.DataFrame) -> Markup:
    """Return each note on a ratio, with the names of the configurations that have this note."""
    notes = cells[cells["note"].fillna("") != ""].groupby("note", sort=False)
    texts = (fill("{}: {}. ", ", ".join(map(label, rows_of(rows))), str(of)) for of, rows in notes)
    return Markup("").join(texts)


def in_grid(rows: pd.DataFrame, cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the `rows` whose batch size was also measured on the smallest number of GPUs.

    The result is empty if `column` has no values. Speedups on one GPU (always 1) become NaN.
    """
    ratios = rows.columns.intersection(["speedup", "training_speedup"])
    shown = of_grid(rows.assign(**rows[ratios].where(rows["gpus"] > 1)), cells)
    return shown if rows[column].notna().any() else shown.iloc[:0]


def sum_of_parts(cells: pd.DataFrame) -> Markup:
    """Return the note of Table 2: how the times of the row with the most communication add up."""
    undelayed = cells[cells["exchange_seconds"].notna() & cells["delay_seconds"].isna()]
    other = ", ".join(by_configuration(undelayed))
    order = ["delay_seconds", "exchange_seconds"]
    row = next(rows_of(cells.sort_values(order, ascending=False)))
    names = ("training_seconds", "computing_seconds", "exchange_seconds")
    text = fill(
        "{}: {} s of training = {} s computing + {} s communication. Communication is the "
        "training time with the gradient exchange minus that without it{}. Computing "
        "includes gaps in which the GPU waits for the processor.",
        label(row),
        *(printed(row, name) for name in names),
        other and f" (for {other}: exposed messages)",
    )
    if pd.notna(row.waiting_share):
        text += fill(
            " Its trace shows messages{} without computing for {} of the epoch, some while"
            " the GPU would idle anyway.",
            ", waits included," * bool(row.message_waits),
            printed(row, "exposed_share"),
        )
    return text


RULES = {
    "speedup": "Speedup: weak scaling (same b).",
    "fixed_global_batch_speedup": "Strong speedup: same global batch.",
    "break_even_min": "“Pays from”: the shortest training that these GPUs finish before one GPU "
    "with the same global batch, start-up included (range over machines, as runs found more or "
    "less of their code compiled).",
    "other_seconds": "Start-up is of runs that compiled no code, as far as recorded, of each row’s "
    "machines; “compiling”: of runs that compiled some.",
    "run_seconds": "A whole run includes start-up and evaluation. It compiled no code, as far as "
    "recorded.",
}
"""Notes of table `how-many-gpus` by the column that they explain."""


def rules(rows: pd.DataFrame) -> str:
    """Return the notes (`RULES`) of the columns of `rows` that have a value, as one text."""
    return " ".join(text for name, text in RULES.items() if rows[name].notna().any())


def rate(cells: pd.DataFrame) -> Markup:
    """Return Table 3's note: a formula for the largest bandwidth share, and why it may exceed 1."""
    row = next(rows_of(cells.sort_values("utilization", ascending=False, kind="stable")))
    n, sent = int(row.gpus), data(row.bytes_per_iteration)
    if row.strategy == "ddp":  # An all-reduce in a ring.
        sent = f"2 · ({n} − 1) / {n} · {data(row.bytes_per_iteration * n / (2 * (n - 1)))}"
    names = ("iterations", "messages_seconds", "bandwidth_gb_per_s")
    terms = (printed(row, name) for name in names)
    text = fill("{} · {} steps / {} s = {} GB/s, {}.", sent, *terms, label(row))
    if (cells["strategy"] == DP.name).any():
        text += fill(" {} also sends weights.", DP.name)
    if pd.notna(row.utilization):
        text += " Share: of the bandwidth of the same messages sent alone."
    if row.utilization > 1:
        text += " Above 100 %: in training, messages follow one another without a pause, or "
        text += "messages alone were slower at that moment."
    return text


def compute_and_communication(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return communication.csv with `exchange_seconds` and `computing_seconds`, in the grid."""
    about = cells[[*CELL_KEYS, *MESSAGES]]
    found = exchange(study.communication).merge(about, "left", CELL_KEYS)
    found = in_grid(found, cells, "exchange_seconds")
    rest = found["training_seconds"] - found["exchange_seconds"]
    return found.assign(computing_seconds=found["compute_seconds"].fillna(rest))


def large_batch(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return two rows of each recipe: the reference, and the largest batch on the most GPUs.

    If the study has the recipe `LAB`, the other recipes are left out.
    """
    known = measured(cells, "epoch").assign(whole=cells["gpus"] * cells["batch_size"])
    known = known[known["recipe"].eq(LAB) | (LAB not in set(known["recipe"]))]
    # The last is the one that the answer names. DataParallel's before DistributedDataParallel's.
    known = known.sort_values(["gpus", "whole", "strategy"], ascending=[True, True, False])
    largest = known.drop_duplicates("recipe", keep="last")
    found = pd.concat([known[known["reference"].eq(True)], largest]).drop_duplicates(CELL_KEYS)
    return found.sort_index() if len(found) > 1 else found.iloc[:0]


TRAINING = "Training: without data loading, on batches in memory; another measurement than epochs."
NOTE = "{} seeds, {} epochs. Diverged: loss not finite, which means leave out, or at chance."
TABLES = {
    "gpus": [
        View(
            "how-many-gpus",
            "Seconds, GPU-seconds and kJ of one epoch",
            CELL,
            "epoch_seconds speedup fixed_global_batch_speedup reached job_seconds break_even"
            " gpu_seconds epoch_joules money_per_epoch other_seconds",
            how_many_gpus,
            note=rules,
        )
    ],
    "Q1": [
        View(
            "epoch-time",
            "One epoch on one GPU, seconds",
            "configuration batch_size",
            "training_seconds epoch_seconds loading_percent",
            lambda _, cells: on_several_gpus(cells).query(f"gpus == {cells['gpus'].min()}"),
            note=lambda cells: TRAINING * bool(cells["training_seconds"].notna().any()),
        ),
        View(
            "changes",
            f"Speedup of each recipe over the one before, from {LAB}, on one GPU",
            "recipe",
            "factor",
            lambda study, _: changes(study),
            across="batch_size",
            note=lambda _: "Of machines that ran both recipes: median, lowest to highest.",
        ),
    ],
    "Q2": [
        View(
            "training",
            "Table 1. Training time T(N, b) of an epoch in seconds, without data loading; "
            "speedup T(1, b) / T(N, b)",
            ON,
            "training_seconds training_speedup",
            lambda _, cells: in_grid(on_several_gpus(cells), cells, "training_seconds"),
            across="batch_size",
            note=noted,
        ),
        View(
            "speedup",
            "Table 1 with data loading: seconds of an epoch and speedup",
            ON,
            "epoch_seconds speedup",
            lambda _, cells: in_grid(on_several_gpus(cells), cells, "epoch_seconds"),
            across="batch_size",
            note=lambda cells: noted(cells[cells["training_seconds"].isna()]),
        ),
    ],
    "Q3.1": [
        View(
            "compute-and-communication",
            "Table 2. Computing and communication, seconds of an epoch's training",
            ON,
            "computing_seconds exchange_seconds",
            compute_and_communication,
            across="batch_size",
            note=sum_of_parts,
        ),
    ],
    "Q3.2": [
        View(
            "bandwidth-by-batch",
            "Table 3. Bandwidth of gradients, GB/s: bytes of an epoch / seconds of its messages",
            ON,
            "bandwidth_gb_per_s link_utilization",
            lambda study, cells: in_grid(study.bandwidth, cells, "bandwidth_gb_per_s"),
            across="batch_size",
            note=rate,
        ),
        View(
            "interconnect",
            "Messages sent alone, by size",
            "gpus message_bytes message_kind",
            "message_seconds seconds_p99 start_skew_seconds algbw_gb_per_s busbw_gb_per_s",
            lambda study, _: over_machines(study.interconnect, "gpus kind message_bytes"),
            note=merged("Times and bandwidths"),
        ),
    ],
    "Q4": [
        View(
            "large-batch",
            "Q4.1. The reference, and the largest batch on the most GPUs, at the recipe's rate",
            CELL,
            "epoch train_loss train_accuracy test_accuracy",
            large_batch,
        ),
        View(
            "techniques",
            "Techniques by global batch: test accuracy after the same number of epochs",
            "technique",
            "technique_accuracy",
            lambda study, _: study.remedies,
            across="global_batch",
            heading=whole,
            note=lambda of: (
                NOTE.format(*map(whole_span, (of["seeds"], of["planned_epochs"])))
                * bool(of["seeds"].any())
            ),
        ),
    ],
    "where": [
        View(
            "epoch-parts",
            "Where an epoch goes",
            CELL,
            f"flops_per_second_per_gpu {' '.join(PARTS)} idle_share power_capped_share"
            " money_per_epoch rank_step_seconds",
            lambda _, cells: cells[cells["status"] == "ok"],
            note=lambda cells: WAITS * bool(cells["message_waits"].eq(True).any()),
        ),
        View(
            "kernels",
            "Kernels of a step, ms, and what they reach of their limit: the measured peak of "
            "products, the bandwidth of copies",
            CELL,
            "kernels",
            lambda study, _: study.step_classes,
            across="kernel_class",
            heading=lambda name: name.replace("communication", "messages, waits for ranks"),
        ),
    ],
    "cells": [
        View(
            "every-configuration",
            "Every configuration",
            "page",
            "epoch_seconds images_per_second test_accuracy peak_memory_bytes joules_per_image",
            lambda _, cells: cells,
        )
    ],
    "limits": [
        View(
            "peaks",
            "What the machine reaches",
            "quantity precision state",
            "rate",
            lambda study, _: over_machines(study.peaks.query("peak"), "quantity precision state"),
            note=merged("Rates"),
        ),
        View("findings", "Warnings", CELL, "message", lambda study, _: study.audit),
    ],
}
"""Tables of each part of the page, in order."""
