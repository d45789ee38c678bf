"""Small trainings with micro-batches or ranks, and measurements of their synchronization."""

import json

import numpy as np
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import measure as script
from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages
from scaling.large_batches.experiment import Experiment
from scaling.large_batches.plan import Study
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import Technique

GPUS, GLOBAL_BATCH, SIZES = 2, 16, [8, 8, 6]
"""`SIZES` are the images per rank in each update, if an epoch has 44 images."""
RATES = (0.002, 0.008, 0.004)
STUDY = Study(reference_batch=8, gpus=GPUS, epochs=1, seeds=[3], crop_padding=0, model_width=2)
STUDY = STUDY.model_copy(update={"horizontal_flip": False})
PLAIN = [(rate, rate) for rate in RATES]
MEAN, STD = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.25, 0.3])


def images(count=44, classes=5, side=32):
    """Return noise. With 44 images, two ranks and batches of 8, the last update is smaller."""
    pixels = np.random.default_rng(1).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    labels = np.arange(count, dtype=np.int64) % classes
    return ImageDataset(pixels, labels, pixels, labels, [*map(str, range(classes))], MEAN, STD)


class Kept(Experiment):
    """An experiment that keeps the parameters of its last run."""

    def _evaluate(self, trainer, model, data, epoch):
        self.weights = {name: one.detach().clone() for name, one in model.named_parameters()}
        self.model = model
        return super()._evaluate(trainer, model, data, epoch)


def experiment(study=STUDY, device="cpu"):
    return Kept(study, images(), GLOBAL_BATCH, torch.device(device))


def trained(made=None, rates=PLAIN, seed=3, **options):
    """Return the weights and the epochs of a run of a technique with `options`."""
    made = made or experiment()
    epochs = made._train(made.spec(Technique(**options), seed), rates)["epochs"]
    return made.weights, epochs


def distance(first, second):
    return max(float((first[name].float() - second[name].float()).abs().max()) for name in first)


def train_by_torch(rank, rendezvous, target):
    """Train as one rank at `RATES`, with PyTorch's DDP and SGD. Rank 0 saves the parameters."""
    dist.init_process_group("gloo", f"file://{rendezvous}", rank=rank, world_size=GPUS)
    torch.manual_seed(3)
    model = ResNet18(STUDY.model_width, classes=5)
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), **{**STUDY.sgd, "lr": 1.0})
    device, padding = torch.device("cpu"), STUDY.crop_padding
    shard = ResidentImages(images(), padding, False, device, rank, GPUS, 3)
    rates = iter(RATES)
    for epoch in range(1, STUDY.epochs + 1):
        shard.draw(epoch)
        for size in SIZES:
            optimizer.param_groups[0]["lr"] = next(rates)
            inputs, labels = shard.next_batch(size)
            optimizer.zero_grad()
            functional.cross_entropy(wrapped(inputs), labels).backward()
            optimizer.step()
    if rank == 0:
        torch.save(dict(model.named_parameters()), target)
    dist.destroy_process_group()


def measure(folder, output, **changed):
    """Return the record that the script writes to `output`, for the images in `folder`."""
    data = {"dataset": folder / "images.npz", "manifest": folder / "manifest.json"}
    usual = {"gpus": 2, "epochs": 2, "batch_size": 10, "model": {"width": 1}, "device": "cpu"}
    usual |= {"loader_workers": 0, "seeds": [0, 1, 2]}
    script.main(plan=usual | data | {"output": output} | changed)
    return json.loads(output.read_text())
