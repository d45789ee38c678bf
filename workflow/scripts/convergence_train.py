r"""Train large-batch techniques ("remedies") at global batches, and write a record of each.

Each is trained with several learning rates around its rule's, then with the best of them (by
held-out images or training loss) from every seed. The runs follow one another in one process on one
device, which emulates the global batch of several GPUs.

    python workflow/scripts/convergence_train.py --global-batches 128 8192 \
        --remedies '{"none": {}, "linear": {"scaling": "linear", "warmup_epochs": 1}}' \
        --dataset resources/dataset/digits/images.npz \
        --manifest resources/dataset/digits/manifest.json --records results/convergence
"""

from scaling.convergence.plan import Session
from scaling.core import command_line
from scaling.core.errors import UserError, program
from scaling.registry.update_rule import uneven


@program
def main(argv: list[str] | None = None) -> None:
    """Write runs.json of every technique at every global batch."""
    session = command_line.parse(Session, argv, __doc__)
    gpus = session.study.gpus
    odd = uneven(session.global_batches, session.study.reference_batch, gpus)
    if odd:
        raise UserError(
            f"global batch {odd[0]} cannot be shared by {gpus} GPUs: take a multiple of that"
        )
    from scaling.convergence import experiment

    experiment.run(session)
