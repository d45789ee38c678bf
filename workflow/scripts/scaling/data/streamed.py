"""Training images that exceed GPU memory: each batch is copied while the previous one trains."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from time import perf_counter

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

    A thread collects the next batch in pinned memory and copies it, overlapped with compute, to one
    of two alternating buffers. `stage` waits for it, outside of any CUDA graph.
    """

    def _hold(self, images: np.ndarray) -> None:
        self._host = torch.from_numpy(images)
        self._thread = ThreadPoolExecutor(1)
        self._ahead: tuple[tuple[int, int], Future[int]] | None = None
        self._at = self._turn = 0
        self._buffers: list[tuple[Tensor, Tensor]] = []
        self._cuda = self._labels.device.type == "cuda"
        if self._cuda:
            self._stream = torch.cuda.Stream()
            self._copied = [torch.cuda.Event() for _ in range(2)]
            self._used = [torch.cuda.Event() for _ in range(2)]

    def draw(self, epoch: int) -> None:
        super().draw(epoch)
        if self._ahead:
            self._ahead[1].result()
        self._ahead, self._at = None, 0
        self._places = self._order.cpu()

    def stage(self, size: int) -> None:
        asked = perf_counter()
        if not self._buffers or len(self._batch) < size:
            self._allocate(size)
        wanted = (self._at, size)
        if self._ahead is None or self._ahead[0] != wanted:
            if self._ahead:
                self._ahead[1].result()
            self._ahead = wanted, self._thread.submit(self._fetch, *wanted)
        turn = self._ahead[1].result()
        self.waited += perf_counter() - asked
        if self._cuda:
            torch.cuda.current_stream().wait_event(self._copied[turn])
        self._batch[:size].copy_(self._buffers[turn][1][:size])
        if self._cuda:
            self._used[turn].record()
        self._at += size
        following = (self._at, min(size, self.samples - self._at))
        self._ahead = following, self._thread.submit(self._fetch, *following)

    def _allocate(self, size: int) -> None:
        shape, device = (size, *self._host.shape[1:]), self._labels.device
        self._batch = torch.zeros(shape, dtype=torch.uint8, device=device)
        self._buffers = [
            (
                torch.zeros(shape, dtype=torch.uint8, pin_memory=self._cuda),
                torch.zeros_like(self._batch),
            )
            for _ in range(2)
        ]

    def _fetch(self, start: int, size: int) -> int:
        """Copy images of the order to the device; return the number of the buffer they are in."""
        self._turn = turn = 1 - self._turn
        pinned, own = self._buffers[turn]
        if self._cuda:
            self._copied[turn].synchronize()
        torch.index_select(self._host, 0, self._places[start : start + size], out=pinned[:size])
        with torch.cuda.stream(self._stream) if self._cuda else nullcontext():
            if self._cuda:
                self._stream.wait_event(self._used[turn])
            own[:size].copy_(pinned[:size], non_blocking=True)
            if self._cuda:
                self._copied[turn].record()
        return turn

    def _source(self, picks: Tensor) -> tuple[Tensor, Tensor]:
        count = len(picks)
        return self._padded(self._batch[:count]), torch.arange(count, device=picks.device)
