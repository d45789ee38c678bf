"""Measure how the ranks of a training share images, messages and buffers.

Image orders: trainings with and without set_epoch. Messages: every collective of a training step of
each strategy and, on GPUs, of DataParallel. Buffers: trainings with running statistics broadcast,
kept by each rank and, on GPUs, synchronized.
"""

from scaling.core import command_line
from scaling.core.errors import UserError, program
from scaling.core.records.experiments import SYNCHRONIZATION
from scaling.launch import launcher, measure, supervisor
from scaling.synchronization.plan import Plan


@program
def main(argv: list[str] | None = None) -> None:
    """Write synchronization.json: the results of `synchronization.worker`, and the environment."""
    plan = command_line.parse(Plan, argv, __doc__)
    spec = plan.spec_of(plan.first)
    log_folder = launcher.worker_folder()
    if log_folder is not None:
        from scaling.launch import ranks
        from scaling.synchronization import worker

        ranks.start(plan.gpus, worker.run, plan, log_folder)
        if spec.device == "cuda":
            worker.run(plan, log_folder)
        return
    reason = supervisor.infeasible_reason(spec, plan.images)
    if reason:
        raise UserError(f"{reason}: set synchronization.batch_size to a smaller value")
    found = measure.run(
        __file__,
        argv,
        plan,
        name=f"the synchronization experiments on {plan.gpus} GPUs",
        advice="; where memory is short, set synchronization.batch_size to a smaller value",
        processes=plan.gpus,
    )
    document = {
        "gpus": plan.gpus,
        "device": spec.device,
        "backend": "nccl" if spec.device == "cuda" else "gloo",
        "train_images": plan.images,
        "parameters": spec.parameters() | {"batch_size": plan.batch_size},
        "model": found.of("model")[0],
        "permutations": found.of("permutations"),
        "steps": found.of("steps"),
        "trainings": found.of("training"),
        "seconds": found.seconds,
        "environment": found.environment,
    }
    SYNCHRONIZATION.write(plan.output, document)
