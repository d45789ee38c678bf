"""Tables about ranks (Q5 to Q7) and the steps of the lab's int8 quantization (Part B)."""

from functools import partial
from typing import Any

import pandas as pd

from scaling.claims.claim import span
from scaling.config.scheme import STAGES
from scaling.core.numbers import data, percent, significant, whole_span, words
from scaling.report.quantities import count, define, fixed, whole
from scaling.report.table import Column, View
from scaling.tables.ranks_int8 import by_buffers, costs, difference, reach
from scaling.tables.schema import StudyTables


def formula(head: str, pattern: str, names: str, name: str = "", digits: int = 5) -> Column:
    """Return a column, headed `head`, whose cells are `pattern` filled with values of the row.

    `names` lists the fields, printed with `digits` digits. `define` sets `name` if it is "".
    """

    def fill(row: Any) -> str:
        values = [getattr(row, one) for one in names.split()]
        texts = (fixed(one, 0) if one % 1 == 0 else significant(one, digits) for one in values)
        return "" if any(map(pd.isna, values)) else pattern.format(*texts)

    return Column(head, name=name, text=fill)


define(
    set_epoch=Column("set_epoch", lambda called: "yes" if called else "no"),
    different=Column("different orders of a rank"),
    overlap=Column("images drawn by two ranks"),
    unseen=Column("images left out"),
    phase=Column("when", words),
    kind=Column("kind", words),
    bytes=Column("bytes", count),
    share_of_gradients=Column("of all gradients", lambda share: f"{100 * share:.3g} %"),
    buffers=Column("buffers", words),
    trainings=Column("trainings", whole),
    equal_parameters=Column("parameters equal", lambda own: "bit for bit" if own else "no"),
    variance_drift_mean=Column("running variances differ by", percent),
    variance_drift_max=Column("at most", percent),
    rank_accuracy=Column("test accuracy of ranks"),
    variant=Column("variant", name="stage"),
    seeds=Column("seeds", whole),
    int8_accuracy=Column("accuracy, %", fixed, name="accuracy_percent"),
    int8_difference=Column(
        "points to float32",
        detail=reach,
        name="difference_points",
        text=difference,
        flags={"unclear": lambda row: row.unclear is True},
    ),
    agreement=Column("same class, %", lambda value: fixed(value, 1), name="agreement_percent"),
    weight_range=formula("range", "{} to {}", "weight_minimum weight_maximum", "weight_amax", 3),
    weight_mean=formula("mean ± 3σ", "{} ± {}", "weight_mean weight_reach", digits=3),
    weight_scale=formula("n_W, levels per unit", "127 / {} = {}", "weight_amax weight_scale"),
    float32_bytes=Column("float32", data),
    packed_bytes=Column("packed", data),
    output_range=formula("range", "{} to {}", "output_minimum output_maximum", "output_amax", 3),
    output_mean=formula("mean ± 3σ", "{} ± {}", "output_mean output_reach", digits=3),
    pixel_scale=formula("n_in", "127 / {} = {}", "output_amax pixel_scale"),
    accumulator_scale=formula("S", "{} × {} = {}", "weight_scale input_scale accumulator_scale"),
    output_scale=formula("o", "127 / ({} × {}) = {}", "accumulator_scale output_amax output_scale"),
    passed_scale=formula("next A", "{} × {} = {}", "accumulator_scale output_scale passed_scale"),
    largest_bias=formula(
        "of the largest b", "round({} × {}) = {}", "largest_bias accumulator_scale bias_steps"
    ),
    accumulator_bound=Column("largest accumulator", count),
)


def sampler(study: StudyTables, _: pd.DataFrame) -> pd.DataFrame:
    """Return numbers of distinct orders, shared and unseen images (ranges) by GPUs, set_epoch."""
    keys = ["gpus", "set_epoch"]
    of_ranks = study.sampler.groupby([*keys, "seed", "rank"])
    drawn = study.sampler.assign(different=of_ranks["first_epoch"].transform("nunique"))
    spans = drawn.groupby(keys, sort=False)[["different", "overlap", "unseen"]]
    epochs = drawn.groupby(keys, sort=False)["epoch"].nunique()
    return spans.agg(partial(whole_span, between="–")).assign(epoch=epochs).reset_index()


