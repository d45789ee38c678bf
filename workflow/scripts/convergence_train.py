"""Train techniques for large batches ("remedies") at global batches, and write a record of each.

Each is trained with several learning rates around the one of its rule, then with the best of
them (by training loss) from every seed. The runs of one call follow one another in one process on
one device; a global batch of several GPUs is emulated there.

    python workflow/scripts/convergence_train.py --global-batches 128 8192 \\
        --remedies '{"none": {}, "linear": {"scaling": "linear", "warmup_epochs": 1}}' \\
        --dataset resources/dataset/digits/images.npz \\
        --manifest resources/dataset/digits/manifest.json --records results/convergence
"""

import argparse
import json
from pathlib import Path

from scaling.config.technique import from_options, uneven
from scaling.convergence.plan import Study
from scaling.core import environment
from scaling.core.errors import UserError, run_script


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--remedies", type=json.loads, required=True, help="JSON: options of each, by name")
    add("--global-batches", type=int, nargs="+", required=True, help="images of one update")
    add("--dataset", type=Path, required=True, help="images.npz, made by dataset_prepare.py")
    add("--manifest", type=Path, required=True, help="its manifest.json")
    add("--device", default="auto", choices=["auto", "cpu", "cuda"], help="default: auto")
    add("--precision", default="float32", choices=["float32", "tf32", "bf16"])
    add("--reference-batch", type=int, default=128, help="on one GPU (default: 128)")
    add("--gpus", type=int, default=4, help="that share a large global batch (default: 4)")
    add("--epochs", type=int, default=5, help="of every run (default: 5)")
    add("--max-epochs", type=int, default=5, help="of runs at equal updates (default: 5)")
    add("--seeds", type=int, nargs="+", default=[0, 1, 2], help="default: 0 1 2")
    add("--factors", type=float, nargs="+", default=[1.0], help="multiples of the rule's rate")
    add("--train-images", type=int, help="how many are used, the first ones (default: all)")
    add("--model-width", type=int, default=64, help="channels of the first stage (default: 64)")
    add("--learning-rate", type=float, default=0.1, help="of the reference batch (default: 0.1)")
    add("--momentum", type=float, default=0.9, help="default: 0.9")
    add("--weight-decay", type=float, default=5e-4, help="default: 5e-4")
    add("--crop-padding", type=int, default=4, help="pixels around a random crop (default: 4)")
    add("--horizontal-flip", choices=["yes", "no"], default="yes", help="default: yes")
    add("--cpu-threads", type=int, default=1, help="threads of the process (default: 1)")
    add("--keep", action="store_true", help="leave records alone that are there already")
    add("--records", type=Path, required=True, help="folder of the records")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    odd = uneven(args.global_batches, args.reference_batch, args.gpus)
    if odd:
        raise UserError(
            f"global batch {odd[0]} cannot be shared by {args.gpus} GPUs: take a multiple of that"
        )
    techniques = {name: from_options(name, options) for name, options in args.remedies.items()}
    study = Study(
        reference_batch=args.reference_batch,
        gpus=args.gpus,
        epochs=args.epochs,
        max_epochs=args.max_epochs,
        seeds=tuple(args.seeds),
        factors=tuple(args.factors),
        learning_rate=args.learning_rate,
        momentum=args.momentum,
        weight_decay=args.weight_decay,
        crop_padding=args.crop_padding,
        horizontal_flip=args.horizontal_flip == "yes",
        model_width=args.model_width,
        precision=args.precision,
        train_images=args.train_images,
    )
    from scaling.convergence import experiment

    experiment.run(
        experiment.Session(
            study=study,
            techniques=techniques,
            global_batches=args.global_batches,
            device=environment.resolve_device(args.device),
            cpu_threads=args.cpu_threads,
            keep=args.keep,
        ),
        args.dataset,
        args.manifest,
        args.records,
    )


if __name__ == "__main__":
    run_script(main)
