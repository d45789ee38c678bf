"""Engine `eager`: the lab's training with standard PyTorch components.

torchvision transforms (random crop, flip, normalize) in a DataLoader with worker processes, plain
SGD with momentum in float32, torch.nn.DataParallel or DistributedDataParallel. Settings are
PyTorch's defaults: convolutions use TF32 where the GPU has it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from time import perf_counter
from typing import Any

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision import transforms

from scaling.core import environment
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.registry.eager import Options
from scaling.registry.strategy import STRATEGIES
from scaling.training.trainer import EpochResult, TrainingData, TrainIterations, Wrapped, finite


class TrainingImages(Dataset[tuple[torch.Tensor, int]]):
    """Dataset of training images, augmented by torchvision, as (float [3, S, S], label)."""

    def __init__(self, dataset: TrainingData, spec: RunSpec) -> None:
        self._images = dataset.data.train_images
        self._labels = dataset.data.train_labels.tolist()
        steps: list[Callable[..., object]] = [
            transforms.RandomCrop(self._images.shape[1], padding=spec.crop_padding),
            *([transforms.RandomHorizontalFlip()] if spec.horizontal_flip else []),
            transforms.ToTensor(),
            transforms.Normalize(dataset.mean.tolist(), dataset.std.tolist()),
        ]
        self._transform = transforms.Compose(steps)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._transform(Image.fromarray(self._images[index])), self._labels[index]


Batch = tuple[torch.Tensor, torch.Tensor]
"""Images [n, 3, S, S] and labels [n]."""


class Eager:
    """Trainer of engine `eager`; see `trainer.Trainer`."""

    def __init__(self, spec: RunSpec, rank: Rank, model: nn.Module, dataset: TrainingData) -> None:
        self._spec, self._rank = spec, rank
        cell = spec.cell
        images = TrainingImages(dataset, spec)
        known = Options.model_fields.keys() & spec.recipe_options.keys()
        options = Options(**{key: spec.recipe_options[key] for key in known})
        applied: dict[str, Any] = {}
        self._wrapped = Wrapped(model)
        if cell.gpus > 1:
            applied = options.of_ddp()
            wrap = STRATEGIES.find(cell.strategy).wrap.load()
            self._wrapped = wrap(model, rank, cell.gpus, **applied)
        self.model = self._wrapped.model
        self._sampler: DistributedSampler | None = None
        batch_size = cell.global_batch_size
        if rank.processes > 1:
            self._sampler = DistributedSampler(images, shuffle=True, seed=cell.seed)
            batch_size = cell.batch_size
        self._loader = DataLoader(
            images,
            batch_size=batch_size,
            sampler=self._sampler,
            shuffle=self._sampler is None,
            num_workers=options.loader_workers,
            pin_memory=rank.device.type == "cuda",
        )
        self._criterion = nn.CrossEntropyLoss()
        self.optimizer = self._wrapped.optimizer(spec.sgd)
        precision = "tf32" if torch.backends.cudnn.allow_tf32 else "float32"
        precision = environment.applied_precision(precision, rank.device.type)
        more = {key: own for key, own in spec.recipe_options.items() if key not in known}
        self.applied = {"loader_workers": options.loader_workers, **more, **applied}
        self.applied["precision"] = precision
        self.compiled_batch_sizes: list[int] = []
        self.progress = None
        torch.manual_seed(cell.seed * 1000 + rank.index)

    @property
    def sampler(self) -> Iterable[int]:
        """Return the sampler of the image order; set_epoch makes it draw a new one."""
        return self._loader.sampler

    @property
    def bucket_bytes(self) -> list[int]:
        return self._wrapped.bucket_bytes

    @property
    def sent_share(self) -> float:
        return self._wrapped.sent_share

    def without_communication(self) -> AbstractContextManager[None] | None:
        return self._wrapped.without_communication()

    def close(self) -> None:
        pass

    def run_epoch(self, epoch: int) -> EpochResult:
        if self._sampler is not None:
            self._sampler.set_epoch(epoch)
        return self._train(self._loader)

    def in_memory(self, limit: int) -> TrainIterations:
        batches = list(islice(self._loader, limit))
        return lambda count: self._train(batches[:count])

    def _train(self, loader: Iterable[Batch]) -> EpochResult:
        device = self._rank.device
        self.model.train()
        loss_sum = torch.zeros((), device=device)
        correct = torch.zeros((), device=device, dtype=torch.long)
        iterations = samples = 0

        self._rank.barrier()
        self._rank.synchronize(self._spec.cell.gpus)
        started = asked = perf_counter()
        waited = 0.0
        for inputs, labels in loader:
            waited += perf_counter() - asked
            self.optimizer.zero_grad()
            for part, more in in_parts((inputs, labels), self._spec.micro_batches):
                own_inputs, own_labels = (tensor.to(device, non_blocking=True) for tensor in part)
                self._wrapped.accumulate(more)
                outputs = self.model(own_inputs)
                loss = self._criterion(outputs, own_labels)
                share = len(own_labels) / len(labels)
                (loss if share == 1 else loss * share).backward()
                loss_sum += loss.detach() * len(own_labels)
                correct += (outputs.detach().argmax(1) == own_labels).sum()
            self.optimizer.step()
            iterations += 1
            samples += len(labels)
            asked = perf_counter()
        waited += perf_counter() - asked
        self._rank.synchronize(self._spec.cell.gpus)
        seconds = perf_counter() - started

        return EpochResult(
            seconds=seconds,
            loader_seconds=waited,
            iterations=iterations,
            samples=samples,
            train_loss=finite(loss_sum.item() / samples),
            train_accuracy=correct.item() / samples,
        )


def in_parts(batch: Batch, parts: int) -> Iterator[tuple[Batch, bool]]:
    """Split a batch into at most `parts` parts; yield each with whether more follow."""
    pieces = list(zip(*(tensor.chunk(parts) for tensor in batch), strict=True))
    for place, piece in enumerate(pieces, start=1):
        yield piece, place < len(pieces)
