"""A cost model of every recipe and strategy of a study, and what it predicts for more GPUs."""

import argparse
import math
from pathlib import Path

from scaling.core.errors import run_script
from scaling.tables import interconnect, io, timing
from scaling.tables.bandwidth import swept_gradient_bytes
from scaling.tables.prediction import predict


def main(argv: list[str] | None = None) -> None:
    """Write prediction.csv, one row per cell, and cost_model.csv, one row per parameter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timing", type=Path, required=True, help="timing.csv of the study")
    parser.add_argument(
        "--interconnect", type=Path, help="interconnect.csv of the same machine, where it was swept"
    )
    parser.add_argument("--fit", type=Path, help="interconnect_fit.csv of the same machine")
    parser.add_argument("--output", type=Path, required=True, help="prediction.csv to write")
    parser.add_argument("--model", type=Path, required=True, help="cost_model.csv to write")
    args = parser.parse_args(argv)
    fits, gradient_bytes = interconnect.fit(interconnect.interconnect([])), math.nan
    if args.interconnect and args.fit:
        fits = io.read(args.fit, interconnect.FIT_COLUMNS)
        sweep = io.read(args.interconnect, interconnect.COLUMNS)
        gradient_bytes = swept_gradient_bytes(sweep)
    times = io.read(args.timing, timing.COLUMNS)
    model, predictions = predict(times, fits, gradient_bytes)
    io.write(model, args.model)
    io.write(predictions, args.output)


if __name__ == "__main__":
    run_script(main)
