"""Train a technique at one global batch: a seed with each learning rate, all seeds with the best.

The best rate has the lowest validation loss or, without a validation set, the lowest training loss.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import update_bn

from scaling.core.grid import Cell
from scaling.core.training_options import Sgd
from scaling.data.dataset import ImageDataset
from scaling.large_batches import plan
from scaling.large_batches.plan import Result, Study
from scaling.launch.outcome import classify, first_sentence
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import Technique, UpdateRule, gpus_of
from scaling.training.evaluation import evaluate
from scaling.training.resident import Resident
from scaling.training.step import InPrecision

BATCH_SIZE, PRECISE_IMAGES = 2000, 10_000
"""Maximum batch size and number of images for batch-norm statistics before an evaluation. Wu and
Johnson 2021 (arXiv:2105.07576, section 3) need 1,000 to 10,000 images."""


@dataclass
class Experiment:
    """Trains techniques at one global batch."""

    study: Study
    dataset: ImageDataset
    global_batch: int
    device: torch.device

    @property
    def gpus(self) -> int:
        """Return the number of GPUs for this batch. A run uses as many micro-batches instead."""
        return gpus_of(self.global_batch, self.study.reference_batch, self.study.gpus)

    def outcome(self, name: str, technique: Technique) -> Result:
        """Return a technique's status, message and result. A failed technique's result is None."""
        if self.global_batch > (images := self._images(held_out=True)):
            message = f"the global batch is larger than the {images} training images"
            return {"status": "infeasible", "result": None, "message": message}
        try:
            return {"status": "ok", "message": None, "result": self._result(name, technique)}
        except Exception as error:
            if (status := classify(error)) is None:
                raise
            return {"status": status, "result": None, "message": first_sentence(error)}

    def _images(self, held_out: bool) -> int:
        """Return the number of training images, without the validation set if `held_out`."""
        return len(self.dataset.train_labels) - held_out * self.study.held_out_images

    def _result(self, name: str, technique: Technique) -> Result:
        """Train the first seed with each factor of the learning rate, then all seeds with the best.

        Return all runs. `at_edge` is True if the best of several factors is their smallest or
        largest. Without a validation set, the first seed is not trained again.
        """
        study, runs, losses = self.study, list[Result](), dict[float, float | None]()
        held_out = study.held_out_images > 0
        wanted = list(technique.factors or study.factors)
        more = study.more_factors if len(wanted) > 1 else 0
        while wanted:
            factor = wanted.pop(0)
            run = self._run(name, technique, factor, study.seeds[0], held_out)
            runs.append(run)
            losses[factor] = plan.loss(run)
            if not wanted and more and (following := plan.next_factor(losses)):
                wanted, more = [following], more - 1
        best = plan.choose(losses)
        runs.sort(key=lambda run: run["factor"])
        seeds = study.seeds[0 if held_out else 1 :]
        runs += [self._run(name, technique, best, seed) for seed in seeds]
        return {
            "gpus": self.gpus,
            "chosen_factor": best,
            "at_edge": len(losses) > 1 and best in (min(losses), max(losses)),
            "runs": [
                run | {"chosen": run["factor"] == best and not run["held_out"]} for run in runs
            ],
        }

    def _run(
        self, name: str, technique: Technique, factor: float, seed: int, held_out: bool = False
    ) -> Result:
        """Train a run, with validation if `held_out`; print its last epoch; return its result."""
        images = self._images(held_out)
        rates = plan.rates(self.study, technique, self.global_batch, images, factor)
        result = self._train(self.spec(technique, seed), rates, held_out)
        about = f"{name}, global batch {self.global_batch}, factor {factor:g}, seed {seed}"
        ended = f"{result['epochs'][-1]} {result['diverged']} {result['seconds']:.2f} s"
        print(f"{about}: {ended}", flush=True)
        peak = max(rate for rate, _ in rates)
        return {"factor": factor, "learning_rate": peak, "held_out": held_out, **result}

    def _train(self, spec: RunSpec, rates: plan.Rates, held_out: bool = False) -> Result:
        """Train a run, up to the first loss that is not finite; return metrics of each epoch.

        `diverged` is "not finite", "at chance", or "". "at chance": the last training loss is at
        least ln(classes), the loss of a constant prediction.
        """
        started, data, kind = time.perf_counter(), self.dataset, "test"
        if held_out:
            data, kind = data.with_held_out(self.study.held_out_images), "validation"
        classes, epochs = len(data.classes), self.study.epochs
        torch.manual_seed(spec.cell.seed)
        model = ResNet18(self.study.model_width, classes).to(self.device)
        trainer = Resident(spec, Rank(0, 0, 1, self.device), model, data)
        trainer.rates = rates
        rows: list[dict[str, Any]] = []
        diverged = ""
        for number in range(1, epochs + 1):
            trained = vars(trainer.run_epoch(number))
            metrics = {key: trained[key] for key in ("train_loss", "train_accuracy")}
            tested = self._evaluate(trainer, model, data, number)
            metrics |= {f"{kind}_{of}": tested[f"test_{of}"] for of in ("loss", "accuracy")}
            if None in metrics.values():
                metrics |= {"train_accuracy": None, f"{kind}_accuracy": None}
                diverged = plan.NOT_FINITE
            updates = number * len(rates) // epochs
            rows.append({"epoch": number, "updates": updates, **metrics})
            if diverged:
                break
        trainer.close()
        if not diverged and rows[-1]["train_loss"] >= math.log(classes):
            diverged = plan.AT_CHANCE
        return {
            "seed": spec.cell.seed,
            "updates": rows[-1]["updates"],
            "planned_epochs": epochs,
            "planned_updates": len(rates),
            "diverged": diverged,
            "seconds": round(time.perf_counter() - started, 3),
            "epochs": rows,
        }

    def spec(self, technique: Technique, seed: int) -> RunSpec:
        """Return a run's parameters. The run trains the global batch on one GPU."""
        on_gpu, study = self.device.type == "cuda", self.study
        options = technique.model_dump(include={*UpdateRule.model_fields})
        options |= {"precision": study.precision, "channels_last": on_gpu, "cuda_graph": on_gpu}
        options |= {"compile": False, "fused_norms": False}
        return RunSpec(
            cell=Cell("technique", "ddp", 1, self.global_batch, seed),
            micro_batches=self.gpus,
            engine="resident",
            recipe_options=options,
            **study.model_dump(include={*Sgd.model_fields}),
        )

    def _evaluate(
        self, trainer: Resident, model: nn.Module, data: ImageDataset, epoch: int
    ) -> dict[str, float | None]:
        """Return loss and accuracy on the test images of `data`, and leave the model unchanged.

        Batch norms use statistics of the first `PRECISE_IMAGES` images of training epoch `epoch`.
        """
        whole = InPrecision(model, self.study.precision == "bf16")
        buffers, images = list(model.buffers()), trainer.step.images
        kept = [buffer.clone() for buffer in buffers]
        wanted = min(images.samples, PRECISE_IMAGES)
        batches = math.ceil(wanted / BATCH_SIZE)
        images.draw(epoch)
        update_bn((images.next_batch(wanted // batches)[0] for _ in range(batches)), whole)
        metrics = evaluate(whole, data, self.device)
        torch._foreach_copy_(buffers, kept)
        return metrics
