"""The lab's small convolutional network, one variant at a time."""

from scaling.registry.quantized_model import QuantizedModel
from scaling.registry.registry import Reference

ENTRY = QuantizedModel(
    name="tutorial-cnn",
    training=Reference("scaling.quantization.training:TutorialTraining"),
    evaluation=Reference("scaling.quantization.variant:VariantEvaluation"),
)
