"""Training images in GPU memory: shuffled, cropped and flipped there."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from scaling.data.dataset import ImageDataset


class ResidentImages:
    """All training images on one device, in one rank's order.

    The distribution equals torchvision's RandomCrop(S, padding) and RandomHorizontalFlip: each
    image of S×S pixels gets one of (2·padding + 1)² crops with equal probability and is flipped
    with probability 1/2. `draw` starts an epoch; each `stage` and `next_batch` return the next
    images. They only launch work on the device, and a CUDA graph can capture `next_batch`. A new
    `seed` applies from the next `draw`.
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
        self._device = device
        self._labels = torch.from_numpy(data.train_labels).to(device)
        self._scale = torch.tensor(1 / (255 * std), dtype=torch.float32, device=device)
        self._shift = torch.tensor(-mean / std, dtype=torch.float32, device=device)
        self._padding, self._flip = padding, flip
        self._rank, self._ranks, self.seed = rank, ranks, seed
        self.samples = math.ceil(len(self._labels) / ranks)
        self._side = torch.arange(data.train_images.shape[1], device=device)
        self._hold(data.train_images)
        self._order = torch.zeros(self.samples, dtype=torch.long, device=device)
        self._top = torch.zeros_like(self._order)
        self._left = torch.zeros_like(self._order)
        self._flipped = torch.zeros_like(self._order, dtype=torch.bool)
        self._position = torch.zeros((), dtype=torch.long, device=device)

    def _hold(self, images: np.ndarray) -> None:
        self._images = self._padded(torch.from_numpy(images).to(self._device))

    def _padded(self, images: Tensor) -> Tensor:
        return functional.pad(images, (0, 0, *4 * [self._padding]))

    def stage(self, size: int) -> None:
        """Load the next `size` images onto the device, for `next_batch`."""

    def draw(self, epoch: int) -> None:
        """Draw this epoch's order (the same on all ranks, sharded) and this rank's crops."""
        device, seed = self._device, self.seed * 1_000_003 + epoch
        shared = torch.Generator(device).manual_seed(seed)
        order = torch.randperm(len(self._labels), generator=shared, device=device)
        wrapped = torch.cat([order, order[: self.samples * self._ranks - len(order)]])
        self._order.copy_(wrapped[self._rank :: self._ranks])
        own = torch.Generator(device).manual_seed(seed * 4099 + self._rank + 1)
        self._top.random_(0, 2 * self._padding + 1, generator=own)
        self._left.random_(0, 2 * self._padding + 1, generator=own)
        if self._flip:
            self._flipped.random_(0, 2, generator=own)
        self._position.zero_()

    def next_batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Return the next `size` images, float32 [size, 3, S, S] in channels-last, and labels."""
        picks = self._position + torch.arange(size, device=self._device)
        self._position += size
        source, index = self._source(picks)
        rows = self._top[picks, None] + self._side
        columns = torch.where(self._flipped[picks, None], self._side.flip(0), self._side)
        columns = columns + self._left[picks, None]
        pixels = source[index[:, None, None], rows[:, :, None], columns[:, None, :]]
        images = pixels * self._scale + self._shift
        return images.permute(0, 3, 1, 2), self._labels[self._order[picks]]

    def _source(self, picks: Tensor) -> tuple[Tensor, Tensor]:
        """Return padded images on the device, and the indexes of the picked ones in them."""
        return self._images, self._order[picks]
