"""Train the tutorial CNN of Part B, or quantize it and measure each variant's accuracy loss."""

import torch

from scaling.core import command_line, environment
from scaling.core.records.experiments import VARIANT
from scaling.data.batches import read_images
from scaling.launch import lease
from scaling.models.tutorial_cnn import save_weights
from scaling.quantization.training import TutorialTraining
from scaling.quantization.variant import VariantEvaluation


def train(training: TutorialTraining) -> None:
    with lease.device(training.device) as device:
        save_weights(training.train(device), training.output)


def evaluate(evaluation: VariantEvaluation) -> None:
    # TF32 keeps 10 bits of a float32; sums of integers must stay integers.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    with lease.device(evaluation.device) as device:
        host_info = environment.describe_process(device)
        training, test, identity = read_images(evaluation.dataset, evaluation.manifest, device)
        chosen = training.sample(evaluation.calibration_images, evaluation.seed)
        started = host_info["started"]
        for path, found in evaluation.evaluate(device, chosen, test):
            ended = environment.now()
            record = {
                "seed": evaluation.seed,
                "device": device.type,
                "dataset": identity,
                **found,
                "environment": {**host_info, "started": started, "ended": ended},
            }
            VARIANT.write(path, record)
            percent, points = found["accuracy_percent"], found["difference_points"]
            print(f"{path}: accuracy {percent:.2f} %, {points:+.2f} points to float32")
            started = ended


@command_line.script
def main(
    training: TutorialTraining | None = None, evaluation: VariantEvaluation | None = None
) -> None:
    if training:
        train(training)
    if evaluation:
        evaluate(evaluation)
