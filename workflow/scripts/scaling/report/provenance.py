"""Describe what was run, on which machines, and by which version."""

import re
from typing import Any

import pandas as pd

from scaling.claims.claim import span
from scaling.core import code_digest
from scaling.core import numbers as fmt
from scaling.core.errors import UserError
from scaling.registry.engine import measuring_code
from scaling.registry.entries import model_title
from scaling.report.cells import by_status
from scaling.tables import schema
from scaling.tables.noise import most_nodes
from scaling.tables.schema import StudyTables

EXPERIMENTS = {
    "techniques": ["scaling.large_batches.experiment"],
    "int8": ["scaling.quantization.training", "scaling.quantization.variant"],
}
"""Modules that measure without an engine of the registry, by the name used as their engine."""
SOFTWARE = {"torch": "torch", "cuda": "CUDA", "nccl": "NCCL", "driver": "driver"}


def headline(study: StudyTables) -> str:
    """Return model, dataset and machine, if known: `ResNet-18 on CIFAR-10, 2 × NVIDIA H200`."""
    runs = recorded(study)
    models = _values(runs, "model")
    name = model_title(models[0].partition(",")[0]) if models else study.study
    own = models == ["own"]
    what = " and ".join(_values(runs, "recipe")) if own else f"{name} on {dataset(study)}"
    return ", ".join(filter(None, [what, machine(runs)]))


def title(study: StudyTables, cells: pd.DataFrame) -> str:
    """Return the question that the page answers: `How fast does ResNet-18 train on 2 × H100?`."""
    runs, (what, _, _) = recorded(study), headline(study).rpartition(", ")
    if not machine(runs) or schema.on_cpu(runs):
        return headline(study)
    counts, noun = fmt.whole_span(cells["gpus"]), "GPU" if cells["gpus"].max() == 1 else "GPUs"
    device = re.sub(r"NVIDIA | \d+GB( HBM\w*)?", "", _devices(runs))
    return f"How fast does {what} train on {counts} {device} {noun}{_nodes(runs)}?"


def recipes(study: StudyTables) -> list[tuple[str, str]]:
    """Return (name, options) of each recipe, without options that are off."""
    runs = pd.concat([recorded(study), study.trained_to_accuracy])
    runs = runs[runs["recipe_options"] != ""].drop_duplicates("recipe")
    options = runs["recipe_options"].str.replace(r" True\b|, \w+ False\b", "", regex=True)
    parts = runs["engine"].map({"eager": "PyTorch’s standard parts, "}).fillna("")
    return [*zip(runs["recipe"], parts + options, strict=True)]


def machine(runs: pd.DataFrame) -> str:
    """Return number and name of the devices, `2 × NVIDIA H200 on 2 nodes`; "" if unknown."""
    devices = _devices(runs)
    return f"{runs['gpus'].max()} × {devices}{_nodes(runs)}" if devices else ""


def _devices(runs: pd.DataFrame) -> str:
    names = sorted(schema.parts(_values(runs, "device_names")))
    return "CPU processes" if schema.on_cpu(runs) else " or ".join(names)


def _nodes(runs: pd.DataFrame) -> str:
    nodes = most_nodes(runs.loc[runs["gpus"] > 1, "machine"].astype(str))
    return f" on {nodes} nodes" * (nodes > 1)


def unfit(findings: pd.DataFrame) -> str:
    """Return the machine check's first finding and the number of others; "" without findings."""
    more = f" And {len(findings) - 1} more: machine.csv." if len(findings) > 1 else ""
    places = (findings["host"] + " " + findings["gpu"].str[:12]).str.strip()
    return "".join((places + ": " + findings["message"] + ".")[:1]) + more


def dataset(study: StudyTables) -> str:
    """Return the dataset's name. If images are not 32 pixels wide, the name has their size."""
    of = study.manifest
    if of["source"] == "own":
        return "own data"
    name = "CIFAR-10" if "cifar10" in f"{of['source']} {of['origin']}".lower() else of["source"]
    side = of["image_shape"][0]
    return name if side == 32 else f"{name} at {side} × {side}"


def summary(study: StudyTables, cells: pd.DataFrame) -> str:
    """Return one line: what was run, date, commits, and whether the code changed since."""
    runs = recorded(study)
    if len(runs):
        many = fmt.plural(len(cells), "configuration")
        parts = [f"{many}: {by_status(cells)}", fmt.plural(runs["seed"].nunique(), "seed")]
    else:
        runs, parts = _untimed(study), [_trainings(study.trained_to_accuracy)]
        if techniques := study.convergence["remedy"].nunique():
            parts.insert(0, f"{fmt.plural(techniques, 'technique')} for large batches")
        if networks := study.quantization["seed"].nunique():
            parts.append(f"{fmt.plural(networks, 'network')} quantized")
    commits = list(dict.fromkeys(one[:7] for one in schema.parts(_values(runs, "commit"))))
    named = f"commit {', '.join(commits)}" if len(commits) < 4 else f"{len(commits)} commits"
    if days := sorted(one[:10] for one in schema.parts(_values(runs, "started"))):
        parts.append(f"measured {'–'.join(sorted({days[0], days[-1]}))}")
    parts += [f"{named} ({text})" for text in age(runs)]
    # Variables that take a link from NCCL.
    parts += [one for one in schema.parts(_values(runs, "variables")) if "_DISABLE=1" in one]
    return ", ".join(filter(None, parts)) or "no timed runs"


