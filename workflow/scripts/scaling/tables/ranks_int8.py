"""Tables of what ranks synchronize (Q5 to Q7), and of int8 quantization (Part B)."""

from itertools import pairwise
from statistics import fmean
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import decode, mean_difference
from scaling.core.records.kind import Row
from scaling.core.statistics import margin
from scaling.tables import schema

ERROR = "standard_error_points"
MEANS = ["agreement_percent", "packed_bytes", "compression"]
STANDARD_ERRORS = 2.0
"""Half the width of a 95 % interval in standard errors; a mean difference below it is noise."""
CONTENTS = {
    ("forward", "all_gather"): "batch statistics",
    ("forward", "scatter"): "images",
    ("forward", "gather"): "outputs",
    ("backward", "all_reduce"): "gradients",
    ("backward", "reduce"): "gradients",
    ("backward", "reduce_scatter"): "gradients",
    ("backward", "all_gather"): "parameters",
    ("update", "broadcast"): "parameters",
    ("backward", "scatter"): "gradients of outputs",
}
"""Contents of a message by its phase and kind, where these two determine the contents."""
BYTES_PER_CHANNEL = 2 * 4
"""Bytes that SyncBatchNorm's backward pass sums per channel: two float32 values."""


def sampler(documents: list[Row]) -> pd.DataFrame:
    """Return one row per training, epoch (from 0) and rank, with the numbers of images drawn.

    `first_epoch` is the first epoch in which the rank had the same order of images. For the other
    columns see `synchronization.worker.orders_of`.
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
    """Return one row per message of a rank, in order of sending. Step 0 means before training."""
    rows = [
        {**document, **step, **message, "gradient_bytes": document["model"]["parameter_bytes"]}
        | {"content": _content(message, step["way"], document["model"])}
        for document in documents
        for step in document["steps"]
        for message in step["messages"]
    ]
    return schema.frame("collectives", rows)


def _content(message: Row, way: str, model: Row) -> str:
    """Return what a message carries, from its phase, kind, type and size; or "other"."""
    phase, kind, size = (message[key] for key in ("phase", "kind", "bytes"))
    if (phase, kind) == ("forward", "broadcast"):
        if message["dtype"] == "int32":
            return "order of buckets"
        return "parameters" if size > model["buffer_bytes"] else "buffers"
    if (way, phase, kind) == ("fsdp", "forward", "all_gather"):
        return "parameters"
    synchronized = way == "ddp, SyncBatchNorm" and phase == "backward"
    if synchronized and size <= model["widest_norm"] * BYTES_PER_CHANNEL:
        return "batch statistics"
    return CONTENTS.get((phase, kind), "set-up" if phase == "start" else "other")


def buffers(documents: list[Row]) -> pd.DataFrame:
    """Return one row per buffer mode and rank, for the first seed: metrics, drift and hashes.

    For the columns of drift see `synchronization.worker.drift`.
    """
    rows = [
        {**one, **rank, "gpus": document["gpus"], "epochs": 1 + one["orders"][-1]["epoch"]}
        | {name.replace("_", "_drift_"): drift for name, drift in one["drift"].items()}
        for document in documents
        for one in document["trainings"]
        if one["set_epoch"]
        for rank in one["ranks"]
    ]
    table = schema.frame("buffers", rows)
    first = table.groupby(["gpus", "buffers"])["seed"].transform("first")
    return table[table["seed"] == first]


def quantization(documents: list[Row]) -> pd.DataFrame:
    """Return one row per seed and variant, in the given order. The first row of a seed is float32.

    `mean_standard_error_points` is the error of the mean difference from float32 over all seeds.
    """
    variants = _by(documents, "variant").items()
    errors = {name: _difference(same, same, "float32")[ERROR] for name, same in variants}
    rows = list[Row]()
    for one in documents:
        if not rows or rows[-1]["seed"] != one["seed"]:
            row = {key: one[key] for key in ("seed", "test_images", "float32_bytes")}
            row |= {"stage": STAGES[0], "difference_points": 0.0, "agreement_percent": 100.0}
            rows.append(row | one["float32"] | {"packed_bytes": one["float32_bytes"]})
        row = one["environment"] | one | one["scheme"] | {"stage": one["variant"]}
        row |= {"mistake": "+".join(row["mistakes"]), f"mean_{ERROR}": errors[row["stage"]]}
        rows.append(row)
    table = schema.frame("quantization", rows)
    return table.assign(compression=table["float32_bytes"] / table["packed_bytes"])


def quantization_layers(documents: list[Row]) -> pd.DataFrame:
    """Return a row per seed, variant and layer. The first layer is the quantized input images."""
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
    """Return one row per non-empty bin, for the first document with histograms.

    `values` is `float` or `int8`. Bins are in float units: one level of int8 is 1 / `scale`.
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


