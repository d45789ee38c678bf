"""Tables on the lab's questions on scaling and accuracy, on the machine, and of the audit."""

import math
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import pandas as pd
from markupsafe import Markup

from scaling.claims.claim import label
from scaling.core.numbers import data, gpus, percent, significant, times, whole_span, words
from scaling.report.cells import fastest, learned
from scaling.report.quantities import JUDGED, count, define, interval, printed, span, view, whole
from scaling.report.table import Column, said
from scaling.tables.schema import StudyTables, by_configuration, on_cpu, rows_of

CELL = "configuration gpus batch_size"
BY_GPUS = "configuration gpus"
BY_BATCH: Any = {"across": "batch_size", "heading": "b = {}".format}
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
    trained_on=Column("GPUs × b", text="{0.gpus} × {0.batch_size}".format, name="gpus"),
    trained_epochs=Column("epochs", whole, name="epochs"),
    reached=Column("reached", text="{0.reached} of {0.seeds}".format),
    trained_accuracy=Column(
        "test accuracy", percent, span("test_accuracy", percent), "test_accuracy"
    ),
    to_accuracy_seconds=Column(
        "seconds", significant, span("training_seconds"), "training_seconds"
    ),
    trained_run_seconds=Column("with start-up", significant, span("run_seconds"), "run_seconds"),
    training_joules=Column("joules", significant, span("joules"), "joules"),
    to_accuracy_speedup=Column("speedup", times, interval("speedup"), "speedup", flags=JUDGED),
    set_epoch=Column("set_epoch", lambda called: "yes" if called else "no"),
    different=Column("different orders of a rank"),
    overlap=Column("images two ranks share"),
    unseen=Column("images left out"),
    way=Column("parallel mode", words),
    phase=Column("when", words),
    kind=Column("kind", words),
    bytes=Column("bytes", count),
    share_of_gradients=Column("of all gradients", lambda share: f"{100 * share:.3g} %"),
    buffers=Column("buffers", words),
    parameters_hash=Column("parameters", itemgetter(slice(8)), name="parameters_sha256"),
    buffers_hash=Column("buffers", itemgetter(slice(8)), name="buffers_sha256"),
    variance_drift_mean=Column("running variances apart", percent),
    variance_drift_max=Column("at most", percent),
    test_accuracy_of_rank=Column("test accuracy", percent, name="test_accuracy"),
)


def quotient(cells: pd.DataFrame) -> Markup | str:
    """Return Table 1's formula with the most efficient cell, and why others have no ratio."""
    text = Markup("")
    beyond = cells[
        (cells["gpus"] > 1) & (cells["efficiency"] <= 1) & (cells["verdict"] == "faster")
    ]
    for many in rows_of(beyond.nlargest(1, "efficiency")):
        alone = cells[(cells["gpus"] == 1) & (cells["recipe"] == many.recipe)]
        for one in rows_of(alone[alone["batch_size"] == many.batch_size].head(1)):
            if many.unit and one.samples != many.samples:  # Of samples a second, not of seconds.
                return ""
            seconds = (printed(row, "epoch_seconds") for row in (one, many))
            text += said("{} s / {} s = {}, {}. ", *seconds, printed(many, "speedup"), label(many))
    noted = cells[cells["note"].fillna("") != ""]
    for note, rows in noted.groupby("note", sort=False):
        text += said("{}: {}. ", ", ".join(map(label, rows_of(rows))), str(note))
    return text


def sum_of_parts(cells: pd.DataFrame) -> Markup | str:
    """Return what Table 2's figures are, with the largest delay."""
    for row in rows_of(cells.nlargest(1, "delay_seconds")):
        names = ("training_seconds", "compute_seconds", "delay_seconds")
        return said(
            "Training time {} s = {} without exchange + {} of delay, {}. The delay holds all that "
            "the exchange does: copies into buckets, kernels that share the GPU with messages, "
            "waits; messages are exposed while nothing else runs on the GPU.",
            *(printed(row, name, significant) for name in names),
            label(row),
        )
    return ""


def rate(cells: pd.DataFrame) -> Markup | str:
    """Return Table 3's formula with the cell whose gradients are the fastest for its links."""
    for row in rows_of(cells[cells["utilization"] <= 1].nlargest(1, "utilization")):
        n, sent = int(row.gpus), data(row.bytes_per_iteration)
        if row.strategy == "ddp":  # An all-reduce in a ring.
            sent = f"2 · ({n} − 1) / {n} · {data(row.bytes_per_iteration * n / (2 * (n - 1)))}"
        names = ("iterations", "messages_seconds", "bandwidth_gb_per_s")
        terms = (printed(row, name) for name in names)
        return said(
            "{} · {} steps / {} s = {} GB/s, {}.",
            *(sent, *terms, label(row)),
        )
    return ""


view(
    "Q1",
    "Epoch time, and training time: batches already in memory",
    "gpus batch_size",
    "epoch_seconds training_seconds loading_share idle_share",
    across="recipe",
    epoch_time=lambda study, cells: cells[cells["gpus"] == cells["gpus"].min()],
)
view(
    "Q2",
    "Table 1: seconds of an epoch T(N, b) on N GPUs, b images each, and of its training alone; "
    "speedup T(1, b) / T(N, b)",
    BY_GPUS,
    "epoch_seconds speedup training_seconds training_speedup",
    note=quotient,
    speedup=lambda study, cells: cells,
    **BY_BATCH,
)


