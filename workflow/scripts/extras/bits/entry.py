"""The grid's ResNet-18, evaluated at all int8 quantization stages at once."""

from scaling.registry.quantized_model import QuantizedModel
from scaling.registry.registry import Reference

ENTRY = QuantizedModel(
    name="resnet18-cifar",
    training=Reference("extras.bits.resnet_training:ResNetTraining"),
    evaluation=Reference("extras.bits.resnet_stages:StagesEvaluation"),
)
