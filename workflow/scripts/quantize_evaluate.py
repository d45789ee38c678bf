"""Quantize the trained network in one or several ways, and measure the loss of each."""

import torch

from scaling.core import command_line, environment
from scaling.core.errors import program
from scaling.core.records.experiments import VARIANT
from scaling.data.batches import read_images
from scaling.launch import lease
from scaling.quantization.variant import VariantEvaluation


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(VariantEvaluation, argv)
    # TF32 keeps 10 bits of a float32; sums of integers must stay integers.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    with lease.device(command.device) as device:
        host_info = environment.describe_process(device)
        training, test, identity = read_images(command.dataset, command.manifest, device)
        chosen = training.sample(command.calibration_images, command.seed)
        started = host_info["started"]
        for path, found in command.evaluate(device, chosen, test):
            ended = environment.now()
            record = {
                "seed": command.seed,
                "device": device.type,
                "dataset": identity,
                **found,
                "environment": {**host_info, "started": started, "ended": ended},
            }
            VARIANT.write(path, record)
            percent, points = found["accuracy_percent"], found["difference_points"]
            print(f"{path}: accuracy {percent:.2f} %, {points:+.2f} points to float32")
            started = ended
