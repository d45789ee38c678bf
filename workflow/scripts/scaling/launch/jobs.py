"""Compute options, code digests and resources of jobs, for the Snakemake rules."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from scaling.config import stored
from scaling.core import code_digest, grid
from scaling.core.training_options import Limits, Options
from scaling.launch.measure import Measurement
from scaling.registry.engine import measuring_code
from scaling.registry.entries import DATASETS
from scaling.registry.strategy import STRATEGIES

SHORTEST_LIMIT = 600.0
"""Minimum time limit of a job in seconds. The limit of the run in a job may be shorter."""
REQUESTED = ("nodes", "runtime", "slurm_extra", "gpu", "gres", "mpi", "tasks", "tasks_per_gpu")
"""Names of the Snakemake resources of a timed job. `Jobs.requested` returns their values."""


measuring = partial(code_digest.digest, measuring=True)


def as_json(**arguments: Any) -> str:
    """Return the keyword arguments as JSON, which a script's main function reads."""
    return json.dumps(arguments, default=str, sort_keys=True)


def in_turns(runs: Sequence[grid.Cell]) -> list[grid.Cell]:
    """Return the runs in the order in which they are measured.

    Each repeat of a seed is one pass over the grid. Some passes are reversed, so that recipes A and
    B run as A B, B A, B A, A B: a drift of the machine affects both equally. Within a pass, runs
    with equal GPUs and batch size are neighbours.
    """
    passes: dict[tuple[int, int], list[grid.Cell]] = {}
    for run in runs:
        passes.setdefault((run.repeat, run.seed), []).append(run)
    ordered: list[grid.Cell] = []
    for number, one in enumerate(passes.values()):
        one.sort(key=lambda run: (run.gpus, run.batch_size))
        ordered += reversed(one) if number.bit_count() % 2 else one
    return ordered


