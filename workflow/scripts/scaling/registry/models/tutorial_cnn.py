"""The small convolutional network of the lab's quantization part."""

from scaling.registry.model import Model
from scaling.registry.registry import Reference

ENTRY = Model(
    name="tutorial-cnn",
    title="tutorial CNN",
    factory=Reference("scaling.models.tutorial_cnn:tutorial_cnn"),
    in_grid=False,
)
