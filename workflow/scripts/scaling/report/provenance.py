"""The head of the report: what was run, and on which machine."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry import model
from scaling.report.cells import by_status
from scaling.tables import schema
from scaling.tables.schema import StudyTables, rows_of

WORDS = {
    "eager": "PyTorch’s standard parts",
    "resident": "images on the GPU, own exchange of gradients",
    "muon": "optimizer Muon at rate",
    "decay": "rate decay",
}
"""The project's engines and options of recipes in words, where these differ from their names."""


def headline(study: StudyTables) -> str:
    """Return `ResNet-18 on CIFAR-10, 2 × NVIDIA H200`, as far as known."""
    runs = recorded(study)
    models = _values(runs, "model")
    title = model.title(models[0].partition(",")[0]) if models else _untimed(study)
    return ", ".join(filter(None, [f"{title} on {dataset(study)}", machine(runs)]))


def _untimed(study: StudyTables) -> str:
    """Return `Large batches and int8 quantization`: what a study without timed runs measured."""
    kinds = {
        "large batches": (study.remedies, study.trained_to_accuracy),
        "what ranks share": (study.sampler,),
        "int8 quantization": (study.quantization, study.quantization_resnet),
    }
    found = [words for words, tables in kinds.items() if any(map(len, tables))]
    return (" and ".join(found) or "nothing").capitalize()


def recipes(study: StudyTables) -> list[tuple[str, str]]:
    """Return each recipe's name, and its engine and options in words.

    One that was trained to an accuracy is told by what it adds to another.
    """
    runs = recorded(study).merge(study.costs[[*CELL_KEYS, "engine"]], on=CELL_KEYS)
    firsts = runs[runs["status"] == "ok"].drop_duplicates("recipe")
    found, options = {}, {}
    for run in rows_of(firsts):
        options[run.recipe] = run.recipe_options.split(", ")
        parts = [WORDS.get(run.engine, run.engine), _words(options[run.recipe])]
        found[run.recipe] = ": ".join(filter(None, parts))
    for trained in rows_of(study.trained_to_accuracy.drop_duplicates("recipe")):
        own = trained.recipe_options.split(", ")
        base = next((name for name, its in options.items() if set(its) <= set(own)), "")
        said = _words([one for one in own if one not in options.get(base, ())])
        said = f"as {base}, with {said}" if base else said
        goal = f"to {fmt.percent(trained.target_accuracy)}, trained apart"
        found.setdefault(trained.recipe, f"{said}; {goal}")
    return list(found.items())


def _words(options: list[str]) -> str:
    """Return the options of a recipe in words, without those that are off or of its engine."""
    said = []
    for name, _, value in (option.partition(" ") for option in options):
        if value not in ("False", "resident"):
            named = WORDS.get(name, fmt.words(name))
            said.append(f"{named} {fmt.words(value)}".removesuffix(" True"))
    return ", ".join(said)


def of_the_lab(study: StudyTables) -> bool:
    """Return whether no other network than the lab's was timed."""
    return all(name.startswith("resnet18-cifar,") for name in _values(recorded(study), "model"))


def machine(runs: pd.DataFrame) -> str:
    """Return `2 × NVIDIA H200`, or "" if no run recorded a device."""
    names = {part for value in _values(runs, "device_names") for part in value.split("; ")}
    device = "CPU processes" if schema.on_cpu(runs) else " or ".join(sorted(names))
    return f"{runs['gpus'].max()} × {device}" if device else ""


def unfit(findings: pd.DataFrame) -> str:
    """Return the worst finding of the machine check, and the number of others; "" for none."""
    more = f" And {len(findings) - 1} more: machine.csv." if len(findings) > 1 else ""
    places = (findings["host"] + " " + findings["gpu"].str[:12]).str.strip()
    return "".join((places + ": " + findings["message"] + "." + more)[:1])


def dataset(study: StudyTables) -> str:
    """Return `CIFAR-10`, also for other files of its images, or the source's name."""
    source, origin = study.manifest["source"], study.manifest["origin"].lower()
    if source == "own":
        return "own data"
    name = "CIFAR-10" if "cifar10" in f"{source} {origin}" else str(source)
    side = study.manifest["image_shape"][0]
    return name if side == 32 else f"{name} at {side} × {side}"


def summary(study: StudyTables, cells: pd.DataFrame, replayed_from: str | None) -> str:
    """Return a line on `cells` by status, seeds, epochs, date; or on machines and commits."""
    if (cells["status"] == "missing").all():
        resnet = study.quantization_resnet.rename(columns={"device": "cpu"})
        part_b = pd.concat([study.quantization, resnet])
        facts = dict(run_facts(part_b[["cpu", "commit"]].astype(object).fillna("")))
        commit = f"commit {facts['Commit']}" if "Commit" in facts else ""
        return " · ".join(filter(None, [f"{_untimed(study)} alone", facts.get("CPU"), commit]))
    started = min(_values(recorded(study), "started"), default="")
    parts = [
        f"{fmt.plural(len(cells), 'cell')}: {by_status(cells)}",
        fmt.plural(study.provenance["seed"].nunique(), "seed"),
        f"{fmt.whole_span(cells['count'].dropna())} measured epochs each",
        f"{'replayed from records of' if replayed_from else 'measured'} {started[:10]}",
    ]
    return " · ".join(parts)


def facts(study: StudyTables) -> list[tuple[str, str]]:
    """Return (name, value) pairs on dataset, model, training, machine and software."""
    of, found = study.manifest, run_facts(recorded(study))
    if of["source"] == "own":
        return found
    data = (
        f"{of['source']} ({of['origin']}): {of['train_images']:,} training and "
        f"{of['test_images']:,} test images, {len(of['classes'])} classes"
    )
    return [("Dataset", data), *found]


def run_facts(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Return (name, value) pairs on model, training, machine and software of recorded runs."""
    software = {"torch": "torch", "cuda": "CUDA", "nccl": "NCCL", "driver": "driver"}
    known = {name: "; ".join(_values(runs, column)) for column, name in software.items()}
    commits = [
        commit[:12] + " with uncommitted changes" * ("+changes" in commit)
        for commit in _values(runs, "commit")
    ]
    pairs = [
        ("Model", "; ".join(_values(runs, "model")[:1])),
        ("Training", "; ".join(_values(runs, "training"))),
        ("CPU", " · ".join(_values(runs, "cpu"))),
        ("Hosts", "; ".join(_values(runs, "hosts"))),
        ("Software", ", ".join(f"{name} {value}" for name, value in known.items() if value)),
        ("Commit", ", ".join(dict.fromkeys(commits))),
    ]
    return [(what, value) for what, value in pairs if value]


def recorded(study: StudyTables) -> pd.DataFrame:
    """Return the runs of provenance.csv that have a record."""
    return study.provenance[study.provenance["status"] != "missing"]


def _values(runs: pd.DataFrame, column: str) -> list[Any]:
    """Return the distinct non-empty values of a column."""
    return [value for value in runs[column].unique() if value] if column in runs else []
