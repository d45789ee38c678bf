"""The tables of one study, as the figures and the report read them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.audit import checks
from scaling.core import files
from scaling.core.errors import UserError
from scaling.tables import (
    accuracy,
    bandwidth,
    communication,
    comparison,
    device_time,
    interconnect,
    io,
    prediction,
    provenance,
    speedup,
    startup,
    timing,
    utilization,
)
from scaling.tables import (
    limits as peaks,
)
from scaling.tables.derived import DerivedTables
from scaling.tables.experiments import (
    buffers,
    collectives,
    convergence,
    quantization_others,
    quantization_paired,
    remedies,
    sampler,
    time_to_accuracy,
)
from scaling.tables.experiments import (
    quantization as quantization_tables,
)

OWN = {
    "timing": timing.COLUMNS,
    "speedup": speedup.COLUMNS,
    "communication": communication.COLUMNS,
    "bandwidth": bandwidth.COLUMNS,
    "utilization": utilization.COLUMNS,
    "audit": checks.COLUMNS,
    "prediction": prediction.COLUMNS,
    "cost_model": prediction.MODEL_COLUMNS,
    "comparison": comparison.COLUMNS,
    "startup": startup.COLUMNS,
    "device_time": device_time.COLUMNS,
    "provenance": provenance.COLUMNS,
}
SHARED = {
    "accuracy": accuracy.COLUMNS,
    "interconnect": interconnect.COLUMNS,
    "interconnect_fit": interconnect.FIT_COLUMNS,
    "peaks": peaks.COLUMNS,
    "quantization": quantization_tables.COLUMNS,
    "quantization_layers": quantization_tables.LAYER_COLUMNS,
    "quantization_paired": quantization_paired.COLUMNS,
}
EXPERIMENTS = {
    "convergence": convergence.COLUMNS,
    "convergence_epochs": convergence.EPOCH_COLUMNS,
    "loss_curves": convergence.CURVE_COLUMNS,
    "remedies": remedies.COLUMNS,
    "time_to_accuracy": time_to_accuracy.COLUMNS,
    "sampler": sampler.COLUMNS,
    "sampler_accuracy": sampler.ACCURACY_COLUMNS,
    "collectives": collectives.COLUMNS,
    "buffers": buffers.COLUMNS,
    "quantization_peers": quantization_others.PEERS,
    "quantization_resnet": quantization_others.RESNET,
}
"""Tables of experiments, which a study made before them does not have; they lie beside `SHARED`."""
COLUMNS = OWN | SHARED | EXPERIMENTS
TRUTHS = {"within_spread", "correct", "peak", "measured"}
TRUTHS |= {"reference", "chosen", "at_edge", "same_split", "best"}
TEXT = {"note", "message", "recipe", "strategy", "check", "precision", "communication_estimate"}
TEXT |= {"stage", "layer", "mistake", "revealed_by", "engine", "version", "status"}
TEXT |= {"reference_stage", "calibration_checksum", "training_checksum"}
TEXT |= {"bias", "weight_scales", "weight_range", "activation_range", "rounding"}
TRUTHS |= {"unsigned", "bias_correction"}
TEXT |= {"study", "model", "hardware", "estimate", "parameter", "unit"}
TEXT |= {"remedy", "options", "diverged", "rule_diverged", "train_verdict", "test_verdict"}
TEXT |= {"same_runs_as"}
TRUTHS |= {"set_epoch", "trained", "ranks_agree"}
TEXT |= {"way", "phase", "kind", "content", "dtype"}


@dataclass(frozen=True)
class StudyTables(DerivedTables):
    """The tables of a measured study, each as `read` returns it, and its dataset's manifest.

    `topology` is how the machine's GPUs are connected, as nvidia-smi prints it, or "".
    """

    utilization: pd.DataFrame
    comparison: pd.DataFrame
    startup: pd.DataFrame
    device_time: pd.DataFrame
    provenance: pd.DataFrame
    accuracy: pd.DataFrame
    quantization: pd.DataFrame
    quantization_layers: pd.DataFrame
    quantization_paired: pd.DataFrame
    interconnect: pd.DataFrame
    interconnect_fit: pd.DataFrame
    peaks: pd.DataFrame
    topology: str
    manifest: dict[str, Any]
    experiments: dict[str, pd.DataFrame] = field(default_factory=dict)

    def experiment(self, name: str) -> pd.DataFrame:
        """One of the tables of `EXPERIMENTS`; without rows where the study does not have it."""
        return self.experiments.get(name, pd.DataFrame(columns=EXPERIMENTS[name]))

    @property
    def missing(self) -> pd.DataFrame:
        """The rows of `timing` for which a run has no record."""
        return self.timing[self.timing["status"] == "missing"]

    @property
    def on_cpu(self) -> bool:
        """Whether "GPU" means a process: there are runs, and all of them recorded a CPU."""
        return on_cpu(self.provenance)


def on_cpu(provenance: pd.DataFrame) -> bool:
    """Whether there are runs in `provenance`, and all of them recorded a CPU."""
    recorded = provenance[provenance["status"] != "missing"]
    return len(recorded) > 0 and bool((recorded["device"] == "cpu").all())


def read(name: str, path: Path) -> pd.DataFrame:
    """The table called `name` from the CSV at `path`; an empty text is "", an empty truth False.

    Raises UserError when the file does not exist, is no table or lacks a column.
    """
    table = io.read(path, COLUMNS[name])
    text = list(table.columns) if name == "provenance" else [*(TEXT & set(table.columns))]
    numbers = {"gpus", "batch_size", "seed"}
    for column in set(text) - numbers:
        table[column] = table[column].astype(object).where(table[column].notna(), "").astype(str)
    for column in TRUTHS & set(table.columns):
        table[column] = table[column].eq(True)
    return table


def read_study(study: str, own: Path, shared: Path, manifest: Path) -> StudyTables:
    """Every table of `study`: its own below `own`, those of all studies below `shared`.

    Those of experiments are read where they exist.
    """
    found = {name: read(name, own / f"{name}.csv") for name in OWN}
    found |= {name: read(name, shared / f"{name}.csv") for name in SHARED}
    found["accuracy"] = of_study(found["accuracy"], study)
    experiments = {name: shared / f"{name}.csv" for name in EXPERIMENTS}
    return StudyTables(
        study=study,
        topology=_read_text(shared / "topology.txt"),
        manifest=files.read_json(manifest),
        experiments={name: read(name, path) for name, path in experiments.items() if path.exists()},
        **found,
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; make it again") from error


def of_study(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """The rows of one study."""
    return table[table["study"] == study].reset_index(drop=True)


def by_configuration(table: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """(recipe, strategy, rows) for each combination, in the order in which they first appear."""
    groups = table.groupby(["recipe", "strategy"], sort=False)
    return [(str(recipe), str(strategy), rows) for (recipe, strategy), rows in groups]
