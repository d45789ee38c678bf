"""The made-up study of `report_cells`, as the tables the figures and the report read.

What is derived from its times comes from the study's own functions.
"""

import json
from pathlib import Path

import pandas as pd

import scaling.tables.bandwidth
import scaling.tables.communication
import scaling.tables.comparison
import scaling.tables.cost_model
import scaling.tables.experiments.quantization
import scaling.tables.limits
import scaling.tables.measurements
import scaling.tables.speedup
import scaling.tables.timing
import scaling.tables.utilization
from examples.report_cells import STUDY, TRAIN_IMAGES, accuracy, cells, costs, provenance, startup
from examples.report_machine import GRADIENT_BYTES, TOPOLOGY, peaks, sweeps
from scaling.audit.checks import audit
from scaling.audit.finding import Study
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema


def quantization() -> pd.DataFrame:
    """quantization.csv: three seeds; biases cost nothing, activations 0.2 points on average.

    As of a study from before there were variants: accuracy and agreement, no ledger of layers.
    """
    stages = {
        "float32": [54.0, 55.0, 56.0],
        "weights": [54.0, 54.9, 56.1],
        "weights+activations": [53.9, 54.7, 55.8],
        "weights+activations+bias": [53.9, 54.7, 55.8],
    }
    rows = [
        [seed, stage, value, value - stages["float32"][seed], 100.0 - 3 * position, 10_000]
        for position, (stage, values) in enumerate(stages.items())
        for seed, value in enumerate(values)
    ]
    columns = "seed stage accuracy_percent difference_points agreement_percent test_images"
    table = pd.DataFrame(rows, columns=columns.split())
    return table.reindex(columns=schema.columns("quantization"))


def manifest() -> dict[str, object]:
    """The dataset's manifest."""
    return {
        "source": "images",
        "origin": "cifar10-images.tar.xz",
        "checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "train_images": TRAIN_IMAGES,
        "test_images": 10_000,
        "classes": [f"class {number}" for number in range(10)],
        "image_shape": [32, 32, 3],
        "train_counts": [4_000] * 10,
        "test_counts": [1_000] * 10,
        "mean": [0.4914, 0.4822, 0.4465],
        "std": [0.247, 0.2435, 0.2616],
    }


def derive(timing: pd.DataFrame, readings: pd.DataFrame | None = None) -> dict[str, pd.DataFrame]:
    """What follows from the times and the instruments: every table but those of single runs."""
    speedups = scaling.tables.speedup.speedup(timing)
    shares = scaling.tables.communication.communication(timing, readings)
    sweep = scaling.tables.limits.interconnect(sweeps())
    rates = scaling.tables.bandwidth.bandwidth(timing, shares, sweep, GRADIENT_BYTES)
    limits = peaks()
    lines = scaling.tables.limits.fit(sweep)
    model, predictions = scaling.tables.cost_model.predict(timing, lines, GRADIENT_BYTES)
    return {
        "prediction": predictions,
        "cost_model": model,
        "timing": timing,
        "speedup": speedups,
        "communication": shares,
        "bandwidth": rates,
        "utilization": scaling.tables.utilization.utilization(
            timing, shares, limits, costs(timing)
        ),
        "audit": audit(Study(timing, speedups, shares, rates, TRAIN_IMAGES)),
        "accuracy": accuracy(timing),
        "interconnect": sweep,
        "interconnect_fit": lines,
        "peaks": limits,
    }


OTHER = {1: 23.55, 2: 16.164, 4: 9.06}
"""Seconds per epoch of 50,000 images at batch 32, each measured once, in another study."""


def other_study() -> pd.DataFrame:
    """The rows of comparison.csv of a published study with another model, on other hardware."""
    rows = [
        {**dict(zip([*CELL_KEYS, "status"], ["resnet9", "ddp", gpus, 32, "ok"], strict=True))}
        | {"epoch_seconds": seconds, "epoch_seconds_min": seconds, "epoch_seconds_max": seconds}
        | {"count": 1, "iterations": -(-50_000 // (32 * gpus)), "samples": 50_000}
        for gpus, seconds in OTHER.items()
    ]
    timing = pd.DataFrame(rows, columns=schema.columns("timing"))
    speedups, shares = (
        scaling.tables.speedup.speedup(timing),
        scaling.tables.communication.communication(timing),
    )
    rates = scaling.tables.bandwidth.bandwidth(
        timing, shares, scaling.tables.limits.interconnect([]), GRADIENT_BYTES
    )
    return scaling.tables.comparison.of_study("lab", timing, speedups, rates, "resnet9", "4 A40")


def comparison(tables: dict[str, pd.DataFrame], runs: pd.DataFrame) -> pd.DataFrame:
    """comparison.csv: this study, then the other."""
    described = scaling.tables.comparison.model_and_hardware(runs)
    own = [tables[name] for name in ("timing", "speedup", "bandwidth")]
    table = scaling.tables.comparison.of_study(STUDY, *own, *described)
    return pd.concat([table, other_study()], ignore_index=True)


def make(
    device: str = "cuda", missing: bool = False, host: str = "node01"
) -> dict[str, pd.DataFrame]:
    """All tables by name."""
    timing = cells(missing)
    derived, runs = derive(timing), provenance(timing, device, host)
    return {
        **derived,
        "comparison": comparison(derived, runs),
        "startup": startup(timing),
        "device_time": schema.frame("device_time"),
        "costs": costs(timing).assign(peak_memory_bytes=2_000_000_000),
        "provenance": runs,
        "quantization": quantization(),
        "quantization_layers": scaling.tables.experiments.quantization.layers([]),
        "quantization_paired": scaling.tables.experiments.quantization.paired([]),
    }


def write(folder: Path, study: dict[str, pd.DataFrame]) -> None:
    """Lay the tables and the manifest out as the pipeline does, below `folder`.

    A column that a table does not have is empty.
    """
    for name, table in study.items():
        whole = table.reindex(columns=schema.columns(name))
        schema.write(name, whole, schema.TABLES[name].path(folder / "tables", STUDY))
    (folder / "tables" / "topology.txt").write_text(TOPOLOGY)
    (folder / "manifest.json").write_text(json.dumps(manifest()))


def study(folder: Path, tables: dict[str, pd.DataFrame]) -> schema.StudyTables:
    """The study of these tables, through their files below `folder`."""
    write(folder, tables)
    shared = folder / "tables"
    return schema.read_study(STUDY, shared / STUDY, shared, folder / "manifest.json")


def only(tables: dict[str, pd.DataFrame], **columns: object) -> dict[str, pd.DataFrame]:
    """The tables with just the cells that have these values."""
    kept = {}
    for name, table in tables.items():
        for column, value in columns.items():
            if column in table and name not in ("interconnect", "interconnect_fit"):
                table = table[table[column] == value]
        kept[name] = table
    return kept
