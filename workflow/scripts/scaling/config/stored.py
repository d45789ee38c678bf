"""Stored studies: a folder with a configuration and the records it asks for.

Users may add other files (README.md): only `config.yaml`, `manifest.json` and the folders of
records belong to the study.
"""

from pathlib import Path
from typing import Any

from scaling.config.config_file import read_config
from scaling.core import files, grid
from scaling.core.errors import UserError
from scaling.core.records.convergence import convergence_path
from scaling.core.records.quantization import VARIANT_PATTERN

CONFIG = "config.yaml"
MANIFEST = "manifest.json"
RECORDS = [
    *("runs", "interconnect", "quantization", "peaks", "experiments", "convergence", "logs"),
    *("machine", "to_accuracy"),
]
"""Folders of records, laid out as below results/."""
MACHINE = Path("machine/check.json")
"""The record of the machine check."""


def find(studies: Path, name: str) -> Path:
    """Return the folder of the study `name` below `studies`; UserError lists the names."""
    there = sorted(path.parent.name for path in studies.glob(f"*/{CONFIG}"))
    if name not in there:
        known = f"there are {', '.join(there)}" if there else "there are none yet: see make pack"
        raise UserError(f"{studies} has no study {name!r}: {known}")
    return studies / name


def read(folder: Path) -> dict[str, Any]:
    """Return the configuration of the study in `folder`; UserError for a link to elsewhere."""
    return read_config(folder / CONFIG, linked=False)


def dataset_folder(config: dict[str, Any]) -> Path:
    """Return the folder of a study's prepared images, below the folder of all datasets."""
    section = config["dataset"]
    size = section.get("image_size", 32)
    return Path(section["source"] if size == 32 else f"{section['source']}-{size}")


def missing_inputs(results: Path, config: dict[str, Any], needed: list[str]) -> list[str]:
    """Return the missing ones of the files `needed` for the runs in `results`, of the same dataset.

    The first are needed for any dataset: the last is the file of its images.
    """
    if not any((results / "runs").rglob("run.json")):
        return []
    before = results / CONFIG
    same = before.exists() and read_config(before).get("dataset") == config["dataset"]
    return [path for path in (needed if same else needed[:-1]) if not Path(path).exists()]


def run_records(config: dict[str, Any]) -> list[Path]:
    """Return the record of each run of the grid, relative to the study's folder."""
    return [run.record_path(Path("runs")) for run in grid.of(config)]


def run_logs(config: dict[str, Any]) -> list[Path]:
    """Return the log of each run of the grid; a stored study may have its end."""
    return [run.log_path(Path("logs")) for run in grid.of(config)]


def other_records(config: dict[str, Any]) -> list[Path]:
    """Return all other records, relative to the study's folder; every report needs them."""
    looked = config["grid"]["seeds"] and config["machine"]["check"] != "off"
    return [
        *limits_records(config),
        *([MACHINE] if looked else []),
        *quantization_records(config),
        *synchronization_records(config),
    ]


def limits_records(config: dict[str, Any]) -> list[Path]:
    """Return the records of the interconnect and the peaks, none without a grid."""
    if not config["grid"]["seeds"]:
        return []
    sweeps = [f"interconnect/gpus~{gpus}/sweep.json" for gpus in config["grid"]["gpus"] if gpus > 1]
    return [Path(path) for path in [*sweeps, "peaks/peaks.json"]]


def quantization_records(config: dict[str, Any]) -> list[Path]:
    """Return the record of each seed and variant; without variants, of each seed's stages."""
    section = config["quantization"]
    seeds, folder = section["seeds"], Path("quantization")
    if not section["variants"]:
        return [folder / f"seed~{seed}/stages.json" for seed in seeds]
    return [
        folder / f"seed~{seed}" / VARIANT_PATTERN.format(variant=variant["name"])
        for seed in seeds
        for variant in section["variants"]
        if seed in variant.get("seeds", seeds)
    ]


def synchronization_records(config: dict[str, Any]) -> list[Path]:
    """Return the record of the synchronization experiments, relative to the study's folder.

    They use the most GPUs of one machine. None for single GPUs, or without seeds.
    """
    most = max(config["grid"]["gpus"])
    gpus = min(most, config["machine"]["gpus_per_node"] or most)
    wanted = gpus > 1 and config["synchronization"]["seeds"]
    return [Path(f"experiments/gpus~{gpus}/synchronization.json")] if wanted else []


def convergence_records(config: dict[str, Any]) -> list[Path]:
    """Return the record of each technique at each global batch, relative to the study's folder."""
    section = config["convergence"]
    return [
        convergence_path(Path("convergence"), remedy["name"], global_batch)
        for remedy in section["remedies"]
        for global_batch in section["global_batches"]
    ]


def full_trainings(config: dict[str, Any]) -> list[grid.Cell]:
    """Return the trainings that run to their end for an accuracy."""
    section = config["time_to_accuracy"]
    return [
        grid.Cell("tuned", "ddp", gpus, section["global_batch"] // gpus, seed)
        for gpus in section["gpus"]
        for seed in section["seeds"]
    ]


def full_training_records(config: dict[str, Any]) -> list[Path]:
    """Return the record of each of these trainings, relative to the study's folder."""
    return [cell.record_path(Path("to_accuracy")) for cell in full_trainings(config)]


def backend_records(config: dict[str, Any]) -> list[Path]:
    """Return the records of other quantization backends, of ResNet-18, and of ONNX exports.

    ONNX exports are of the first seed only. A stored study may have some seeds, or none.
    """
    section, folder = config["quantization"], Path("quantization")
    seeds = section["seeds"]
    names = [name for name in ("peers", "resnet18") if section[name]]
    exports = ["export.json", "resnet18_export.json"][: 1 + bool(section["resnet18"])]
    return [
        *(folder / f"seed~{seed}/{name}.json" for seed in seeds for name in names),
        *(folder / f"seed~{seed}/{name}" for seed in seeds[:1] for name in exports),
    ]


def own_files(folder: Path) -> set[Path]:
    """Return the study's own files in `folder`, relative to it; none without such a folder."""
    return {
        path.relative_to(folder)
        for name in [CONFIG, MANIFEST, *RECORDS]
        for path in [folder / name, *folder.glob(f"{name}/**/*")]
        if path.is_file()
    }


def check(folder: Path, config: dict[str, Any]) -> None:
    """Raise UserError unless `folder` has exactly the files that its configuration asks for.

    With `partial` in the configuration, runs may lack a record.
    """
    runs, others = run_records(config), [Path(CONFIG), Path(MANIFEST), *other_records(config)]
    runs += [*convergence_records(config), *full_training_records(config)]
    there = own_files(folder)
    needed = others if config["partial"] else [*runs, *others]
    missing = [path for path in needed if path not in there]
    if missing:
        partial = "" if set(missing) & set(others) else ", or pass --config partial=true"
        raise UserError(
            f"{folder} lacks {len(missing)} of the {len(needed)} files its {CONFIG} asks for, the "
            f"first is {missing[0]}: restore them{partial}"
        )
    for log in run_logs(config):
        if (folder / log).is_symlink() or (folder / log).exists():
            files.regular(folder / log, linked=False)
    asked = {*runs, *others, *backend_records(config), *run_logs(config)}
    unknown = sorted(there - asked)
    if unknown:
        raise UserError(
            f"{folder / unknown[0]} is no part of the study that its {CONFIG} describes: remove "
            "it, or add it to the grid there"
        )
