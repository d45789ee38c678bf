"""What cannot be right, or is easily misread, in a study's tables."""

import argparse
from pathlib import Path

from scaling.audit.checks import audit
from scaling.audit.finding import Study
from scaling.core import files
from scaling.core.errors import run_script
from scaling.published import printed
from scaling.tables import bandwidth, communication, io, speedup, timing, utilization


def main(argv: list[str] | None = None) -> None:
    """Write audit.csv: one row per finding, none when there is nothing to say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument("--speedup", type=Path, required=True, help="speedup.csv of the study")
    parser.add_argument(
        "--communication", type=Path, required=True, help="communication.csv of the study"
    )
    parser.add_argument("--bandwidth", type=Path, required=True, help="bandwidth.csv of the study")
    parser.add_argument(
        "--printed", type=Path, help="printed.csv, for a study whose document printed figures"
    )
    parser.add_argument(
        "--utilization", type=Path, help="utilization.csv, for a study with measured peaks"
    )
    training_set = parser.add_mutually_exclusive_group(required=True)
    training_set.add_argument("--train-images", type=int, help="images in the training set")
    training_set.add_argument("--manifest", type=Path, help="the dataset's, which says so")
    parser.add_argument("--output", type=Path, required=True, help="audit.csv to write")
    args = parser.parse_args(argv)
    train_images = args.train_images
    if args.manifest:
        train_images = files.read_json(args.manifest)["train_images"]
    optional = {"printed": printed.read(args.printed)} if args.printed else {}
    if args.utilization:
        optional["utilization"] = io.read(args.utilization, utilization.COLUMNS)
    study = Study(
        timing=io.read(args.timing, timing.COLUMNS),
        speedup=io.read(args.speedup, speedup.COLUMNS),
        communication=io.read(args.communication, communication.COLUMNS),
        bandwidth=io.read(args.bandwidth, bandwidth.COLUMNS),
        train_images=train_images,
        **optional,
    )
    io.write(audit(study), args.output)


if __name__ == "__main__":
    run_script(main)
