"""What was run on what: the head of the report."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.registry import model
from scaling.tables import schema
from scaling.tables.schema import StudyTables


def headline(study: StudyTables) -> str:
    """`ResNet-18 on CIFAR-10, 2 × NVIDIA H200`, as far as the records say."""
    runs = _recorded(study)
    models = _values(runs, "model")
    title = model.title(models[0].partition(",")[0]) if models else _beside_a_grid(study)
    return ", ".join(filter(None, [f"{title} on {dataset(study)}", machine(study.provenance)]))


def _beside_a_grid(study: StudyTables) -> str:
    """`Large batches and int8 quantization`: what a study without timed runs measured."""
    kinds = {
        "large batches": (study.remedies, study.full_trainings),
        "what ranks share": (study.sampler,),
        "int8 quantization": (study.quantization, study.quantization_resnet),
    }
    found = [words for words, tables in kinds.items() if any(map(len, tables))]
    return (" and ".join(found) or "nothing").capitalize()


def machine(provenance: pd.DataFrame) -> str:
    """`2 × NVIDIA H200`, or nothing where no run recorded a device."""
    runs = provenance[provenance["status"] != "missing"]
    names = {part for value in _values(runs, "device_names") for part in value.split("; ")}
    device = "CPU processes" if schema.on_cpu(provenance) else " or ".join(sorted(names))
    return f"{provenance['gpus'].max()} × {device}" if device else ""


def unfit(findings: pd.DataFrame) -> str:
    """The worst that a look at the machine found, and how much more; nothing where it was fit."""
    more = f" And {len(findings) - 1} more: machine.csv." if len(findings) > 1 else ""
    return "".join(
        f"{row.host} {row.gpu[:12]}".strip() + f": {row.message}.{more}"
        for row in schema.rows_of(findings[:1])
    )


def dataset(study: StudyTables) -> str:
    """`CIFAR-10`, also of its images in another form, or the source that was named."""
    source, origin = study.manifest["source"], study.manifest["origin"].lower()
    name = "CIFAR-10" if "cifar10" in f"{source} {origin}" else str(source)
    side = study.manifest["image_shape"][0]
    return name if side == 32 else f"{name} at {side} × {side}"


def summary(study: StudyTables, replayed_from: str | None) -> str:
    """One line: cells by status, seeds, epochs, since when; without a grid machines and commits."""
    if (study.timing["status"] == "missing").all():
        resnet = study.quantization_resnet.rename(columns={"device": "cpu"})
        told = pd.concat([study.quantization, study.quantization_peers, resnet])
        told = told[["cpu", "commit"]].astype(object).fillna("")
        commits = ", ".join(map(_commit, _values(told, "commit")))
        made = [*_values(told, "cpu"), f"commit {commits}" if commits else ""]
        return " · ".join(filter(None, [f"{_beside_a_grid(study)} alone", *made]))
    counts = study.timing["status"].value_counts(sort=False)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    epochs = fmt.whole_span(study.timing["count"].dropna())
    started = min(_values(_recorded(study), "started"), default="")
    parts = [
        f"{fmt.plural(len(study.timing), 'cell')}: {statuses}",
        fmt.plural(study.provenance["seed"].nunique(), "seed"),
        f"{epochs} epochs each",
        f"{'replayed from records of' if replayed_from else 'measured'} {started[:10]}",
    ]
    return " · ".join(parts)


def facts(study: StudyTables) -> list[tuple[str, str]]:
    """(what, value) pairs on dataset, model, training, machine and software."""
    manifest = study.manifest
    data = (
        f"{manifest['source']} ({manifest['origin']}): {manifest['train_images']:,} training "
        f"and {manifest['test_images']:,} test images, {len(manifest['classes'])} classes"
    )
    return [("Dataset", data), *run_facts(_recorded(study))]


def run_facts(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """(what, value) pairs on model, training, machine and software of runs with a record."""
    software = {"torch": "torch", "cuda": "CUDA", "nccl": "NCCL", "driver": "driver"}
    known = {name: "; ".join(_values(runs, column)) for column, name in software.items()}
    versions = [f"{name} {version}" for name, version in known.items() if version]
    pairs = [
        ("Model", "; ".join(_values(runs, "model")[:1])),
        ("Training", _per_recipe(runs, "training")),
        ("Recipe options", _per_recipe(runs, "recipe_options")),
        ("CPU", "; ".join(_values(runs, "cpu"))),
        ("Software", ", ".join(versions)),
        ("Commit", ", ".join(dict.fromkeys(map(_commit, _values(runs, "commit"))))),
    ]
    return [(what, value) for what, value in pairs if value]


def _recorded(study: StudyTables) -> pd.DataFrame:
    return study.provenance[study.provenance["status"] != "missing"]


def _values(runs: pd.DataFrame, column: str) -> list[Any]:
    """The distinct values of a column that has some, in order."""
    return [value for value in runs[column].unique() if value] if column in runs else []


def _per_recipe(runs: pd.DataFrame, column: str) -> str:
    """The value of each recipe, from its runs that ended well; said once where all share it."""
    runs = runs[runs["status"] == "ok"]
    said = {
        str(recipe): " or ".join(_values(rows, column)) for recipe, rows in runs.groupby("recipe")
    }
    if len(set(said.values())) <= 1:
        return "".join(set(said.values()))
    return ". ".join(f"In {recipe}: {value or 'none'}" for recipe, value in said.items())


def _commit(commit: str) -> str:
    """The first characters of a commit, with the mark of a changed checkout."""
    name, changes, _ = commit.partition("+changes")
    return f"{name[:12]}{' with uncommitted changes' if changes else ''}"
