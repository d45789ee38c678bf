"""What jobs are given: options of their scripts, and cores of this machine, or cluster nodes."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from scaling.config.config import model_options
from scaling.core import grid
from scaling.core.command_line import options
from scaling.core.training_options import Options, Sgd

Wildcards = Mapping[str, str]


class Jobs:
    """Options and resources of the jobs of one study (`config`) in a Snakemake `workflow`."""

    def __init__(self, config: dict[str, Any], workflow: Any) -> None:
        machine, runs = config["machine"], grid.of(config)
        self._config = config
        self.most = max(config["grid"]["gpus"])
        """The most GPUs of the grid."""
        self.minutes = math.ceil(machine["time_limit_seconds"] / 60) + 5
        """The time limit of a measurement, with what starting and stopping may take."""
        self._workflow, self._shares = workflow, machine["share"]
        self._per_node = machine["gpus_per_node"] or math.inf
        self._by_gres = config["slurm"]["gres"]
        recipes = [config["recipes"][name] for name in config["grid"]["recipes"]]
        workers = max(recipe.get("loader_workers", 0) for recipe in recipes)
        self._cores_per_gpu = machine["cpu_threads"] + workers
        self.first = len(runs) + 1
        """The priority of what comes before all runs of the grid."""
        self._places = {run.record_path(Path()): len(runs) - n for n, run in enumerate(runs)}

    @property
    def lab(self) -> dict[str, Any]:
        """The options of every training of the lab's model, by name."""
        training = self._config["training"]
        lab = {"device": self._config["device"], "model_width": self._config["model"]["width"]}
        return lab | {key: training[key] for key in Sgd.model_fields}

    def options(self, kind: type[Options], *sections: str, **own: Any) -> str:
        """Return the options of a script, as far as its `kind` has them, and its `own`.

        They are in the sections on the machine, the training and the model, and then in `sections`;
        a script is told nothing that it does not depend on.
        """
        values, model = self.lab, model_options(self._config)
        for section in ("machine", "training", *sections):
            values |= self._config[section]
        told = {key: values[key] for key in kind.model_fields if key in values}
        return options(told | (model if "model" in kind.model_fields else {}) | own)

    def recipe(self, name: str) -> str:
        """Return the options that tell of a recipe: its engine, and the engine's own."""
        own = grid.recipe_options(self._config, name)
        return options({"engine": self._config["recipes"][name]["engine"], "recipe_options": own})

    def place(self, wildcards: Wildcards) -> int:
        """Return a run's priority: runs come in the order of the grid; others have 0."""
        return self._places.get(Path(grid.RUN_PATTERN.format(**wildcards), "run.json"), 0)

    def gpus(self, wildcards: Wildcards) -> int:
        """Return the GPUs of a job: those in its path, else the most that one machine has."""
        return int(wildcards.get("gpus", min(self.most, self._per_node)))

    def nodes(self, gpus: int) -> int:
        """Return how many nodes that many GPUs need: one whenever they fit."""
        return max(1, math.ceil(gpus / self._per_node))

    def cores(self, wildcards: Wildcards) -> int:
        """Return all cores of this machine; on a cluster one."""
        if not self._workflow.local_exec:
            return 1
        given: int = self._workflow.resource_settings.cores or 1
        return max(psutil.cpu_count() or 1, given)

    def threads(self, wildcards: Wildcards) -> int:
        """Return a timed job's cores per node; here all cores, unless jobs may run side by side."""
        if self._workflow.local_exec and not self._shares:
            return self.cores(wildcards)
        gpus = self.gpus(wildcards)
        return gpus * self._cores_per_gpu // self.nodes(gpus)

    def timed(self, gpus: int | None = None) -> dict[str, Any]:
        """Return the resources of a rule of timed jobs, on `gpus` GPUs if that is no wildcard.

        On one node most are constants, as Snakemake calls functions for each job.
        """
        of_each = self.on_gpus(gpus)
        if self.nodes(self.most) == 1:
            return self.asked(0) | of_each
        return of_each | self._each([*self.asked(0), "mpi", "tasks", "tasks_per_gpu"], gpus)

    def on_gpus(self, gpus: int | None = None) -> dict[str, Any]:
        """Return the resources of a rule whose jobs use GPUs and are not timed."""
        return self._each(["gpu", "gres"] if self._by_gres else ["gpu"], gpus)

    def _each(self, names: list[str], gpus: int | None) -> dict[str, Any]:
        """Return functions of a job's wildcards: what it asks for by each name, if anything."""

        def value(name: str, wildcards: Wildcards) -> Any:
            return self.asked(self.gpus(wildcards) if gpus is None else gpus).get(name)

        return {name: partial(value, name) for name in names}

    def asked(self, gpus: int) -> dict[str, Any]:
        """Return the resource request of a timed job on that many GPUs; locally only `gpu` counts.

        On several nodes `mpi` has the script start its processes by srun, one task per node.
        """
        nodes = self.nodes(gpus)
        extra = [] if self._shares else ["--exclusive"]
        asked: dict[str, Any] = {"nodes": nodes, "runtime": self.minutes}
        by_gres = self._by_gres and not self._workflow.local_exec
        if gpus:
            asked |= {"gres": f"gpu:{gpus // nodes}"} if by_gres else {"gpu": gpus}
        if nodes > 1:
            asked |= {"mpi": "srun", "tasks": nodes, "tasks_per_gpu": 0}
            extra += [] if by_gres else [f"--gpus-per-node={gpus // nodes}"]
            extra += ["--ntasks-per-node=1"]
        return asked | {"slurm_extra": " ".join(extra)}
