"""The ResNet-18 for 32×32 images that every cell trains."""

from scaling.registry.model import Model
from scaling.registry.registry import Reference

ENTRY = Model(
    name="resnet18-cifar",
    title="ResNet-18",
    factory=Reference("scaling.models.resnet:ResNet18"),
)
