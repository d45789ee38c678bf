"""Tables of the report on Part B: variants, layers and mistakes over the seeds."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES, Scheme
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    between,
    bits,
    cost,
    difference,
    low_bits,
    method,
)
from scaling.tables.experiments.quantization_diagnostics import DIAGNOSTICS
from scaling.tables.schema import StudyTables


def stages(tables: StudyTables) -> pd.DataFrame:
    """Return the accuracy loss of each of the lab's stages, and of ResNet-18's by weight scales."""
    table = tables.quantization
    found = _costs(table[table["stage"].isin(STAGES)], "stage")
    resnet = _costs(tables.quantization_resnet, "weight_scales", "stage")
    if resnet.empty:
        return found.assign(network="")
    scales = resnet["weight_scales"]
    resnet["network"] = "ResNet-18" + (", a scale for each " + scales).where(scales != "", "")
    return pd.concat([found.assign(network="tutorial CNN"), resnet])


def choices(tables: StudyTables) -> pd.DataFrame:
    """Return the accuracy loss of the other correct 8-bit variants."""
    table = tables.quantization
    eight = (table["weight_bits"] == 8) & table["activation_bits"].isin([8, float("nan")])
    sound = table["mistake"].eq("") & ~table["stage"].isin(STAGES)
    return _costs(table[eight & sound], "stage")


def resnet_gpu(tables: StudyTables) -> pd.DataFrame:
    """Return seconds of ResNet-18 on a GPU, means over the seeds: matrix products, and the network.

    PyTorch has no int8 convolution there, so the int8 network uses im2col, matrix products and
    requantization by separate kernels.
    """
    table = tables.quantization_gpu
    whole = table["layer"].eq("network")
    what = whole.map({False: "matrix products of all layers", True: "network, by separate kernels"})
    seconds = table.groupby([what.rename("what"), "gpu", "seed"], sort=False)[
        ["bfloat16_seconds", "int8_seconds"]
    ].sum()
    images = table.loc[table["layer"] == "fc", "patches"].max()
    return seconds.groupby(["what", "gpu"], sort=False).mean().reset_index().assign(images=images)


def low_bits_by_method(tables: StudyTables) -> pd.DataFrame:
    """Return the loss and saving of fewer bits, by method, most bits first."""
    low = low_bits(tables.quantization)
    low = low.sort_values(["weight_bits", "activation_bits"], ascending=False)
    return _costs(low.assign(bits=[bits(row) for row in low.itertuples()]), "bits", "method")


def ledger(tables: StudyTables) -> pd.DataFrame:
    """Return scales and ranges by layer, in float units, and σ of the values in the histograms.

    They are of the last stage. `shown` is the seed of the histograms, else the first. `weight_amax`
    and `amax` are the largest magnitudes; `passed_scale` is S · o, n_in for images.
    """
    rows, counted = tables.quantization_layers, tables.quantization_histograms
    rows = rows[rows["stage"].isin([stage for stage in STAGES if stage in set(rows["stage"])][-1:])]
    seeds = [*counted["seed"][counted["seed"].isin(rows["seed"])], *rows["seed"]]
    rows = rows.assign(shown=rows["seed"].isin(seeds[:1]))
    for of, amax in (("weight", "weight_amax"), ("output", "amax")):
        rows[amax] = rows[[f"{of}_minimum", f"{of}_maximum"]].abs().max(axis=1)
        own = counted["quantity"].eq("weights") == (of == "weight")
        floats = counted[counted["values"].eq("float") & own]
        # After ReLU, if any.
        floats = floats[floats["quantity"] == floats.groupby("layer")["quantity"].transform("min")]
        middles = (floats["bin_low"] + floats["bin_high"]) / 2
        sums = {"first": floats["count"] * middles, "second": floats["count"] * middles**2}
        total = floats.assign(**sums).groupby("layer")[["count", *sums]].sum()
        mean = total["first"] / total["count"]
        rows[f"{of}_mean"] = rows["layer"].map(mean)
        rows[f"{of}_sigma"] = rows["layer"].map((total["second"] / total["count"] - mean**2) ** 0.5)
    return rows.assign(passed_scale=rows["top_step"] / rows["amax"])


def mistakes(tables: StudyTables) -> pd.DataFrame:
    """Return each mistake with the correct variant of the same options and seeds."""
    table, rows = tables.quantization, []
    quantized = table[table["stage"] != STAGES[0]]
    options = [option for option in Scheme.model_fields if option != "mistakes"]
    for name, wrong in quantized[quantized["mistake"] != ""].groupby("stage", sort=False):
        same = (quantized[options].astype(str) == wrong[options].iloc[0].astype(str)).all(axis=1)
        same &= quantized["mistake"].eq("") & quantized["seed"].isin(wrong["seed"])
        sound = quantized[same]
        first = sound["stage"].iloc[0] if len(sound) else ""
        beside = between(tables.quantization_paired, str(name), first)
        seen = {part for text in wrong["revealed_by"] for part in text.split("; ")} - {"accuracy"}
        if beside is not None and beside.errors < -STANDARD_ERRORS:
            seen.add("accuracy")
        mistake = wrong["mistake"].iloc[0]
        rows.append(
            {
                "mistake": mistake,
                "meaning": MISTAKES.get(mistake),
                "seeds": len(wrong),
                "accuracy": wrong["accuracy_percent"].mean(),
                "difference": None if beside is None else difference(*beside),
                "revealed_by": ", ".join(one for one in DIAGNOSTICS if one in seen) or "nothing",
            }
        )
    return pd.DataFrame(rows)


def engines(tables: StudyTables) -> pd.DataFrame:
    """Return other backends' results, means over the seeds; `missing` names missing ones."""
    table = tables.quantization_peers
    measured = table[table["status"] == "measured"]
    groups = measured.groupby(["engine", "precision"], sort=False)
    found = groups.mean(numeric_only=True).assign(seeds=groups.size())
    for end in ("min", "max"):
        extremes = [f"batch_{batch}_ratio_{end}" for batch in (1, 256)]
        found[extremes] = groups[extremes].agg(end)
    absent = table[table["status"] != "measured"].drop_duplicates(["engine", "note"])
    absent = absent.assign(precision=absent["status"], missing=absent["note"])
    columns = ["engine", "precision", "missing"]
    return pd.concat([found.reset_index().assign(missing=""), absent[columns]])


def _costs(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return a row for each group of variants: its accuracy loss over its seeds."""
    rows = []
    for key, same in table.groupby(list(keys), sort=False):
        found = cost(same)
        low, high = found.accuracy_range
        is_float = "stage" in same and same["stage"].iloc[0] == STAGES[0]
        rows.append(
            {
                "seeds": found.seeds,
                "accuracy": found.accuracy_percent,
                "accuracy_range": f"{low:.2f}–{high:.2f}" if found.seeds > 1 else "",
                "difference": None if is_float else found.difference,
                "reach": None if is_float else found.reach,
                "within_noise": None if is_float else found.within_noise,
                "agreement": None if is_float else found.agreement_percent,
                "packed": same["packed_bytes"].astype(float).mean(),
                "compression": (same["float32_bytes"] / same["packed_bytes"].astype(float)).mean(),
                "method": method(next(same.itertuples())) if "rounding" in same else None,
                **dict(zip(keys, key, strict=True)),
            }
        )
    return pd.DataFrame(rows)


FRAMES: list[Callable[[Any], pd.DataFrame]] = [
    *(stages, choices, resnet_gpu, low_bits_by_method, ledger),
    *(mistakes, engines),
]