def quantization_paired(documents: list[Row]) -> pd.DataFrame:
    """Return a row per variant with a mistake: its accuracy minus that of the correct variant.

    Both are compared image by image, for the seeds that both have. Column `revealed_by` lists the
    results that show the mistake.
    """
    rows = []
    for name, same in _by(documents, "variant").items():
        scheme = same[0]["scheme"]
        correct = [one for one in documents if one["scheme"] == scheme | {"mistakes": []}]
        right = {one["seed"]: one for one in correct}
        wrong = [one for one in same if one["seed"] in right]
        if not scheme["mistakes"] or not wrong:
            continue
        pairs = wrong, [right[one["seed"]] for one in wrong]
        row = {"stage": name, "mistake": "+".join(scheme["mistakes"]), "seeds": len(wrong)}
        row |= {"test_images": wrong[0]["test_images"], **_difference(*pairs)}
        row["accuracy_percent"] = fmean(one["accuracy_percent"] for one in wrong)
        row["revealed_by"] = ", ".join(revealed_by(*pairs)) or "nothing"
        rows.append(row)
    return schema.frame("quantization_paired", rows)


def revealed_by(mistaken: list[Row], correct: list[Row]) -> list[str]:
    """Return the signs that distinguish `mistaken` records from `correct` ones of the same seeds.

    Accuracy is a sign if it drops by more than two standard errors of the mean difference.
    """
    signs = []
    points, error = _difference(mistaken, correct).values()
    if points < -STANDARD_ERRORS * error:
        signs.append("accuracy")
    layers = ([layer for one in each for layer in one["layers"]] for each in (mistaken, correct))
    pairs = [*zip(*layers, strict=True)]
    steps = [(wrong["top_step"], right["top_step"]) for wrong, right in pairs if wrong["top_step"]]
    # The largest value is further from the last level than rounding allows.
    if any(abs(wrong / right - 1) > 1e-5 for wrong, right in steps):
        signs.append("S·o·max")
    # A quantized bias is more than half a level from b · S.
    if any(wrong["bias_error_steps"] > 0.5 + 1e-6 for wrong, _ in pairs):
        signs.append("bias")
    if any(one["calibration_checksum"] != one["training_checksum"] for one in mistaken):
        signs.append("calibration checksum")
    return signs


def _by(documents: list[Row], key: str) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for document in documents:
        groups.setdefault(document[key], []).append(document)
    return groups


def _difference(ours: list[Row], theirs: list[Row], by: str = "variant") -> dict[str, float]:
    """Return the mean accuracy of `ours` minus that of `theirs`, in percentage points.

    `by` is the key of the predictions in `theirs`. The standard error is over images.
    """
    labels = decode(ours[0]["classes"]["labels"])
    reference = [decode(one["classes"][by]) for one in theirs]
    return mean_difference(labels, reference, [decode(one["classes"]["variant"]) for one in ours])


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over seeds, with one row per `stage` (variant) of quantization.csv.

    Differences from float32 are in points. `margin_points` is half the 95 % interval of their mean
    over seeds (Student's t), `standard_error_points` its standard error over test images.
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
    """Return a difference in points with its 95 % interval as text: `−0.20 ± 0.17`.

    The interval is over seeds if the row has `margin_points`, else over images.
    """
    if pd.isna(row.difference_points):
        return ""
    off = getattr(row, "margin_points", STANDARD_ERRORS * row.standard_error_points)
    return fmt.points(row.difference_points) + ("" if pd.isna(off) else f" ± {off:.2f}")


def reach(row: Any) -> str:
    """Return a row of `costs` as text: `−0.28 to +0.25; of images ± 0.11`.

    In points: lowest and highest difference over seeds, and half the 95 % interval over images.
    """
    ends = (row.difference_points_min, row.difference_points_max)
    seeds = "one seed" if row.seeds == 1 else " to ".join(map(fmt.points, ends))
    error = row.standard_error_points
    return seeds if pd.isna(error) else f"{seeds}; of images ± {STANDARD_ERRORS * error:.2f}"