def _untimed(study: StudyTables) -> pd.DataFrame:
    """Return the trainings outside the grid; their `engine` may be a name in `EXPERIMENTS`."""
    techniques = study.convergence.assign(engine="techniques", model="")
    networks = study.quantization.assign(engine="int8", model="", status="ok")
    return pd.concat([techniques, study.trained_to_accuracy.assign(status="ok"), networks])


def _trainings(table: pd.DataFrame) -> str:
    """Return text, `0 of 3 trainings reached 89 % (75.9–80.6 %)`; "" if the table is empty."""
    reached, seeds = (int(table[name].sum()) for name in ("reached", "seeds"))
    trainings = fmt.plural(seeds, "training")
    ends = pd.concat([table["test_accuracy_min"], table["test_accuracy_max"]]).dropna()
    accuracies = f" ({span(100 * ends, '{:.1f} %'.format)})" * bool(len(ends))
    return ", ".join(
        f"{reached} of {trainings} reached {fmt.percent(target)}{accuracies}"
        for target in table["target_accuracy"].unique()
    )


def age(runs: pd.DataFrame) -> list[str]:
    """Return [a text] on whether the measuring code changed since the runs; [] without commits."""
    if not any(_values(runs, "commit")):
        return []
    changed = set[str]()
    measured = runs[runs["status"] == "ok"].astype(object).fillna("").astype(str)
    kinds = measured[["engine", "model", "code_packages"]].drop_duplicates()
    if kinds.empty:
        return []
    for engine, model, packages in kinds.itertuples(index=False):
        if not packages:
            return ["older measuring code"]
        try:
            name = model.partition(",")[0]
            modules = EXPERIMENTS.get(engine) or measuring_code(engine, name)
            now = code_digest.packages(*modules)
        except (OSError, ImportError, UserError):
            return ["its model or engine is not here to compare its code"]
        before = {tuple(one.split(" ")) for one in packages.split("; ")}
        changed |= {name for name, _ in now.items() ^ before}
    if changed:
        return [f"this version measures by other code ({', '.join(sorted(changed))})"]
    return ["this version’s measuring code"]


def facts(study: StudyTables) -> dict[str, str]:
    """Return named texts: dataset, model, training, commit, and a line for each machine."""
    of, runs, found = study.manifest, recorded(study), dict[str, str]()
    if of["source"] != "own":
        found["Dataset"] = (
            f"{of['source']} ({of['origin']}): {of['train_images']:,} training and "
            f"{of['test_images']:,} test images, {len(of['classes'])} classes"
        )
    if runs.empty:
        others = _untimed(study)
        found |= {"GPU": "; ".join(_values(others, "device_names"))} | run_facts(others)
        return {name: value for name, value in found.items() if value}
    of_runs = run_facts(runs)
    found |= {name: of_runs[name] for name in of_runs if name not in ("CPU", "Hosts", "Software")}
    groups = runs.sort_values("started", kind="stable").groupby("machine", sort=False)
    for number, (_, own) in enumerate(groups, 1):
        known = run_facts(own)
        cores = [f"{count} cores" for count in _values(own, "cpu_count")]
        parts = [machine(own), known.get("CPU"), *cores, known.get("Software")]
        parts += [*_values(own, "variables"), fmt.plural(len(own), "run")]
        found[f"Machine {number}"] = ", ".join(filter(None, parts))
    return found


def run_facts(runs: pd.DataFrame) -> dict[str, str]:
    """Return named texts on model, training, machine and software of recorded runs."""
    names = ("Model", "Training", "CPU", "Hosts")
    found = {name: "; ".join(_values(runs, name.lower())) for name in names}
    found["Model"] = found["Model"].partition("; ")[0]
    software = {name: "; ".join(_values(runs, column)) for column, name in SOFTWARE.items()}
    found["Software"] = ", ".join(f"{name} {value}" for name, value in software.items() if value)
    named = schema.parts(_values(runs, "commit"))
    commits = [one[:12] + "+changes" * ("+changes" in one) for one in named]
    found["Commit"] = ", ".join(dict.fromkeys(commits))
    return {name: value for name, value in found.items() if value}


def recorded(study: StudyTables) -> pd.DataFrame:
    """Return the rows of provenance.csv whose runs have a record."""
    return study.provenance[study.provenance["status"] != "missing"]


def _values(runs: pd.DataFrame, column: str) -> list[Any]:
    return [value for value in runs.get(column, pd.Series()).dropna().unique() if value]
