"""Quantized models: networks that Part B trains and takes to integers."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class QuantizedModel:
    """How a model of Part B is trained and evaluated.

    Both are subclasses of those in `scaling.quantization.commands`, whose fields are options of the
    scripts.
    """

    name: str
    training: Reference
    evaluation: Reference


QUANTIZED_MODELS = Registry[QuantizedModel](
    "quantized model",
    QuantizedModel,
    QuantizedModel(
        name="tutorial-cnn",
        training=Reference("scaling.quantization.training:TutorialTraining"),
        evaluation=Reference("scaling.quantization.variant:VariantEvaluation"),
    ),
    QuantizedModel(
        name="resnet18-cifar",
        training=Reference("extras.bits.resnet_training:ResNetTraining"),
        evaluation=Reference("extras.bits.resnet:StagesEvaluation"),
    ),
)
