"""Resident images are shuffled, cropped and flipped; streamed images equal them."""

import numpy as np
import torch
from torchvision import transforms

from examples.small_trainings import MEAN, STD
from examples.small_trainings import images as noise
from scaling.data import resident as module
from scaling.data.batches import Images
from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages


def resident(data, padding=4, flip=True, rank=0, ranks=1):
    return ResidentImages(data, padding, flip, torch.device("cpu"), rank, ranks, seed=0)


def places(count, **rank):
    """Return where the white pixel of each image is, in the first epoch of a rank."""
    pixels = np.zeros((count, 32, 32, 3), np.uint8)
    pixels[:, 10, 12] = 255
    labels = np.zeros(count, np.int64)
    images = resident(ImageDataset(pixels, labels, pixels, labels, ["one"]), **rank)
    images.draw(1)
    return images.next_batch(images.samples)[0][:, 0].flatten(1).argmax(1)


def test_batches_equal_torchvisions_crop_flip_normalize():
    data = noise(40, 40)
    images = resident(data)
    images.draw(1)
    batch, labels = images.next_batch(40)
    pad = transforms.Pad(4)
    normalise = transforms.Normalize(MEAN.tolist(), STD.tolist())
    for image, label in zip(batch, labels, strict=True):
        original = torch.from_numpy(data.train_images[label]).permute(2, 0, 1)
        padded = pad(original) / 255
        crops = [padded[:, y : y + 32, x : x + 32] for y in range(9) for x in range(9)]
        candidates = torch.stack([normalise(c) for crop in crops for c in (crop, crop.flip(2))])
        assert (candidates - image).abs().amax((1, 2, 3)).min() < 1e-5


def test_crops_and_flips_are_as_frequent_as_in_torchvision():
    """A white pixel in a black image shows the crop and the flip of the image."""
    count = 4_050
    place = places(count)
    rows = torch.bincount(14 - place // 32, minlength=9)
    assert rows.shape == (9,) and (rows - count / 9).abs().max() < 5 * (count / 9) ** 0.5
    # Unflipped, the pixel lands in columns 8 to 16; flipped, in columns 15 to 23.
    expected = torch.zeros(32)
    expected[8:17] += count / 18
    expected[15:24] += count / 18
    columns = torch.bincount(place % 32, minlength=32)
    assert (columns - expected).abs().max() < 5 * expected.max() ** 0.5


def test_ranks_draw_different_crops_and_flips():
    # By chance one of a hundred lies where the other rank has it.
    assert (places(400, rank=0, ranks=2) == places(400, rank=1, ranks=2)).sum() < 10


def test_ranks_share_every_image_of_an_epoch():
    seen = []
    for rank in range(3):
        images = resident(noise(13, 13), rank=rank, ranks=3)
        images.draw(2)
        for size in (2, images.samples - 2):
            seen += images.next_batch(size)[1].tolist()
    assert set(seen) == set(range(13)) and len(seen) == 15


def test_images_without_augmentation_are_only_normalized():
    data = noise(5, 5)
    images = resident(data, padding=0, flip=False)
    images.draw(1)
    batch, labels = images.next_batch(5)
    normal = (data.train_images / 255 - MEAN) / STD
    assert np.allclose(batch.permute(0, 2, 3, 1).numpy(), normal[labels], atol=1e-5)
    pixels = data.train_images, data.train_labels
    (batch,) = Images(*pixels, MEAN, STD, torch.device("cpu")).batches()
    assert np.allclose(batch.permute(0, 2, 3, 1).numpy(), normal, atol=1e-5)


def test_streamed_batches_are_the_resident_ones(monkeypatch):
    made = []
    for streams in (False, True):
        monkeypatch.setattr(module, "must_stream", lambda *_, streams=streams: streams)
        made.append(resident(noise(26, 26, side=12), padding=2, rank=1, ranks=2))
    resident_images, streamed = made
    assert streamed.streamed
    # Whole batches, a smaller last one; then an epoch that is left before its end.
    for epoch, sizes in ((1, (5, 5, 3)), (2, (5,)), (3, (5, 5))):
        for images in (resident_images, streamed):
            images.draw(epoch)
        for size in sizes:
            streamed.stage(size)
            pairs = zip(resident_images.next_batch(size), streamed.next_batch(size), strict=True)
            assert all(torch.equal(one, other) for one, other in pairs)
