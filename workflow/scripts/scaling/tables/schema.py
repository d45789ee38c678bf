"""List all tables with their columns, and read and write them as CSV."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scaling.config import stored
from scaling.core import files
from scaling.core.errors import UserError
from scaling.core.grid import RUN_KEYS
from scaling.core.records.kind import DATASET

_CELL = "recipe:text strategy:text gpus batch_size"
_KEYS = f"{_CELL} status:text"
_LEARNING = "train_loss train_accuracy test_loss test_accuracy"
ORIGIN = ["device_names", "cpu", "torch", "cuda", "driver", "commit", "started", "code_packages"]
"""Columns on machine and code of trainings. "; " joins the values of several trainings."""
_ORIGIN = " ".join(f"{name}:text" for name in ORIGIN)

COLUMNS: dict[str, dict[str, str]] = {
    "runs": {
        "{study}/timing": f"""{_KEYS} epoch_seconds:interval training_seconds:interval
            loader_seconds count iterations samples message:text runs machines unit:text
            whole:truth""",
        "{study}/step_classes": f"""{_CELL} kernel_class:text seconds running_seconds images bytes
            rate reached least_seconds""",
        "{study}/costs": f"""{_CELL} flops_per_image precision:text power_capped_share
            peak_memory_bytes memory_capacity_bytes drift settled:truth joules_per_image
            money_per_epoch engine:text switches:text sent_share message_bytes:text
            message_waits:truth startup_seconds startup_cold_seconds cudnn_search_seconds
            break_even_min break_even_max joules_per_image_low joules_per_image_high
            rank_step_seconds:range step_seconds step_busy_seconds step_compute_seconds""",
        "{study}/provenance": f"""{_CELL} seed status:text model:text training:text
            recipe_options:text hosts:text device_names:text slurm_gpus:text device:text cpu:text
            python:text torch:text cuda:text nccl:text driver:text slurm_job_id:text commit:text
            started:text ended:text repeat machine:text code:text code_packages:text engine:text
            variables:text cpu_count:text
            epoch_seconds training_seconds joules_per_image""",
        "{study}/speedup": f"""{_KEYS} epoch_seconds training_seconds speedup:interval
            efficiency:interval verdict:text training_speedup:interval scope:text more_runs
            fixed_global_batch_speedup:interval note:text runs machines""",
        "{study}/communication": f"""{_KEYS} epoch_seconds training_seconds compute_seconds
            delay_seconds:interval exposed_seconds:interval messages_seconds:interval""",
        "{study}/bandwidth": f"""{_KEYS} bytes_per_iteration iterations
            messages_seconds bandwidth_gb_per_s peak_gb_per_s utilization""",
        "{study}/utilization": f"""{_KEYS} images_per_second precision:text
            flops_per_second_per_gpu peak_flops_per_second peak_bytes_per_second utilization
            loading_share exposed_share waiting_share idle_share idle_besides_share
            slower_share computing_share unknown_share power_capped_share""",
        "{study}/audit": f"{_CELL} message:text",
        "accuracy": f"{_CELL} seed repeat epoch {_LEARNING} status:text",
        "interconnect": """gpus backend:text kind:text message_bytes seconds:range seconds_p99
            start_skew_seconds count algbw_gb_per_s busbw_gb_per_s correct:truth launch:text
            machine:text""",
        "peaks": """quantity:text precision:text matrix_size copy_bytes unit:text value:range
            count peak:truth state:text machine:text""",
        "machine": "severity:text host:text gpu:text message:text machine:text",
    },
    "convergence": {
        "convergence": f"""remedy:text options:text global_batch status:text message:text
            reference:truth at_edge:truth seed factor learning_rate chosen:truth epochs updates
            planned_epochs planned_updates diverged:text {_LEARNING} held_out:truth
            validation_accuracy {_ORIGIN}""",
        "remedies": """remedy:text options:text global_batch status:text message:text
            reference:truth factor learning_rate at_edge:truth planned_epochs planned_updates seeds
            diverged_seeds test_accuracy:range accuracy_margin validation_accuracy""",
    },
    "full_trainings": {
        "trained_to_accuracy": f"""{_CELL} global_batch target_accuracy epochs seeds reached
            test_accuracy:range training_seconds:range run_seconds:range run_cold_seconds
            joules:range break_even_min break_even_max
            speedup:interval verdict:text scope:text note:text recipe_options:text model:text
            engine:text {_ORIGIN}""",
    },
    "synchronization": {
        "sampler": """gpus set_epoch:truth seed epoch rank samples first_epoch overlap unseen
            repeated""",
        "collectives": """gpus backend:text step phase:text kind:text content:text
            dtype:text bytes gradient_bytes ranks_agree:truth""",
        "buffers": """buffers:text gpus set_epoch:truth seed epochs rank test_loss test_accuracy
            variance_drift_max variance_drift_mean parameters_sha256:text buffers_sha256:text""",
    },
    "quantization": {
        "quantization": f"""seed stage:text accuracy_percent difference_points agreement_percent
            test_images standard_error_points packed_bytes float32_bytes compression weight_bits
            activation_bits bias:text logits:text weight_scales:text
            calibration_images mean_standard_error_points {_ORIGIN}""",
        "quantization_layers": """seed stage:text layer:text weight_bits weight_scale
            weight_minimum weight_maximum input_scale accumulator_scale
            bias_error_steps output_scale output_minimum output_maximum top_step
            accumulator_bound packed_bytes float32_bytes largest_bias bias_steps""",
        "quantization_histograms": """seed stage:text layer:text quantity:text values:text scale
            bin_low bin_high count""",
    },
}
"""Columns of each table: {kind of records: {path of the table: columns}}.