class Jobs:
    """Computes a study's job options and resources from `config` and Snakemake's `workflow`."""

    def __init__(self, config: dict[str, Any], workflow: Any, records: str = "results") -> None:
        machine, runs = config["machine"], grid.of(config)
        self._config, self._workflow, self._shares = config, workflow, machine["share"]
        self.most = max(config["grid"]["gpus"])
        """The largest number of GPUs in the grid."""
        self.minutes = math.ceil(max(machine["time_limit_seconds"], SHORTEST_LIMIT) / 60) + 5
        """Time limit of a job in minutes: the measurement's limit, plus 5 to start and stop."""
        self._per_node = machine["gpus_per_node"] or math.inf
        recipes = config["recipes"]
        workers = [recipes[name].get("loader_workers", 0) for name in config["grid"]["recipes"]]
        self._cores_per_gpu = machine["cpu_threads"] + max(workers)
        self.first = len(runs) + 1
        """Priority of jobs that must come before all runs of the grid."""
        self.commands = {name: own for name, own in recipes.items() if "command" in own}
        """Recipes that run a command of the user, by name."""
        self._records = Path(records)
        repeats = map(grid.repeat_folder, range(config["grid"].get("repeats", 1)))
        there = self._records.joinpath("runs").rglob
        self._begun = {one: any(there(f"seed~*{one}/run.json")) for one in repeats}
        """Maps a repeat's folder (`grid.repeat_folder`) to whether it has records of runs."""
        last_first = reversed(in_turns(runs))
        self._places = {run.record_path(Path()): n for n, run in enumerate(last_first, 1)}

    def machine_check(self, wildcards: Mapping[str, str]) -> list[str]:
        """Return the input of a repeat's jobs: a list with the path of its machine check, or [].

        An existing check is always in the list. A missing check is in the list only before the
        first record of the repeat, because a new input makes Snakemake rerun jobs.
        """
        repeat = wildcards.get("repeat", "")
        path = self._records / f"machine{repeat}/check.json"
        wanted = self._config["machine"]["check"] != "off" and not self._begun.get(repeat)
        return [str(path)] if wanted or path.exists() else []

    def machine_checks(self) -> list[str]:
        """Return the paths of the machine checks of all repeats."""
        return [path for repeat in self._begun for path in self.machine_check({"repeat": repeat})]

    def options(self, kind: type[Options], *sections: str, **own: Any) -> dict[str, Any]:
        """Return the values of the fields of `kind`, by name.

        A value comes from `own`, or the last of machine, training and `sections` that has its key.
        """
        model = self._config["model"]
        values = {"device": self._config["device"], "model": model, "model_width": model["width"]}
        for section in ("machine", "training", *sections):
            values |= self._config[section]
        found = {key: values[key] for key in kind.model_fields if key in values} | own
        if "warmup_epochs" not in found and "time_limit_seconds" in found:  # It is not a run's.
            found["time_limit_seconds"] = max(found["time_limit_seconds"], SHORTEST_LIMIT)
        return found

    def job(self, name: str, kind: type[Measurement], *sections: str) -> dict[str, Any]:
        """Return the `params` of a rule that makes a measurement: the functions `job` and `files`.

        Both return JSON with the single key `name`. `job` returns the options of `kind` from
        `sections` of the configuration, `files` returns paths. Snakemake reruns a job if its
        options change. It ignores changes of paths, because `files` has the parameter `output`.
        """

        def job(wildcards: Any) -> str:
            gpus = self.gpus(wildcards)
            options = self.options(kind, *sections, gpus=gpus, nodes=self.nodes(gpus))
            return as_json(**{name: options})

        def files(wildcards: Any, input: Any, output: Any) -> str:
            given = {**input, "output": output[0]}
            return as_json(**{name: {key: given[key] for key in given if key in kind.model_fields}})

        return {"job": job, "files": files}

    def run(self, kind: type[Limits], *sections: str, **own: Any) -> dict[str, Any]:
        """Return the `params` of the Snakemake rule that makes a run: functions `job` and `files`.

        Wildcards name the run. `job` returns the options of `kind` as JSON, from `sections` of the
        configuration and from `own`. `files` returns the paths of output and dataset as JSON.
        """

        def job(wildcards: Any) -> str:
            options = self._config["recipes"][wildcards["recipe"]]
            recipe = {key: options[key] for key in options if key not in ("engine", *grid.LIMITS)}
            if "command" in recipe:  # The rest is of its tables.
                recipe = {"command": recipe["command"]}
            cell = {key: wildcards[key] for key in ("recipe", "strategy")}
            cell |= {key: int(wildcards[key]) for key in ("gpus", "batch_size", "seed")}
            cell["repeat"] = int(wildcards["repeat"].rpartition("~")[2] or 0)
            of_run = {"cell": cell, "recipe_options": recipe, "engine": options["engine"]}
            of_run |= {"nodes": self.nodes(cell["gpus"])}
            return as_json(spec=self.options(kind, *sections, **own, **of_run))

        def files(wildcards: Any, input: Any, output: Any) -> str:
            images, manifest = input.get("dataset"), input.get("manifest")
            return as_json(output=output[0], images=images, manifest=manifest)

        return {"job": job, "files": files}

    def dataset(self) -> dict[str, Any]:
        """Return the `params` of the dataset rule: functions `job` (options) and `files` (paths).

        `files` returns outputs and the source's `places`. The `places` are null in `job`.
        """
        section = self._config["dataset"]
        source = DATASETS.find(section["source"])
        places = {key: section[key] for key in source.places}
        request = {key: section[key] for key in ("source", "image_size", *source.options)}
        request |= dict.fromkeys(places)
        request["raw_folder"] = f"resources/dataset/{stored.dataset_folder(self._config)}/raw"
        return {
            "job": lambda wildcards: as_json(request=request),
            "files": lambda wildcards, output: as_json(request=places, **output),
        }

    def code_of_cell(self, wildcards: Any) -> str:
        """Return the digest of the code that trains a run: engine, strategy and model."""
        engine = self._config["recipes"][wildcards["recipe"]]["engine"]
        code = measuring_code(engine, self._config["model"]["name"])
        return self.code_of_timed(*code, *STRATEGIES.modules(wildcards["strategy"]))

    def code_of_timed(self, *modules: str | Path) -> str:
        """Return the digest of `modules`, plus a suffix if timed jobs may run side by side."""
        return measuring(*modules) + " side by side" * self._shares

    def place(self, wildcards: Mapping[str, str]) -> int:
        """Return a run's priority: the earlier in `in_turns`, the higher; 0 if not in the grid."""
        return self._places.get(Path(grid.RUN_PATTERN.format(**wildcards), "run.json"), 0)

    def gpus(self, wildcards: Mapping[str, str]) -> int:
        """Return wildcard `gpus`; without it, the most GPUs of the grid, but at most one node's."""
        return int(wildcards.get("gpus", min(self.most, self._per_node)))

    def nodes(self, gpus: int) -> int:
        """Return the smallest number of nodes that have `gpus` GPUs."""
        return max(1, math.ceil(gpus / self._per_node))

    def threads(self, wildcards: Mapping[str, str]) -> int:
        """Return the number of CPU cores on each node for a job that measures time.

        Without a cluster, the job has all cores of this machine, unless `machine.share` is true.
        """
        if self._workflow.local_exec and not self._shares:
            return int(self._workflow.resource_settings.cores or 1)
        gpus = self.gpus(wildcards)
        return gpus * self._cores_per_gpu // self.nodes(gpus)

    def timed(self, gpus: int | None = None, names: Sequence[str] = REQUESTED) -> dict[str, Any]:
        """Return the `resources` of a rule: for each of `names`, a function of wildcards.

        `requested` gives the values. If `gpus` is None, `self.gpus` reads it from the wildcards.
        """

        def value(name: str, wildcards: Mapping[str, str]) -> Any:
            return self.requested(self.gpus(wildcards) if gpus is None else gpus).get(name)

        return {name: partial(value, name) for name in names}

    def requested(self, gpus: int) -> dict[str, Any]:
        """Return the resources of a job on `gpus` GPUs. On several nodes, srun starts its tasks."""
        nodes = self.nodes(gpus)
        extra = [] if self._shares else ["--exclusive"]
        requested: dict[str, Any] = {"nodes": nodes, "runtime": self.minutes}
        by_gres = self._config["slurm"]["gres"] and not self._workflow.local_exec
        if gpus:
            requested |= {"gres": f"gpu:{gpus // nodes}"} if by_gres else {"gpu": gpus}
        if nodes > 1:
            requested |= {"mpi": "srun", "tasks": nodes, "tasks_per_gpu": 0}
            extra += [] if by_gres else [f"--gpus-per-node={gpus // nodes}"]
            extra += ["--ntasks-per-node=1"]
        return requested | {"slurm_extra": " ".join(extra)}