@view(
    "Q2",
    "How many GPUs? An epoch at the fastest b that learns on one",
    CELL,
    "epoch_seconds speedup efficiency gpu_seconds epoch_joules money_per_epoch startup_seconds"
    " fixed_global_batch_speedup",
)
def how_many_gpus(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells on each N of the fastest batch size that learned on one GPU, or is fastest.

    The last row of a configuration is a `guess`: twice the most GPUs at their efficiency and cost,
    unless their speedup is unclear.
    """
    joules = cells["joules_per_image"] * cells["samples"]
    timed = cells.assign(good=learned(cells), epoch_joules=joules, guess=False)
    timed = timed[(timed["status"] == "ok") & timed["speedup"].notna()]
    found = [timed.iloc[:0]]
    for own in by_configuration(timed).values():
        alone = own[own["gpus"] == 1]
        best: Any = fastest(alone[alone["good"]]) or fastest(alone)
        same = own[own["batch_size"] == best.batch_size].sort_values("gpus") if best else alone
        if len(same) < 2 or same["speedup"].iloc[-1] <= 1:
            continue
        split = own[own["gpus"] * own["batch_size"] == best.batch_size].set_index("gpus")
        strong = [f"fixed_global_batch_speedup{end}" for end in ("", "_low", "_high")]
        same = same.assign(**{name: same["gpus"].map(split[name]) for name in strong})
        if on_cpu(study.provenance):  # More processes than cores share them.
            found.append(same)
            continue
        known = [*strong, "startup_seconds", "speedup_low", "epoch_seconds_low"]
        double = same.tail(1).assign(**dict.fromkeys(known, math.nan), guess=True, scope="")
        double[["gpus", "speedup"]] *= 2
        double["epoch_seconds"] /= 2
        found += [same, double] if same["verdict"].iloc[-1] == "faster" else [same]
    return pd.concat(found)


view(
    "Q3.1",
    "Table 2: seconds of an epoch's training: without exchange, and the delay by the exchange; "
    "messages of the trace beside it",
    BY_GPUS,
    "compute_seconds delay_seconds exposed_seconds messages_seconds",
    note=sum_of_parts,
    compute_and_communication=lambda study, cells: study.communication,
    **BY_BATCH,
)
view(
    "Q3.1",
    "Where an epoch goes",
    CELL,
    "flops_per_second_per_gpu utilization slower_share communication_share loading_share"
    " idle_besides_share idle_share unknown_share power_capped_share joules_per_image"
    " money_per_epoch",
    epoch_parts=lambda study, cells: cells[cells["status"] == "ok"],
)
view(
    "Q3.2",
    "Table 3: GB/s while gradients travel: bytes of an epoch over the seconds of its messages",
    BY_GPUS,
    "bandwidth_gb_per_s link_utilization",
    note=rate,
    bandwidth_by_batch=lambda study, cells: study.bandwidth.dropna(subset="bandwidth_gb_per_s"),
    **BY_BATCH,
)
view(
    "Q3.2",
    "What the bandwidths are made of",
    CELL,
    "bytes_per_iteration iterations messages_seconds peak_gb_per_s",
    bandwidth=lambda study, cells: study.bandwidth.dropna(subset="bandwidth_gb_per_s"),
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
view(
    "Q4",
    "Accuracy after equal epochs at the lab's rate",
    CELL,
    "epoch train_loss train_accuracy test_accuracy",
    accuracy=lambda study, cells: cells.dropna(subset="test_accuracy"),
)
view(
    "Q4",
    "Techniques by global batch: test accuracy at equal epochs",
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


@view("Q5", "Orders of images, hashed", "sampler gpus set_epoch", "epoch different overlap unseen")
def sampler(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return what each sampler drew: extremes over ranks, seeds and epochs."""
    keys = ["sampler", "gpus", "set_epoch"]
    of_ranks = study.sampler.groupby([*keys, "trained", "seed", "rank"])
    drawn = study.sampler.assign(different=of_ranks["first_epoch"].transform("nunique"))
    spans = drawn.groupby(keys, sort=False)[["different", "overlap", "unseen"]]
    epochs = drawn.groupby(keys, sort=False)["epoch"].nunique()
    return spans.agg(partial(whole_span, between="–")).assign(epoch=epochs).reset_index()


@view("Q6", "Messages of a step", "way phase kind content", "messages bytes share_of_gradients")
def messages(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the messages of the last recorded step, by mode and content."""
    known = study.collectives
    last = known[known["step"] == known.groupby("way")["step"].transform("max")]
    groups = last.groupby(["way", "phase", "kind", "content"], sort=False)
    found = groups.agg(messages=("bytes", "size"), bytes=("bytes", "sum")).reset_index()
    return found.assign(share_of_gradients=found["bytes"] / known["gradient_bytes"].max())


view(
    "Q7",
    "Ranks after the last epoch: hashes are alike where the values are, bit for bit",
    "buffers seed rank",
    "parameters_hash buffers_hash variance_drift_mean variance_drift_max test_accuracy_of_rank",
    buffers=lambda study, cells: study.buffers,
)


@view("limits", "What the machine reaches", "quantity precision size", "rate")
def peaks(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    found = study.peaks
    found = found[(found["quantity"] != "gpu_to_gpu_copy") | found["peak"]]
    sizes = found["matrix_size"].map("{:g}".format).where(found["matrix_size"] > 0)
    sizes = sizes.fillna(found["copy_bytes"].map(data))
    return found.assign(size=sizes + found["state"].map({"sustained": ", sustained"}).fillna(""))


view("limits", "Warnings", CELL, "message found expected", findings=lambda study, _: study.audit)
