"""Engine `eager`: training with standard PyTorch components and default settings.

Images come from a DataLoader with worker processes and torchvision transforms (random crop, flip,
normalize). The optimizer is SGD with momentum. Convolutions use TF32 if the GPU supports it.
"""

from itertools import islice

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision import transforms

from scaling.core import environment
from scaling.data.dataset import ImageDataset
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.registry.eager import Options
from scaling.registry.strategy import STRATEGIES
from scaling.registry.update_rule import UpdateRule
from scaling.training.step import Batch, Step
from scaling.training.strategies import Wrapped
from scaling.training.trainer import EpochResult, Trainer, TrainIterations


class TrainingImages(Dataset[tuple[torch.Tensor, int]]):
    """Training images, randomly cropped and flipped. An item is (float [3, S, S], label)."""

    def __init__(self, dataset: ImageDataset, spec: RunSpec) -> None:
        self._images = dataset.train_images
        self._labels = dataset.train_labels.tolist()
        crop = transforms.RandomCrop(self._images.shape[1], padding=spec.crop_padding)
        flips = [transforms.RandomHorizontalFlip()] * spec.horizontal_flip
        scaled = transforms.Normalize(dataset.mean.tolist(), dataset.std.tolist())
        self._transform = transforms.Compose([crop, *flips, transforms.ToTensor(), scaled])

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._transform(Image.fromarray(self._images[index])), self._labels[index]


class Eager(Trainer):
    """Trainer of engine `eager`."""

    def __init__(self, spec: RunSpec, rank: Rank, model: nn.Module, dataset: ImageDataset) -> None:
        super().__init__(spec, rank)
        cell = spec.cell
        images = TrainingImages(dataset, spec)
        known = Options.model_fields.keys() & spec.recipe_options.keys()
        options = Options(**{key: spec.recipe_options[key] for key in known})
        applied = options.of_ddp() if cell.gpus > 1 else {}
        wrap = STRATEGIES.find(cell.strategy).wrap.load()
        self.replica: Wrapped = wrap(model, rank, cell.gpus, **applied)
        self.model = self.replica.model
        sampler: DistributedSampler | None = None
        if rank.processes > 1:
            sampler = DistributedSampler(images, shuffle=True, seed=cell.seed)
        self._loader = DataLoader(
            images,
            batch_size=cell.global_batch_size // rank.processes,
            sampler=sampler,
            shuffle=sampler is None,
            num_workers=options.loader_workers,
            pin_memory=rank.device.type == "cuda",
        )
        self.sampler = self._loader.sampler
        self.step = Step(self.model, self.replica, rank.device, spec.micro_batches, UpdateRule())
        self.replica.start(spec.sgd, UpdateRule())
        precision = "tf32" if torch.backends.cudnn.allow_tf32 else "float32"
        more = {key: value for key, value in spec.recipe_options.items() if key not in known}
        self.applied = {"loader_workers": options.loader_workers, **more, **applied}
        self.applied["precision"] = environment.applied_precision(precision, rank.device.type)
        torch.manual_seed(cell.seed * 1000 + rank.index)

    def run_epoch(self, epoch: int) -> EpochResult:
        if isinstance(self.sampler, DistributedSampler):
            self.sampler.set_epoch(epoch)
        return self._train(self._loader)

    def in_memory(self, limit: int) -> TrainIterations:
        batches = list(islice(self._loader, limit))

        def train(count: int, untimed: int = 0) -> EpochResult:
            return self._train([*batches[:1] * untimed, *batches[:count]], untimed=untimed)

        return train

    def _update(self, batch: Batch) -> int:
        def next_batch(size: int) -> Batch:
            images, labels = (one.to(self._rank.device, non_blocking=True) for one in batch)
            return images, labels

        self.step.update(len(batch[1]), next_batch)
        return len(batch[1])
