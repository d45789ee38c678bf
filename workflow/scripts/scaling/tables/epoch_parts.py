"""Make tables of parts of an epoch (communication, bandwidth, utilization), and of warnings."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.records.run import RunRecord
from scaling.core.statistics import margin
from scaling.registry.engine import COMMAND, ENGINES
from scaling.registry.strategy import DP, STRATEGIES
from scaling.tables import schema
from scaling.tables.measurements import ALONE, GB
from scaling.tables.noise import of_one_code
from scaling.tables.schema import StudyTables, interval
from scaling.tables.timing import Run

EXCHANGE = ["delay_share", "exposed_seconds", "messages_seconds"]
PEAKS = ["peak_flops_per_second", "peak_bytes_per_second"]


def communication(tables: StudyTables, runs: list[Run]) -> pd.DataFrame:
    """Return the seconds per epoch of the gradient exchange, for configurations on several GPUs.

    `delay_seconds` is the training time with exchange minus that without (`compute_seconds`). In
    traced steps, messages run during `messages_seconds`, of which `exposed_seconds` are without
    other kernels. Values are means over runs, with 95 % intervals. Delays are averaged as fractions
    of the training time, because machines differ.
    """
    rows = [asdict(cell) | _exchange(record) for cell, record in runs if record and cell.gpus > 1]
    steps = pd.DataFrame(rows, columns=[*CELL_KEYS, *EXCHANGE])
    cells = steps.astype(dict.fromkeys(EXCHANGE, float)).groupby(CELL_KEYS)
    mean, off = cells.mean(), margin([cells.std()], [cells.count()])
    found = mean.join([(mean - off).add_suffix("_low"), (mean + off).add_suffix("_high")])
    table = tables.timing.query("gpus > 1").merge(found.reset_index(), "left", CELL_KEYS)
    for name in found.columns:
        of = "training_seconds" if name.startswith("delay") else "iterations"
        table[name.replace("share", "seconds")] = table[name] * table[of]
    table["compute_seconds"] = table["training_seconds"] - table["delay_seconds"]
    return schema.arrange("communication", table)


def exchange(table: pd.DataFrame) -> pd.DataFrame:
    """Return communication.csv with `exchange_seconds` and `exchange_share` (of the training time).

    `exchange_seconds` is `delay_seconds` or, if unknown, `exposed_seconds`.
    """
    names = interval("exchange_seconds")
    kinds = ("delay_seconds", "exposed_seconds")
    delay, exposed = (table[interval(name)].set_axis(names, axis=1) for name in kinds)
    table = table.join(delay.where(table["delay_seconds"].notna(), exposed))
    return table.assign(exchange_share=table["exchange_seconds"] / table["training_seconds"])


def _exchange(record: RunRecord) -> dict[str, float]:
    """Return, per iteration, those of the quantities `EXCHANGE` that were measured.

    `delay_share` is a fraction of the slowest rank's step. Seconds are minima over ranks, because
    the rank with the minimum waits least for others.
    """
    values = {}

    def each(ranks: Any, name: str) -> Any:
        return np.array([rank[name] for rank in ranks]) / ranks[0]["iterations"]

    timed = [rank for rank in record["in_memory"] if rank[ALONE]]
    if timed and all(rank["iterations"] for rank in timed):
        step, alone = (np.median(each(timed, name).max(axis=0)) for name in ("seconds", ALONE))
        values["delay_share"] = 1 - alone / step
    traced = [one for one in record["communication"]["readings"] if one["estimate"] == "profiler"]
    if traced and all(rank["iterations"] for rank in traced):
        values["exposed_seconds"] = each(traced, "exposed_seconds").min()
        values["messages_seconds"] = each(traced, "communication_seconds").min()
    return values


def of_machines(tables: StudyTables) -> pd.DataFrame:
    """Return each pair of a configuration and a machine that timed it: `CELL_KEYS`, `machine`."""
    ran = tables.provenance[tables.provenance["epoch_seconds"].notna()]
    return ran[[*CELL_KEYS, "machine"]].drop_duplicates()


def _link(row: Any, interconnect: pd.DataFrame) -> tuple[float, float]:
    """Return the number of bytes per iteration on the busiest link, and a bandwidth in GB/s.

    The bandwidth is of messages sent without training, in sweeps (`interconnect`) on the machines
    of `row`. They have the strategy's `sweep_kinds` or, if there are none, are all-reduces of the
    sizes `row.message_bytes`. The bandwidth is NaN if any is missing or had wrong results.
    """
    strategy = STRATEGIES.find(row.strategy)
    whole = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"].max()
    sent = strategy.busiest_bytes(row.gpus, whole * row.sent_share)
    swept = interconnect[interconnect["gpus"] == row.gpus]
    swept = swept[swept["machine"].isin(row.machine.split())]
    seconds = swept["seconds"].where(swept["correct"])
    swept = swept.assign(seconds=seconds, moved=swept["busbw_gb_per_s"] * seconds)
    rows = swept[swept["kind"].isin(strategy.sweep_kinds)]
    if not strategy.sweep_kinds:
        reduced = swept[~swept["kind"].isin(DP.sweep_kinds)].groupby("message_bytes")
        means = reduced[["moved", "seconds"]].mean(skipna=False)
        rows = means.reindex(map(int, row.message_bytes.split()))
    return sent, rows["moved"].mean(skipna=False) / rows["seconds"].mean(skipna=False)


def bandwidth(tables: StudyTables) -> pd.DataFrame:
    """Return bandwidths (GB/s) of messages in training and without (`peak_…`), and their ratio.

    The bandwidth in training is the number of bytes on the busiest link / seconds of messages.
    """
    table = tables.timing.loc[tables.timing["gpus"] > 1, [*CELL_KEYS, "status", "iterations"]]
    costs = tables.costs[[*CELL_KEYS, "sent_share", "message_bytes", "engine"]]
    machines = of_machines(tables).groupby(CELL_KEYS, as_index=False)["machine"].agg(" ".join)
    for own in (costs, tables.communication[[*CELL_KEYS, "messages_seconds"]], machines):
        table = table.merge(own, how="left", on=CELL_KEYS)
    known = table.astype(dict.fromkeys(["machine", "message_bytes"], object))
    known = known.fillna({"sent_share": 1.0, "machine": "", "message_bytes": ""})
    links = [_link(row, tables.interconnect) for row in schema.rows_of(known)]
    sent = pd.DataFrame(links, table.index, ["bytes", "rate"], float)
    seconds = table["messages_seconds"].where(table["messages_seconds"] > 0)
    table["bytes_per_iteration"] = sent["bytes"].round()
    table["peak_gb_per_s"] = sent["rate"].where(table["engine"].notna())
    moved = table["bytes_per_iteration"] * table["iterations"]
    table["bandwidth_gb_per_s"] = moved / seconds / GB
    table["utilization"] = table["bandwidth_gb_per_s"] / table["peak_gb_per_s"]
    return schema.arrange("bandwidth", table)


def _limits(tables: StudyTables) -> pd.DataFrame:
    """Return peak FLOP/s and peak B/s for each configuration: means over the machines that ran it.

    Matrix products at the configuration's precision give FLOP/s. Copies on a GPU give B/s.
    """
    there = of_machines(tables).merge(tables.costs[[*CELL_KEYS, "precision"]], on=CELL_KEYS)
    peaks, products = tables.peaks, ["machine", "precision"]
    # The largest a cool GPU reached.
    cool = peaks[peaks["state"] == "sprint"].groupby(products)["value"].max()
    copies = peaks[peaks["quantity"] == "device_copy"].groupby("machine")["value"].max()
    there = there.join(cool.rename(PEAKS[0]), on=products)
    there = there.join(copies.rename(PEAKS[1]), on="machine")
    return there.groupby(CELL_KEYS, as_index=False)[PEAKS].mean()


def utilization(tables: StudyTables) -> pd.DataFrame:
    """Return the utilization (MFU) of each configuration, and shares of its epoch, as fractions.

    On N GPUs, utilization = images/s · flops_per_image / (N · peak FLOP/s) (Chowdhery et al. 2022,
    arXiv:2204.02311, section 4.1). `idle_share` is 1 − busy time / epoch time of the least busy
    GPU. `loading_share` is 1 − training time / epoch time (a geometric mean over machines).

    Six shares add up to 1: utilization, `loading_share` (data wait), `exposed_share` (messages
    without compute kernels), `slower_share` (compute kernels minus utilization),
    `idle_besides_share` (`idle_share` minus `loading_share`), and the remainder. The remainder is
    `waiting_share` (messages wait for other ranks) or, without a trace, `unknown_share`. Without a
    peak rate, `computing_share` (all compute kernels) replaces utilization and `slower_share`. If
    data wait, messages and compute kernels exceed the epoch, the last two are scaled to fit.
    """
    table, messages = tables.timing, tables.communication[[*CELL_KEYS, "exposed_seconds"]]
    for own in (tables.costs, messages, _limits(tables)):
        table = table.merge(own, how="left", on=CELL_KEYS)
    epoch = table["epoch_seconds"]
    rate = table["samples"] / epoch
    per_gpu = rate * table["flops_per_image"] / table["gpus"]
    used = (per_gpu / table["peak_flops_per_second"]).astype(float)
    # Of a user's own command the driver counts whole epochs, and only when the GPU is busy.
    whole = (1 / table["step_seconds"]).where(table["engine"] == COMMAND.name)
    of_a_step = whole.fillna(table["iterations"] / epoch)
    idle = (1 - table["step_busy_seconds"] * of_a_step).clip(lower=0)
    host = table["loader_seconds"] / epoch
    # Printed times of epochs and of training can be of different machines; these are of the same.
    ran = of_one_code(tables.provenance)
    ran = ran.assign(training=np.log(ran["training_seconds"] / ran["epoch_seconds"]))
    of_machine = ran.groupby([*CELL_KEYS, "machine"])["training"].mean()
    training = np.exp(table.join(of_machine.groupby(CELL_KEYS).mean(), on=CELL_KEYS)["training"])
    loading = (1 - training).clip(lower=0).fillna(host)
    # Loader processes also slow down steps; of other engines it is at most the host's wait.
    options = {name: ENGINES.find(name).options.model_fields for name in ENGINES.names()}
    loads = table["engine"].isin([name for name in options if "loader_workers" in options[name]])
    loading = loading.where(loads, loading.clip(upper=host))
    exposed = table["exposed_seconds"] / epoch
    computing, left = table["step_compute_seconds"] * of_a_step, 1 - loading.fillna(0)
    fits = (left / (exposed.fillna(0) + computing)).clip(upper=1).fillna(1)
    exposed, computing = exposed * fits, computing * fits
    left -= exposed.fillna(0)
    slower, kernels = (computing - used).clip(lower=0), computing.where(used.isna())
    left = (left - used.fillna(0) - slower.fillna(kernels).fillna(0)).clip(lower=0)
    left = left.mask(fits < 1, 0.0)
    besides = (idle - loading.fillna(0)).clip(lower=0, upper=left)
    left -= besides.fillna(0)
    one = table["gpus"] == 1
    traced = computing.notna() & (one | exposed.notna())
    table = table.assign(
        images_per_second=rate,
        flops_per_second_per_gpu=per_gpu,
        utilization=used,
        loading_share=loading,
        exposed_share=exposed,
        slower_share=slower,
        computing_share=kernels,
        idle_share=idle,
        idle_besides_share=besides,
        waiting_share=left.where(traced & ~one),
        unknown_share=left.mask(traced, 0).where(epoch.notna()),
    )
    return schema.arrange("utilization", table)


def audit(tables: StudyTables, slow: pd.DataFrame) -> pd.DataFrame:
    """Return the warnings `slow`, and one for each configuration with utilization above 1."""
    fast = tables.utilization.query("utilization > 1")
    text = " of the measured peak: the epoch took less time than its operations can take"
    fast = fast.assign(message=[fmt.percent(share) + text for share in fast["utilization"]])
    return schema.arrange("audit", pd.concat([slow, fast]))
