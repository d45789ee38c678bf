"""Tables on int8 quantization, Part B: variants, layers and mistakes over the seeds."""

import pandas as pd

from scaling.config.scheme import MISTAKES, STAGES
from scaling.core.numbers import data, times, words
from scaling.report.quantities import NOISE, define, fixed, span, view, whole
from scaling.report.table import Column
from scaling.tables.experiments.quantization import costs, difference, reach
from scaling.tables.schema import StudyTables

COST = "seeds int8_accuracy int8_difference agreement"


define(
    variant=Column("variant", detail=lambda row: getattr(row, "network", ""), name="stage"),
    seeds=Column("seeds", whole),
    int8_accuracy=Column("accuracy, %", fixed, span("accuracy_percent", fixed), "accuracy_percent"),
    int8_difference=Column(
        "points to float32", detail=reach, name="difference_points", text=difference, flags=NOISE
    ),
    agreement=Column("same class, %", lambda value: fixed(value, 1), name="agreement_percent"),
    mistake=Column(
        "mistake",
        lambda name: words(name).replace("+", " + "),
        lambda row: MISTAKES.get(row.mistake, ""),
    ),
    mistaken_accuracy=Column("accuracy, %", fixed, difference, "accuracy_percent"),
    packed=Column("size", data, lambda row: times(row.compression), "packed_bytes"),
)


@view("B", "Accuracy by stage", "variant", COST)
def stages(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy loss of each of the lab's stages, and of ResNet-18's by weight scales."""
    table = study.quantization
    found = costs(table[table["stage"].isin(STAGES)], "stage")
    resnet = costs(study.quantization_resnet, "weight_scales", "stage")
    scales = resnet["weight_scales"]
    found["network"] = "tutorial CNN" if len(resnet) else ""
    resnet["network"] = "ResNet-18" + (", a scale for each " + scales).where(scales != "", "")
    both = pd.concat([found, resnet], ignore_index=True)
    compared = ["difference_points", "agreement_percent", "within_noise"]
    return both.assign(**both[compared].where(both["stage"] != STAGES[0]))


@view(
    "B", "Known mistakes beside the sound variant", "mistake", "seeds mistaken_accuracy revealed_by"
)
def mistakes(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return each mistake with the correct variant of the same options and seeds."""
    return study.quantization_paired


@view("B", "Fewer bits, and other choices", "variant", f"{COST} packed")
def choices(study: StudyTables, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy loss and the size of the other correct variants."""
    table = study.quantization
    return costs(table[table["mistake"].eq("") & ~table["stage"].isin(STAGES)], "stage")
