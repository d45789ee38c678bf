"""Images that are streamed are those that would be resident."""

import numpy as np
import torch

from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages
from scaling.data.streamed import StreamedImages

MEAN, STD = np.array([0.4, 0.5, 0.6]), np.array([0.2, 0.3, 0.1])


def test_streamed_batches_are_the_resident_ones():
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (26, 12, 12, 3), dtype=np.uint8)
    labels = np.arange(26) % 2
    data = ImageDataset(pixels, labels, pixels[:2], labels[:2], ["a", "b"])
    arguments = (data, MEAN, STD, 2, True, torch.device("cpu"), 1, 2, 5)
    resident, streamed = ResidentImages(*arguments), StreamedImages(*arguments)
    assert resident.samples == 13
    for epoch in (1, 2):
        for images in (resident, streamed):
            images.draw(epoch)
        # Whole batches, a smaller last one; an epoch that is left before its end.
        for size in (5, 5, 3) if epoch == 1 else (5,):
            streamed.stage(size)
            for one, other in zip(
                resident.next_batch(size), streamed.next_batch(size), strict=True
            ):
                assert torch.equal(one, other)
    assert streamed.waited > 0 == resident.waited
