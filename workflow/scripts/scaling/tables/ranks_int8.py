"""Make tables of what ranks synchronize (Q5 to Q7), and of int8 quantization (Part B)."""

from itertools import pairwise
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import decode, mean_difference
from scaling.core.records.kind import Row
from scaling.core.statistics import margin
from scaling.tables import schema
from scaling.tables.timing import origin

ERROR = "standard_error_points"
MEANS = ["agreement_percent", "packed_bytes", "compression"]
STANDARD_ERRORS = 2.0
"""Half the width of a 95 % interval, in standard errors."""
CONTENTS = {("forward", "broadcast"): "buffers", ("backward", "all_reduce"): "gradients"}
"""Contents of DDP's messages, by phase and kind."""


def sampler(documents: list[Row]) -> pd.DataFrame:
    """Return a row on the order of images of each training, epoch (from 0) and rank.

    `first_epoch` is the first epoch in which the rank had the same order. `orders_of` in
    synchronization/worker.py explains the other columns.
    """
    rows = [
        {**document, **run, **row}
        for document in documents
        for run in document["trainings"]
        if run["buffers"] == "broadcast"
        for row in run["orders"]
    ]
    orders = pd.DataFrame(rows)
    same = orders.groupby(["gpus", "set_epoch", "seed", "rank", "order_sha256"])["epoch"]
    return schema.frame("sampler", orders.assign(first_epoch=same.transform("min")))


def collectives(documents: list[Row]) -> pd.DataFrame:
    """Return a row per message of a rank under DDP, in the order of sending.

    Step 0 is before training. Messages of other strategies are only in the records.
    """
    rows = [
        {**document, **message, "gradient_bytes": document["model"]["parameter_bytes"]}
        | {"ranks_agree": step["ranks_agree"], "content": _content(message, document["model"])}
        for document in documents
        for step in document["steps"]
        if step["way"] == "ddp"
        for message in step["messages"]
    ]
    return schema.frame("collectives", rows)


def _content(message: Row, model: Row) -> str:
    phase, kind = message["phase"], message["kind"]
    if (phase, kind, message["dtype"]) == ("forward", "broadcast", "int32"):
        return "order of buckets"
    if phase == "forward" and message["bytes"] > model["buffer_bytes"]:
        return "parameters"
    return CONTENTS.get((phase, kind), "set-up" if phase == "start" else "other")


def buffers(documents: list[Row]) -> pd.DataFrame:
    """Return a row per training and rank: test metrics, and hashes of parameters and buffers.

    The column `buffers` names the source of batch-norm statistics: `broadcast` (rank 0), `local`
    (each rank) or `sync_batch_norm` (all ranks). Columns `…_drift_…` are differences between ranks:
    see `drift` in synchronization/worker.py.
    """
    rows = [
        {**one, **rank, "gpus": document["gpus"], "epochs": 1 + one["orders"][-1]["epoch"]}
        | {name.replace("_", "_drift_"): drift for name, drift in one["drift"].items()}
        for document in documents
        for one in document["trainings"]
        for rank in one["ranks"]
    ]
    return schema.frame("buffers", rows)


