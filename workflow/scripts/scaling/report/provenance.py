"""The head of the report: what was run, and on which machine."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry import model
from scaling.tables import schema
from scaling.tables.schema import StudyTables


def headline(study: StudyTables) -> str:
    """Return `ResNet-18 on CIFAR-10, 2 × NVIDIA H200`, as far as known."""
    runs = _recorded(study)
    models = _values(runs, "model")
    title = model.title(models[0].partition(",")[0]) if models else _beside_a_grid(study)
    return ", ".join(filter(None, [f"{title} on {dataset(study)}", machine(study.provenance)]))


def _beside_a_grid(study: StudyTables) -> str:
    """Return `Large batches and int8 quantization`: what a study without timed runs measured."""
    kinds = {
        "large batches": (study.remedies, study.trained_to_accuracy),
        "what ranks share": (study.sampler,),
        "int8 quantization": (study.quantization, study.quantization_resnet),
    }
    found = [words for words, tables in kinds.items() if any(map(len, tables))]
    return (" and ".join(found) or "nothing").capitalize()


ENGINES = {
    "eager": "PyTorch’s standard parts",
    "resident": "images on the GPU, own exchange of gradients",
}
"""What the engines of the project are."""


def recipes(study: StudyTables) -> list[tuple[str, str]]:
    """Return each recipe's name, and its engine and options, or its purpose, in words."""
    runs = _recorded(study).merge(study.costs[[*CELL_KEYS, "engine"]], on=CELL_KEYS)
    firsts = runs[runs["status"] == "ok"].drop_duplicates("recipe")
    found = {
        run.recipe: ": ".join(filter(None, [ENGINES.get(run.engine, run.engine), on]))
        for run in schema.rows_of(firsts)
        for on in [_switches(run.recipe_options)]
    }
    for trained in schema.rows_of(study.trained_to_accuracy):
        found.setdefault(
            trained.recipe, f"to {fmt.percent(trained.target_accuracy)}, trained apart"
        )
    return list(found.items())


def _switches(options: str) -> str:
    """Return the options of a recipe in words, without those that are off."""
    said = [option.removesuffix(" True") for option in options.split(", ")]
    return ", ".join(fmt.words(option) for option in said if not option.endswith(" False"))


def of_the_lab(study: StudyTables) -> bool:
    """Return whether no other network than the lab's was timed."""
    return all(name.startswith("resnet18-cifar,") for name in _values(_recorded(study), "model"))


def machine(provenance: pd.DataFrame) -> str:
    """Return `2 × NVIDIA H200`, or "" if no run recorded a device."""
    runs = provenance[provenance["status"] != "missing"]
    names = {part for value in _values(runs, "device_names") for part in value.split("; ")}
    device = "CPU processes" if schema.on_cpu(provenance) else " or ".join(sorted(names))
    return f"{provenance['gpus'].max()} × {device}" if device else ""


def unfit(findings: pd.DataFrame) -> str:
    """Return the worst finding of the machine check, and the number of others; "" for none."""
    more = f" And {len(findings) - 1} more: machine.csv." if len(findings) > 1 else ""
    return "".join(
        f"{row.host} {row.gpu[:12]}".strip() + f": {row.message}.{more}"
        for row in schema.rows_of(findings[:1])
    )


def dataset(study: StudyTables) -> str:
    """Return `CIFAR-10`, also for other files of its images, or the source's name."""
    source, origin = study.manifest["source"], study.manifest["origin"].lower()
    if source == "own":
        return "own data"
    name = "CIFAR-10" if "cifar10" in f"{source} {origin}" else str(source)
    side = study.manifest["image_shape"][0]
    return name if side == 32 else f"{name} at {side} × {side}"


def summary(study: StudyTables, replayed_from: str | None) -> str:
    """Return a line on cells by status, seeds, epochs, date; or on machines and commits."""
    if (study.timing["status"] == "missing").all():
        resnet = study.quantization_resnet.rename(columns={"device": "cpu"})
        part_b = pd.concat([study.quantization, resnet])
        part_b = part_b[["cpu", "commit"]].astype(object).fillna("")
        commits = ", ".join(map(_commit, _values(part_b, "commit")))
        made = [*_values(part_b, "cpu"), f"commit {commits}" if commits else ""]
        return " · ".join(filter(None, [f"{_beside_a_grid(study)} alone", *made]))
    shared = study.provenance[study.provenance["measured_as"].fillna("").ne("")][
        CELL_KEYS
    ].drop_duplicates()
    cells = study.timing.merge(shared, how="left", on=CELL_KEYS, indicator=True)
    cells = cells[cells["_merge"] == "left_only"]
    counts = cells["status"].value_counts(sort=False)
    statuses = ", ".join(f"{count} {fmt.words(status)}" for status, count in counts.items())
    epochs = fmt.whole_span(study.timing["count"].dropna())
    started = min(_values(_recorded(study), "started"), default="")
    parts = [
        f"{fmt.plural(len(cells), 'cell')}: {statuses}",
        fmt.plural(study.provenance["seed"].nunique(), "seed"),
        f"{epochs} epochs each",
        f"{'replayed from records of' if replayed_from else 'measured'} {started[:10]}",
    ]
    return " · ".join(parts)


def facts(study: StudyTables) -> list[tuple[str, str]]:
    """Return (name, value) pairs on dataset, model, training, machine and software."""
    manifest = study.manifest
    if manifest["source"] == "own":
        return run_facts(_recorded(study))
    data = (
        f"{manifest['source']} ({manifest['origin']}): {manifest['train_images']:,} training "
        f"and {manifest['test_images']:,} test images, {len(manifest['classes'])} classes"
    )
    return [("Dataset", data), *run_facts(_recorded(study))]


def run_facts(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (name, value) pairs on model, training, machine and software of recorded runs."""
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
    """Return the distinct non-empty values of a column."""
    return [value for value in runs[column].unique() if value] if column in runs else []


def _per_recipe(runs: pd.DataFrame, column: str) -> str:
    """Return each recipe's value, from its ok runs; once if all share it."""
    runs = runs[runs["status"] == "ok"]
    said = {
        str(recipe): " or ".join(_values(rows, column)) for recipe, rows in runs.groupby("recipe")
    }
    if len(set(said.values())) <= 1:
        return "".join(set(said.values()))
    return ". ".join(f"In {recipe}: {value or 'none'}" for recipe, value in said.items())


def _commit(commit: str) -> str:
    """Return the abbreviated commit, with a mark for a modified checkout."""
    name, changes, _ = commit.partition("+changes")
    return f"{name[:12]}{' with uncommitted changes' if changes else ''}"
