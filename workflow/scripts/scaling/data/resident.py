"""Random batches of training images, which are shuffled, cropped and flipped on the device."""

import math
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn import functional

from scaling.data.dataset import ImageDataset

RESIDENT_SHARE = 0.25
"""Maximum fraction of free GPU memory that images may use. Training needs the rest."""


def must_stream(data: ImageDataset, padding: int, device: torch.device) -> bool:
    """Return whether the padded training images exceed `RESIDENT_SHARE` of free GPU memory."""
    if device.type != "cuda":
        return False
    count, side = data.train_images.shape[:2]
    free, _ = torch.cuda.mem_get_info(device)
    return 3 * count * (side + 2 * padding) ** 2 > RESIDENT_SHARE * free


class ResidentImages:
    """All training images, and the order in which one rank uses them.

    The images are in device memory. If `streamed`, they are in host memory, and a thread collects
    the next batch in pinned memory. `stage` then waits for this batch and copies it to a buffer on
    the GPU, which `next_batch` reads.

    Crops and flips have the same distribution as torchvision's RandomCrop(S, padding) and
    RandomHorizontalFlip. `next_batch` only launches work on the device, so a CUDA graph can capture
    it. Call `stage` outside CUDA graphs.
    """

    def __init__(
        self,
        data: ImageDataset,
        padding: int,
        flip: bool,
        device: torch.device,
        rank: int,
        ranks: int,
        seed: int,
    ) -> None:
        self._device = device
        self._labels = torch.from_numpy(data.train_labels).to(device)
        self._scale = torch.tensor(1 / (255 * data.std), dtype=torch.float32, device=device)
        self._shift = torch.tensor(-data.mean / data.std, dtype=torch.float32, device=device)
        self._padding, self._flip = padding, flip
        self._rank, self._ranks, self.seed = rank, ranks, seed
        self.samples = math.ceil(len(self._labels) / ranks)
        self._side = torch.arange(data.train_images.shape[1], device=device)
        self.streamed = must_stream(data, padding, device)
        images = torch.from_numpy(data.train_images)
        self._images = images if self.streamed else self._padded(images.to(device))
        self._batch = torch.empty((0, *images.shape[1:]), dtype=torch.uint8, device=device)
        self._thread = ThreadPoolExecutor(1)
        self._ahead: Future[Tensor] | None = None
        self._order = torch.zeros(self.samples, dtype=torch.long, device=device)
        self._top = torch.zeros_like(self._order)
        self._left = torch.zeros_like(self._order)
        self._flipped = torch.zeros_like(self._order, dtype=torch.bool)
        self._position = torch.zeros((), dtype=torch.long, device=device)

    def _padded(self, images: Tensor) -> Tensor:
        return functional.pad(images, (0, 0, *4 * [self._padding]))

    def draw(self, epoch: int) -> None:
        """Shuffle all images for `epoch`, as on all ranks; draw this rank's crops and flips."""
        device, seed = self._device, self.seed * 1_000_003 + epoch
        shared = torch.Generator(device).manual_seed(seed)
        order = torch.randperm(len(self._labels), generator=shared, device=device)
        wrapped = torch.cat([order, order[: self.samples * self._ranks - len(order)]])
        self._order.copy_(wrapped[self._rank :: self._ranks])
        generator = torch.Generator(device).manual_seed(seed * 4099 + self._rank + 1)
        self._top.random_(0, 2 * self._padding + 1, generator=generator)
        self._left.random_(0, 2 * self._padding + 1, generator=generator)
        if self._flip:
            self._flipped.random_(0, 2, generator=generator)
        self._position.zero_()
        if self.streamed:
            self._rest, self._ahead = self._order.cpu(), None

    def stage(self, size: int) -> None:
        """If images are streamed, copy the next `size` images to the device."""
        if self.streamed:
            if len(self._batch) < size:
                self._batch = self._batch.new_zeros((size, *self._batch.shape[1:]))
            wanted = self._ahead or self._collect(size)
            self._batch[:size].copy_(wanted.result(), non_blocking=True)
            self._ahead = self._collect(size)

    def _collect(self, size: int) -> Future[Tensor]:
        """Start to collect the next `size` images (fewer at an epoch's end); return the future."""
        places, self._rest = self._rest.tensor_split([size])

        def collect() -> Tensor:
            shape, on_gpu = (len(places), *self._images.shape[1:]), self._device.type == "cuda"
            batch = torch.empty(shape, dtype=torch.uint8, pin_memory=on_gpu)
            return torch.index_select(self._images, 0, places, out=batch)

        return self._thread.submit(collect)

    def next_batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Return the next `size` images (float32 [size, 3, S, S], channels-last) and the labels."""
        picks = self._position + torch.arange(size, device=self._device)
        self._position += size
        if self.streamed:
            source, index = (
                self._padded(self._batch[:size]),
                torch.arange(size, device=self._device),
            )
        else:
            source, index = self._images, self._order[picks]
        rows = self._top[picks, None] + self._side
        columns = torch.where(self._flipped[picks, None], self._side.flip(0), self._side)
        columns = columns + self._left[picks, None]
        pixels = source[index[:, None, None], rows[:, :, None], columns[:, None, :]]
        images = pixels * self._scale + self._shift
        return images.permute(0, 3, 1, 2), self._labels[self._order[picks]]