def by_buffers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the largest differences between ranks over all trainings, by value of `buffers`.

    `variance_drift_max` also has its range over trainings. `equal_parameters` says whether the
    ranks of each training have the same parameters.
    """
    drift, largest = ["variance_drift_mean", "variance_drift_max"], "variance_drift_max"
    of_training = table.groupby(["buffers", "gpus", "set_epoch", "seed"], sort=False)
    equal = of_training["parameters_sha256"].nunique() == 1
    modes = of_training[drift].max().assign(equal=equal).groupby("buffers", sort=False)
    found = modes[drift].max().assign(equal_parameters=modes["equal"].all())
    ends = {f"{largest}_{end}": getattr(modes[largest], end)() for end in ("min", "max")}
    return found.assign(**ends, trainings=modes.size()).reset_index()


def quantization(documents: list[Row]) -> pd.DataFrame:
    """Return accuracy and size of each seed's variants; the first row of a seed is float32.

    `mean_standard_error_points` is the standard error over test images, in percentage points, of a
    variant's accuracy minus float32's, averaged over all seeds.
    """
    errors = {
        name: _standard_error([one for one in documents if one["variant"] == name])
        for name in {one["variant"] for one in documents}
    }
    rows, known = list[Row](), schema.TABLES["quantization"].types
    for one in documents:
        of = origin(one["environment"], known)
        if not rows or rows[-1]["seed"] != one["seed"]:
            row = of | {key: one[key] for key in ("seed", "test_images", "float32_bytes")}
            row |= {"stage": STAGES[0], "difference_points": 0.0, "agreement_percent": 100.0}
            rows.append(row | one["float32"] | {"packed_bytes": one["float32_bytes"]})
        row = of | one | one["scheme"] | {"stage": one["variant"]}
        rows.append(row | {f"mean_{ERROR}": errors[row["stage"]]})
    table = schema.frame("quantization", rows)
    return table.assign(compression=table["float32_bytes"] / table["packed_bytes"])


def quantization_layers(documents: list[Row]) -> pd.DataFrame:
    """Return scales and ranges by seed, variant and layer. The first layer is the input images."""
    rows = []
    for document in documents:
        layers = list(document["layers"])
        if images := document["input"]:
            scale, ends = images["scale"], images["range"]
            first = {"layer": "images", "output_scale": scale, "output_range": ends}
            layers.insert(0, first | {"top_step": scale * max(map(abs, ends))})
        for layer in layers:
            row = {"seed": document["seed"], "stage": document["variant"], **layer}
            for name in ("weight", "output"):
                ends = layer.get(f"{name}_range", (None, None))
                row[f"{name}_minimum"], row[f"{name}_maximum"] = ends
            rows.append(row)
    return schema.frame("quantization_layers", rows)


def quantization_histograms(documents: list[Row]) -> pd.DataFrame:
    """Return the non-empty bins of the first document with histograms.

    Column `values`: `float` or `int8`. Ends of all bins are floats; a level of int8 is 1 / `scale`.
    """
    counted = [one for one in documents if one.get("histograms")]
    rows = [
        {"seed": one["seed"], "stage": one["variant"], **entry}
        | {"values": values, "bin_low": low, "bin_high": high, "count": count}
        for one in counted[:1]
        for entry in one["histograms"]
        for values in ("float", "int8")
        for (low, high), count in zip(
            pairwise(entry[values]["bin_edges"]), entry[values]["counts"], strict=True
        )
        if count
    ]
    return schema.frame("quantization_histograms", rows)


def _standard_error(variants: list[Row]) -> float:
    """Return the standard error of `variants`' mean accuracy minus float32's, in points."""
    labels = decode(variants[0]["classes"]["labels"])
    sides = ([decode(one["classes"][of]) for one in variants] for of in ("float32", "variant"))
    return mean_difference(labels, *sides)[ERROR]


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds for each `stage` (variant) of quantization.csv.

    `difference_points` is accuracy minus float32's, in percentage points. `margin_points` is half
    its 95 % interval over seeds (Student's t). `standard_error_points` is over test images.
    """
    table = table.assign(float32_percent=table["accuracy_percent"] - table["difference_points"])
    groups, ranges = table.groupby("stage", sort=False), ["accuracy_percent", "difference_points"]
    means = groups[[*ranges, "float32_percent", *MEANS]].mean()
    ends = [getattr(groups[ranges], end)().add_suffix(f"_{end}") for end in ("min", "max")]
    stages = pd.concat([means, *ends], axis=1).assign(seeds=groups.size())
    stages[ERROR] = groups[f"mean_{ERROR}"].first()
    stages["margin_points"] = margin([groups["difference_points"].std()], [stages["seeds"]])
    unclear = stages["difference_points"].abs() <= stages["margin_points"]
    return stages.assign(unclear=unclear).reset_index()


def difference(row: Any) -> str:
    """Return accuracy minus float32's in points, with its interval over seeds: `−0.20 ± 0.17`."""
    off = row.margin_points
    return fmt.points(row.difference_points) + ("" if pd.isna(off) else f" ± {off:.2f}")


def reach(row: Any) -> str:
    """Return accuracy differences of a row of `costs` as text: `−0.28 to +0.25; of images ± 0.11`.

    Both are in points: the range over seeds, and half the 95 % interval over test images.
    """
    ends = (row.difference_points_min, row.difference_points_max)
    seeds = "one seed" if row.seeds == 1 else " to ".join(map(fmt.points, ends))
    error = row.standard_error_points
    return seeds if pd.isna(error) else f"{seeds}; of images ± {STANDARD_ERRORS * error:.2f}"
