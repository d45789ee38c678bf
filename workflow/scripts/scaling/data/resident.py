"""Training images that stay on the device: shuffled, cropped and flipped there."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from scaling.data.dataset import ImageDataset

SIDE = 32


class ResidentImages:
    """All training images on one device, and the order in which one rank sees them.

    The distribution is that of torchvision's RandomCrop(32, padding) and RandomHorizontalFlip: each
    image gets one of (2·padding + 1)² crops with equal probability and is flipped with probability
    1/2. `draw` starts an epoch; each `next_batch` then returns the following images. Both only
    launch work on the device, and `next_batch` may be captured in a CUDA graph. A new `seed` counts
    from the next `draw`.
    """

    def __init__(
        self,
        data: ImageDataset,
        mean: np.ndarray,
        std: np.ndarray,
        padding: int,
        flip: bool,
        device: torch.device,
        rank: int,
        ranks: int,
        seed: int,
    ) -> None:
        images = torch.from_numpy(data.train_images).to(device)
        self._images = functional.pad(images, (0, 0, padding, padding, padding, padding))
        self._labels = torch.from_numpy(data.train_labels).to(device)
        self._scale = torch.tensor(1 / (255 * std), dtype=torch.float32, device=device)
        self._shift = torch.tensor(-mean / std, dtype=torch.float32, device=device)
        self._padding, self._flip = padding, flip
        self._rank, self._ranks, self.seed = rank, ranks, seed
        self.samples = math.ceil(len(self._labels) / ranks)
        self._side = torch.arange(SIDE, device=device)
        self._order = torch.zeros(self.samples, dtype=torch.long, device=device)
        self._top = torch.zeros_like(self._order)
        self._left = torch.zeros_like(self._order)
        self._flipped = torch.zeros_like(self._order, dtype=torch.bool)
        self._position = torch.zeros((), dtype=torch.long, device=device)

    def draw(self, epoch: int) -> None:
        """Draw this epoch's order (the same on all ranks, shared out) and this rank's crops."""
        device = self._order.device
        shared = torch.Generator(device).manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self._labels), generator=shared, device=device)
        wrapped = torch.cat([order, order[: self.samples * self._ranks - len(order)]])
        self._order.copy_(wrapped[self._rank :: self._ranks])
        own = torch.Generator(device).manual_seed(
            (self.seed * 1_000_003 + epoch) * 4099 + self._rank + 1
        )
        self._top.random_(0, 2 * self._padding + 1, generator=own)
        self._left.random_(0, 2 * self._padding + 1, generator=own)
        if self._flip:
            self._flipped.random_(0, 2, generator=own)
        self._position.zero_()

    def next_batch(self, size: int) -> tuple[Tensor, Tensor]:
        """The next `size` images, float32 [size, 3, 32, 32] in channels-last order, and labels."""
        picks = self._position + torch.arange(size, device=self._order.device)
        self._position += size
        index = self._order[picks]
        rows = self._top[picks, None] + self._side
        straight = self._side.expand(size, SIDE)
        columns = torch.where(self._flipped[picks, None], SIDE - 1 - straight, straight)
        columns = columns + self._left[picks, None]
        pixels = self._images[index[:, None, None], rows[:, :, None], columns[:, None, :]]
        images = pixels * self._scale + self._shift
        return images.permute(0, 3, 1, 2), self._labels[index]
