"""Tables on int8 quantization, Part B: variants, layers and mistakes over the seeds."""

from operator import attrgetter

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES
from scaling.core.numbers import data, plural, times, words
from scaling.report.quantities import NOISE, count, define, fixed, scaled, span, view, whole
from scaling.report.table import Column
from scaling.tables.experiments.quantization_cost import bits as bits_of
from scaling.tables.experiments.quantization_cost import cost, difference, low_bits, reach
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
    int8_accuracy=Column("accuracy, %", fixed, span("accuracy_percent", fixed), "accuracy_percent"),
    int8_difference=Column(
        "points to float32",
        detail=reach,
        name="difference_points",
        text=difference,
        flags=NOISE,
    ),
    agreement=Column("same class, %", one_decimal, name="agreement_percent"),
    mistake=Column(
        "mistake",
        lambda name: words(name).replace("+", " + "),
        lambda row: MISTAKES.get(row.mistake, ""),
    ),
    mistaken_accuracy=Column("accuracy, %", fixed, difference, "accuracy_percent"),
    points_of_bits=Column(
        "points",
        detail=lambda row: plural(row.seeds, "seed"),
        name="difference_points",
        text=difference,
        flags=NOISE,
    ),
    packed=Column("size", data, lambda row: times(row.compression), "packed_bytes"),
    stage=Column("variant"),
    weight_scales=Column("scales"),
    reason=Column("because"),
    accuracy_percent=Column("accuracy, %", fixed),
    file_bytes=Column("file", data, lambda row: times(row.times_smaller)),
    differing_classes=Column("classes not ours", count),
    differing_logits=Column("logits off, most steps", count, lambda row: count(row.largest_steps)),
    batch_1=onnx_time("ms, batch 1", "batch_1"),
    batch_16=onnx_time("batch 16", "batch_16"),
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
    return study.quantization_paired


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
    "ONNX files run by ONNX Runtime on one core",
    "model seed network",
    "file_bytes accuracy_percent differing_classes differing_logits batch_1 batch_16",
    note=lambda row: (
        "Instructions of the processor: " + row.instructions if row.instructions else ""
    ),
)
def onnx(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    return study.quantization_export


def _costs(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return a row for each group of variants: its accuracy loss over its seeds."""
    rows = []
    for key, same in table.groupby(list(keys), sort=False):
        found, packed = cost(same), same["packed_bytes"].astype(float)
        row = found._asdict() | {"within_noise": found.within_noise}
        if "stage" in same and same["stage"].iloc[0] == STAGES[0]:
            row |= dict.fromkeys(["difference_points", "agreement_percent", "within_noise"])
        row |= {"packed_bytes": packed.mean()}
        row |= {"compression": (same["float32_bytes"] / packed).mean()}
        rows.append(row | dict(zip(keys, key, strict=True)))
    return pd.DataFrame(rows)
