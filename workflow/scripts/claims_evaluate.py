"""The claims of a study on the lab's questions: sentences, evidence, verdicts."""

import argparse
from pathlib import Path

from scaling.claims import claim, claim_tables, registry
from scaling.core.errors import run_script


def main(argv: list[str] | None = None) -> None:
    """Write claims.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument(
        "--tables",
        type=Path,
        nargs="*",
        default=[],
        help="the study's tables (CSV), known by their names; a claim without its table is not "
        "measured",
    )
    parser.add_argument("--output", type=Path, required=True, help="claims.json to write")
    args = parser.parse_args(argv)
    tables = claim_tables.read(args.study, args.tables)
    claim.write(args.output, args.study, registry.evaluate(tables))


if __name__ == "__main__":
    run_script(main)
