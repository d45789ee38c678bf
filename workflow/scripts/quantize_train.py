"""Train a network for Part B (quantization)."""

from scaling.core import command_line, environment, files
from scaling.core.errors import program
from scaling.launch import lease
from scaling.models.tutorial_cnn import save_weights
from scaling.quantization.training import TutorialTraining


@program
def main(argv: list[str] | None = None) -> None:
    command = command_line.parse(TutorialTraining, argv)
    with lease.device(command.device) as device:
        host_info = environment.describe_process(device)
        network, summary = command.train(device)
    save_weights(network, command.output)
    ended = {**host_info, "ended": environment.now()}
    files.write_json(command.summary, {**summary, "device": device.type, "environment": ended})
