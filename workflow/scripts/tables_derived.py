"""What follows from a study's times: speedup, communication, limits, a cost model, an audit."""

import argparse
from pathlib import Path

from scaling.audit.checks import audit
from scaling.audit.derive import MEASURED, tables_of_times
from scaling.audit.finding import Study
from scaling.core import files
from scaling.core.errors import run_script
from scaling.tables import schema
from scaling.tables.bandwidth import swept_gradient_bytes


def main(argv: list[str] | None = None) -> None:
    """Write the tables that follow from timing.csv and from what was measured beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument("--tables", type=Path, required=True, help="folder of all tables")
    parser.add_argument("--manifest", type=Path, required=True, help="the dataset's manifest.json")
    args = parser.parse_args(argv)
    train_images = files.read_json(args.manifest)["train_images"]
    found = schema.read_all(["timing", *MEASURED], args.tables, args.study)
    timing = found.pop("timing")
    derived = tables_of_times(timing, swept_gradient_bytes(found["interconnect"]), found)
    checked = ("speedup", "communication", "bandwidth", "utilization")
    study = Study(timing=timing, train_images=train_images, **{k: derived[k] for k in checked})
    schema.write_all(derived | {"audit": audit(study)}, args.tables, args.study)


if __name__ == "__main__":
    run_script(main)
