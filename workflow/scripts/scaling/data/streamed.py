"""Training images that exceed GPU memory: each batch is collected while the previous one trains."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages

RESIDENT_SHARE = 0.25
"""The share of free GPU memory that images may take; the rest is for training."""


def must_stream(data: ImageDataset, padding: int, device: torch.device) -> bool:
    """Return whether the padded training images exceed their share of free GPU memory."""
    if device.type != "cuda":
        return False
    count, side = data.train_images.shape[:2]
    free, _ = torch.cuda.mem_get_info(device)
    return 3 * count * (side + 2 * padding) ** 2 > RESIDENT_SHARE * free


class StreamedImages(ResidentImages):
    """The same images in the same order as `ResidentImages`, kept in host memory.

    A thread collects the next batch in pinned memory, which PyTorch keeps until it is copied.
    `stage` waits for it and copies it to where the steps read, outside of any CUDA graph.
    """

    def _hold(self, images: np.ndarray) -> None:
        self._host = torch.from_numpy(images)
        self._batch = torch.empty((0, *images.shape[1:]), dtype=torch.uint8, device=self._device)
        self._thread = ThreadPoolExecutor(1)
        self._ahead: dict[tuple[int, int], Future[Tensor]] = {}
        self._at = 0

    def draw(self, epoch: int) -> None:
        super().draw(epoch)
        self._ahead, self._at, self._places = {}, 0, self._order.cpu()

    def stage(self, size: int) -> None:
        if len(self._batch) < size:
            self._batch = self._batch.new_zeros((size, *self._batch.shape[1:]))
        wanted = self._ahead.pop((self._at, size), None) or self._collect(size)
        self._batch[:size].copy_(wanted.result(), non_blocking=True)
        self._at += size
        following = min(size, self.samples - self._at)
        self._ahead = {(self._at, following): self._collect(following)}

    def _collect(self, size: int) -> Future[Tensor]:
        """Collect the next `size` images of the order, in the thread."""
        places = self._places[self._at : self._at + size]
        on_gpu = self._device.type == "cuda"
        shape = (len(places), *self._host.shape[1:])

        def collect() -> Tensor:
            batch = torch.empty(shape, dtype=torch.uint8, pin_memory=on_gpu)
            return torch.index_select(self._host, 0, places, out=batch)

        return self._thread.submit(collect)

    def _source(self, picks: Tensor) -> tuple[Tensor, Tensor]:
        count = len(picks)
        return self._padded(self._batch[:count]), torch.arange(count, device=picks.device)
