"""The grid's ResNet-18, evaluated at all int8 quantization stages at once."""

from scaling.registry.quantized_model import QuantizedModel
from scaling.registry.registry import Reference

ENTRY = QuantizedModel(
    name="resnet18-cifar",
    training=Reference("scaling.quantization.resnet_training:ResNetTraining"),
    evaluation=Reference("scaling.quantization.resnet_stages:StagesEvaluation"),
)