def messages(study: StudyTables, _: pd.DataFrame) -> pd.DataFrame:
    """Return number and total bytes of messages in the last recorded DDP step, by content."""
    known = study.collectives
    last = known[known["step"] == known["step"].max()]
    groups = last.groupby(["phase", "kind", "content"], sort=False)
    found = groups.agg(messages=("bytes", "size"), bytes=("bytes", "sum")).reset_index()
    return found.assign(share_of_gradients=found["bytes"] / known["gradient_bytes"].max())


def replicas(study: StudyTables, _: pd.DataFrame) -> pd.DataFrame:
    """Return differences between ranks after training, for each handling of batch-norm buffers."""
    accuracies = study.buffers.groupby("buffers")["test_accuracy"].agg(span)
    found = by_buffers(study.buffers)
    return found.assign(rank_accuracy=found["buffers"].map(accuracies))


def ledger(study: StudyTables, _: pd.DataFrame) -> pd.DataFrame:
    """Return one row per layer with scales and float ranges, for one quantization stage and seed.

    The stage is the last measured stage of `STAGES`. The seed is the first with histograms, or else
    the first. `…_amax` is the largest magnitude. `…_mean` and `…_reach` are mean and 3 standard
    deviations of a histogram. `passed_scale` is the number of int8 levels per unit of the layer's
    output.
    """
    rows, counted = study.quantization_layers, study.quantization_histograms
    rows = rows[rows["stage"].isin([stage for stage in STAGES if stage in set(rows["stage"])][-1:])]
    seeds = [*counted["seed"][counted["seed"].isin(rows["seed"])], *rows["seed"]]
    rows = rows[rows["seed"].isin(seeds[:1])].copy()
    floats = counted[counted["values"] == "float"]
    middles = (floats["bin_low"] + floats["bin_high"]) / 2
    sums = {"first": middles * floats["count"], "second": middles**2 * floats["count"]}
    places = floats.assign(**sums).groupby(["layer", "quantity"])[["count", *sums]].sum()
    places["mean"] = places["first"] / places["count"]
    places["reach"] = 3 * (places["second"] / places["count"] - places["mean"] ** 2) ** 0.5
    # By name, what is after a ReLU comes before what is before it, and weights are last.
    ends = {"weight": places.groupby("layer").last(), "output": places.groupby("layer").first()}
    for of, spread in ends.items():
        rows[f"{of}_amax"] = rows[[f"{of}_minimum", f"{of}_maximum"]].abs().max(axis=1)
        rows[f"{of}_mean"] = rows["layer"].map(spread["mean"])
        rows[f"{of}_reach"] = rows["layer"].map(spread["reach"])
    passed = rows["top_step"] / rows["output_amax"]
    return rows.assign(passed_scale=passed, pixel_scale=passed.where(rows["layer"] == "images"))


STEPS = {
    "weights": ("1. Visualize weights: the range and 3σ of each layer", "weight_range weight_mean"),
    "weight-scales": (
        "2. Quantize weights: n_W = 127 / max|W|, round(n_W · W)",
        "weight_scale float32_bytes packed_bytes",
    ),
    "activations": (
        "3. Visualize activations: the range and 3σ of what each layer passes on",
        "output_range output_mean",
    ),
    "activation-scales": (
        "4. Quantize activations: n_in = 127 / max|pixel|, S = n_W · A, o = 127 / (S · max), "
        "next A = S · o",
        "pixel_scale accumulator_scale output_scale passed_scale",
    ),
    "biases": ("5. Quantize biases: round(b · S)", "largest_bias accumulator_bound"),
}
"""Titles and columns of the tables for the lab's steps, by name of the table."""
TABLES = {
    "Q5": [
        View(
            "sampler",
            "Orders of images, hashed",
            "gpus set_epoch",
            "epoch different overlap unseen",
            sampler,
        )
    ],
    "Q6": [
        View(
            "messages",
            "Messages of a DDP step",
            "content phase kind",
            "messages bytes share_of_gradients",
            messages,
        ),
    ],
    "Q7": [
        View(
            "replicas",
            "Ranks after the last epoch",
            "buffers",
            "trainings equal_parameters variance_drift_mean variance_drift_max rank_accuracy",
            replicas,
        )
    ],
    "B": [
        View(
            "stages",
            "Accuracy by variant",
            "variant",
            "seeds int8_accuracy int8_difference agreement",
            lambda study, _: costs(study.quantization),
            note=lambda _: "±: half the 95 % interval over seeds or, “of images”, test images.",
        ),
        *(View(step, title, "layer", shown, ledger) for step, (title, shown) in STEPS.items()),
    ],
}
"""Tables of each question, in order."""
