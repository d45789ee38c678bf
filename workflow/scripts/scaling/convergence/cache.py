"""Cache of finished trainings, so that none runs twice."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from scaling.convergence.plan import Run, Study
from scaling.core import code_digest
from scaling.core.records.convergence import TRAINING

SCRIPT = Path(__file__).parents[2] / "convergence_train.py"


class Cache:
    """Finished trainings at one global batch, in memory and on disk.

    The key is all that decides a training: code, options, images, kind of device.
    """

    def __init__(
        self,
        folder: Path | None,
        study: Study,
        global_batch: int,
        dataset: dict[str, Any],
        device: torch.device,
    ) -> None:
        sweep = ("epochs", "max_epochs", "seeds", "factors", "more_factors", "precise_batch_norm")
        shared = {key: value for key, value in asdict(study).items() if key not in sweep}
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        code = code_digest.measuring_digest(SCRIPT)
        self._shared = [code, shared, global_batch, dataset, name, torch.__version__]
        self._folder, self._done = folder, dict[Run, dict[str, Any]]()

    def result(
        self, run: Run, train: Callable[[Run], dict[str, Any]]
    ) -> tuple[dict[str, Any], bool]:
        """Return the result of a run, from the cache or by `train`, and whether it was cached."""
        path = self._folder and self._folder / f"{self._digest(run)}.json"
        there = run in self._done or (path is not None and path.exists())
        if run not in self._done:
            self._done[run] = TRAINING.read(path) if there and path else train(run)
            if path and not there:
                TRAINING.write(path, self._done[run])
        return self._done[run], there

    def _digest(self, run: Run) -> str:
        own = asdict(run) | {"technique": run.technique.model_dump()}
        text = json.dumps([*self._shared, own], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
