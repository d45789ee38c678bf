"""Train the tutorial CNN of Part B, or quantize it and measure each variant's accuracy loss."""

import torch

from scaling.config.scheme import Scheme
from scaling.core import code_digest, command_line, environment
from scaling.core.errors import UserError
from scaling.core.records.kind import VARIANT, VARIANT_PATTERN
from scaling.data.batches import read_images
from scaling.launch import lease
from scaling.models.tutorial_cnn import load_weights, save_weights
from scaling.quantization.training import TutorialTraining
from scaling.quantization.variant import VariantEvaluation, measure

CODE = TutorialTraining.__module__, VariantEvaluation.__module__


def evaluate(evaluation: VariantEvaluation) -> None:
    # TF32 keeps 10 bits of a float32; sums of integers must stay integers.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    variants = evaluation.variants.items()
    schemes = {name: Scheme.of(options, f"variant {name}") for name, options in variants}
    with lease.device(evaluation.device) as device:
        host_info = environment.describe_process(device) | code_digest.described(*CODE)
        training, test, identity = read_images(evaluation.dataset, evaluation.manifest, device)
        chosen = training.sample(evaluation.calibration_images, evaluation.seed)
        network = load_weights(evaluation.weights).to(device)
        for name, scheme in schemes.items():
            try:
                found = measure(network, scheme, chosen, test, evaluation.seed)
            except UserError as error:
                raise UserError(f"variant {name} cannot be made: {error}") from error
            about = {"variant": name, "scheme": scheme.model_dump(), "seed": evaluation.seed}
            about |= {"device": device.type, "dataset": identity}
            ended = host_info | {"ended": environment.now()}
            path = evaluation.output / VARIANT_PATTERN.format(variant=name)
            VARIANT.write(path, about | found | {"environment": ended})
            percent, points = found["accuracy_percent"], found["difference_points"]
            print(f"{path}: accuracy {percent:.2f} %, {points:+.2f} points to float32")
            host_info["started"] = ended["ended"]


@command_line.script
def main(
    training: TutorialTraining | None = None, evaluation: VariantEvaluation | None = None
) -> None:
    """Train the network with the options `training`, or quantize it with those of `evaluation`."""
    if not (training or evaluation):
        raise UserError("nothing to do: give training or evaluation")
    if training:
        with lease.device(training.device) as device:
            save_weights(training.train(device), training.output)
    if evaluation:
        evaluate(evaluation)