A study has a table if it has records of this kind. `name` is a number, `name:text` a text,
`name:truth` a boolean. `name:interval` means three numbers: `name`, `name_low` and `name_high`.
`name:range` means `name`, `name_min` and `name_max`.
"""
ENDS = {"interval": ("", "_low", "_high"), "range": ("", "_min", "_max")}

FORMULA = r"^'*[=+\-@\t\r]"
"""Matches a text that a spreadsheet would evaluate, even behind apostrophes."""
QUOTED = r"^'(?='*[=+\-@\t\r])"
"""Matches the apostrophe that `as_csv` puts before a text that matches `FORMULA`."""


class Table(NamedTuple):
    """A table's path (without .csv), the kind of records it needs, and the types of its columns."""

    file: str
    records: str
    types: dict[str, str]

    def path(self, tables: Path, study: str) -> Path:
        """Return the path of the CSV file below the folder `tables`."""
        return tables / f"{self.file.format(study=study)}.csv"


def parts(texts: Iterable[str]) -> list[str]:
    """Return the distinct parts of all `texts`. Within a text, "; " separates parts."""
    return list(dict.fromkeys(part for text in texts for part in text.split("; ") if part))


def interval(name: str) -> list[str]:
    """Return the columns of an interval: `name`, `name_low` and `name_high`."""
    return [f"{name}{end}" for end in ENDS["interval"]]


def _types(text: str) -> dict[str, str]:
    columns = [one.partition(":") for one in text.split()]
    return {f"{name}{end}": own for name, _, own in columns for end in ENDS.get(own, ("",))}


TABLES = {
    Path(file).name: Table(file, records, _types(text))
    for records, tables in COLUMNS.items()
    for file, text in tables.items()
}
"""All tables by name."""


class StudyFiles:
    """Paths of a study's tables, and of its records below `folder`.

    Records of a stored or partial study that do not exist are left out.
    """

    def __init__(self, config: dict[str, Any], folder: str, *, is_stored: bool) -> None:
        self._study, partial = config["study"], is_stored or config["partial"]
        self.records = {
            kind: [str(path) for own in paths if (path := folder / own).exists() or not partial]
            for kind, paths in stored.records(config).items()
        }
        """Paths of records by kind."""

    def tables(self, names: Iterable[str] = TABLES) -> list[str]:
        """Return the paths of those tables in `names` whose kind of records the study has."""
        kinds = [TABLES[name] for name in names if self.records[TABLES[name].records]]
        return [str(kind.path(Path("<results>/tables"), self._study)) for kind in kinds]


