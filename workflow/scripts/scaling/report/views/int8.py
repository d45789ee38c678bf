"""Tables on int8 quantization, Part B: variants, layers and mistakes over the seeds."""

from operator import attrgetter

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES, Scheme
from scaling.core.numbers import data, plural, times, words
from scaling.report.quantities import NOISE, count, define, fixed, scaled, span, view, whole
from scaling.report.table import Column
from scaling.tables.experiments.quantization_cost import (
    STANDARD_ERRORS,
    between,
    cost,
    difference,
    low_bits,
    method,
)
from scaling.tables.experiments.quantization_cost import bits as bits_of
from scaling.tables.experiments.quantization_diagnostics import DIAGNOSTICS
from scaling.tables.schema import StudyTables

COST = "seeds int8_accuracy int8_difference agreement"


def one_decimal(value: float) -> str:
    return fixed(value, 1)


def onnx_time(head: str, name: str) -> Column:
    """Return ONNX Runtime's milliseconds, and below how many times as fast as float32 that is."""
    return Column(
        head, scaled(1e3), lambda row: times(1 / getattr(row, f"{name}_ratio")), f"{name}_seconds"
    )


define(
    variant=Column("variant", detail=lambda row: getattr(row, "network", ""), name="stage"),
    seeds=Column("seeds", whole),
    int8_accuracy=Column("accuracy, %", fixed, attrgetter("accuracy_range"), "accuracy"),
    int8_difference=Column(
        "points to float32",
        detail=attrgetter("reach"),
        name="points",
        text=attrgetter("difference"),
        flags=NOISE,
    ),
    agreement=Column("same class, %", one_decimal),
    mistake=Column("mistake", lambda name: words(name).replace("+", " + "), attrgetter("meaning")),
    mistaken_accuracy=Column("accuracy, %", fixed, attrgetter("difference"), "accuracy"),
    points_of_bits=Column(
        "points",
        detail=lambda row: plural(row.seeds, "seed"),
        name="points",
        text=attrgetter("difference"),
        flags=NOISE,
    ),
    packed=Column("size", data, lambda row: times(row.compression)),
    stage=Column("variant"),
    weight_scales=Column("scales"),
    reason=Column("because"),
    accuracy_percent=Column("accuracy, %", fixed),
    agreement_ours_percent=Column("same class as our int8, %", one_decimal),
    engine_bytes=Column("file", data, name="file_bytes"),
    batch_1_ratio=Column("time to float32, batch 1", fixed, span("batch_1_ratio")),
    batch_256_ratio=Column("batch 256", fixed, span("batch_256_ratio")),
    file_bytes=Column("file", data, lambda row: times(row.times_smaller)),
    differing_classes=Column("classes not ours", count),
    differing_logits=Column("logits off, most steps", count, lambda row: count(row.largest_steps)),
    batch_1_one_core=onnx_time("ms, batch 1, one core", "batch_1_one_core"),
    batch_1_all_cores=onnx_time("all cores", "batch_1_all_cores"),
    batch_16_one_core=onnx_time("batch 16, one core", "batch_16_one_core"),
    batch_16_all_cores=onnx_time("batch 16, all cores", "batch_16_all_cores"),
    patches=Column("images", whole, name="images"),
    gpu=Column("GPU"),
    bfloat16_seconds=Column("bfloat16, ms", scaled(1e3)),
    int8_seconds=Column("int8, ms", scaled(1e3)),
    int8_speedup=Column(
        "times as fast", times, value=lambda row: row.bfloat16_seconds / row.int8_seconds
    ),
)


@view("B", "Accuracy by stage", "variant", COST)
def stages(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy loss of each of the lab's stages, and of ResNet-18's by weight scales."""
    table = study.quantization
    found = _costs(table[table["stage"].isin(STAGES)], "stage")
    resnet = _costs(study.quantization_resnet, "weight_scales", "stage")
    if resnet.empty:
        return found.assign(network="")
    scales = resnet["weight_scales"]
    resnet["network"] = "ResNet-18" + (", a scale for each " + scales).where(scales != "", "")
    return pd.concat([found.assign(network="tutorial CNN"), resnet])


@view(
    "B", "Known mistakes beside the sound variant", "mistake", "seeds mistaken_accuracy revealed_by"
)
def mistakes(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return each mistake with the correct variant of the same options and seeds."""
    table, rows = study.quantization, []
    quantized = table[table["stage"] != STAGES[0]]
    options = [option for option in Scheme.model_fields if option != "mistakes"]
    for name, wrong in quantized[quantized["mistake"] != ""].groupby("stage", sort=False):
        same = (quantized[options].astype(str) == wrong[options].iloc[0].astype(str)).all(axis=1)
        same &= quantized["mistake"].eq("") & quantized["seed"].isin(wrong["seed"])
        sound = quantized[same]
        first = sound["stage"].iloc[0] if len(sound) else ""
        beside = between(study.quantization_paired, str(name), first)
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


@view(
    "B",
    "Points to float32 and size by bits",
    "bits",
    "points_of_bits packed",
    across="method",
    heading=lambda name: name.split(", ")[0],
    note=attrgetter("method"),
)
def bits(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the loss and saving of fewer bits, by method, most bits first."""
    low = low_bits(study.quantization)
    low = low.sort_values(["weight_bits", "activation_bits"], ascending=False)
    return _costs(low.assign(bits=[bits_of(row) for row in low.itertuples()]), "bits", "method")


@view("B", "Other choices at 8 bits", "variant", COST)
def choices(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy loss of the other correct 8-bit variants."""
    table = study.quantization
    eight = (table["weight_bits"] == 8) & table["activation_bits"].isin([8, float("nan")])
    sound = table["mistake"].eq("") & ~table["stage"].isin(STAGES)
    return _costs(table[eight & sound], "stage")


@view("B", "Variants that could not be made", "network stage weight_scales seed", "reason")
def refused(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.quantization_refused


@view(
    "B",
    "Other quantizers on the same weights and images",
    "engine precision",
    "seeds accuracy_percent agreement_ours_percent engine_bytes batch_1_ratio batch_256_ratio",
    note=attrgetter("missing"),
)
def engines(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return other backends' results, means over the seeds; `missing` names missing ones."""
    table = study.quantization_peers
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


@view(
    "B",
    "ONNX files run by ONNX Runtime on the CPU",
    "model seed network",
    "file_bytes accuracy_percent differing_classes differing_logits"
    " batch_1_one_core batch_1_all_cores batch_16_one_core batch_16_all_cores",
    note=lambda row: (
        "Instructions of the processor: " + row.instructions if row.instructions else ""
    ),
)
def onnx(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.quantization_export


@view("B", "ResNet-18 on the GPU", "what patches", "gpu bfloat16_seconds int8_seconds int8_speedup")
def resnet_gpu(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return seconds of ResNet-18 on a GPU, means over the seeds: matrix products, and the network.

    PyTorch has no int8 convolution there, so the int8 network uses im2col, matrix products and
    requantization by separate kernels.
    """
    table = study.quantization_gpu
    whole = table["layer"].eq("network")
    what = whole.map({False: "matrix products of all layers", True: "network, by separate kernels"})
    seconds = table.groupby([what.rename("what"), "gpu", "seed"], sort=False)[
        ["bfloat16_seconds", "int8_seconds"]
    ].sum()
    images = table.loc[table["layer"] == "fc", "patches"].max()
    return seconds.groupby(["what", "gpu"], sort=False).mean().reset_index().assign(images=images)


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
                "points": None if is_float else found.difference_points,
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