def frame(name: str, rows: Any = ()) -> pd.DataFrame:
    """Return `rows` with exactly the columns of table `name`. On one GPU the strategy is ""."""
    table = pd.DataFrame(rows, columns=[*TABLES[name].types])
    if "strategy" in table:
        table["strategy"] = table["strategy"].mask(table["gpus"] == 1, "")
    return table


def arrange(name: str, rows: Any) -> pd.DataFrame:
    """Return `rows` as table `name`, sorted by recipe (in order of appearance), then other keys."""
    table = frame(name, rows)
    order = [key for key in (*RUN_KEYS, "epoch") if key in table]
    recipes = pd.CategoricalDtype([*table["recipe"].dropna().unique()], ordered=True)
    table = table.astype({"recipe": recipes}).sort_values(order, kind="stable", ignore_index=True)
    return table.astype({"recipe": object})


def read(name: str, path: Path) -> pd.DataFrame:
    """Return the table `name` from the CSV file `path`; UserError if the file is not that table.

    A missing text becomes "", a missing boolean False, a missing number NaN.
    """
    types = pd.Series(TABLES[name].types)
    text, truth = (types.index[types == each] for each in ("text", "truth"))
    known: Any = {"usecols": types.index, "dtype": dict.fromkeys(text, str)}
    try:
        table = pd.read_csv(path, **known, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not the table {name} ({error}); make it again") from error
    table[text] = table[text].fillna("").replace(QUOTED, "", regex=True)
    return table.assign(**table[truth].eq(True))


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV: floats with all digits, integers without a point, NaN as empty text.

    Text that a spreadsheet would evaluate as a formula gets an apostrophe, which `read` removes.
    """
    # Missing values turn integers into floats; nullable types allow them.
    table = table.convert_dtypes()
    texts = table.select_dtypes(["object", "string"])
    safe = texts.replace(FORMULA, r"'\g<0>", regex=True)
    return table.assign(**safe).to_csv(index=False, lineterminator="\n")


def write(frames: Mapping[str, pd.DataFrame], tables: Path, study: str = "") -> None:
    """Write the tables in `frames`, by name, as CSV files below the folder `tables`."""
    for name, table in frames.items():
        files.write_text(TABLES[name].path(tables, study), as_csv(table[[*TABLES[name].types]]))


@dataclass(frozen=True)
class StudyTables:
    """All tables of a study, as attributes. A table that the study lacks has no rows."""

    study: str
    found: Mapping[str, pd.DataFrame]
    manifest: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in TABLES:
            raise AttributeError(f"there is no table {name}")
        kinds, types = TABLES[name].types.items(), {"truth": bool, "text": object}
        none = {column: pd.Series(dtype=types.get(own, float)) for column, own in kinds}
        return self.found.get(name, pd.DataFrame(none))


def read_study(study: str, paths: Iterable[Path], manifest: Path | None = None) -> StudyTables:
    """Read the CSV files `paths` and, if given, the dataset's `manifest` into tables of `study`."""
    frames = {path.stem: read(path.stem, path) for path in paths}
    return StudyTables(study, frames, DATASET.read(manifest) if manifest else {})


def on_cpu(provenance: pd.DataFrame) -> bool:
    """Return whether all runs used a CPU. A "GPU" of such a study is a process."""
    devices = provenance.loc[provenance["status"] != "missing", "device"]
    return set(devices) == {"cpu"}


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """Return an iterator over the rows of `table`. Columns are attributes of a row."""
    return table.itertuples()


def configuration(recipe: object, strategy: object) -> str:
    """Return recipe and strategy as a name: `tuned/ddp`; `tuned` if `strategy` is "" (one GPU)."""
    return f"{recipe}/{strategy}".removesuffix("/")


def by_configuration(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return {`tuned/ddp`: rows} by recipe and strategy, including the recipe's rows on 1 GPU."""
    return {
        configuration(recipe, strategy): rows[rows["strategy"].isin([strategy, ""])]
        for recipe, rows in table.groupby("recipe", sort=False)
        for strategy in [one for one in rows["strategy"].unique() if one] or [""]
    }
