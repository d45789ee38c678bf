"""Compare two studies cell by cell: A, the baseline, and B, the contender.

Each is the name of a study in studies/, or a results folder. Cells match by recipe, strategy, GPUs
and batch size per GPU (on one GPU strategies are equal). A cell's ratio is A's seconds per epoch
over B's, as medians. If each time has two runs or more, its range is the 95 % interval between
runs; else it goes from A's shortest epoch over B's longest to A's longest over B's shortest. B is
faster or slower if the range excludes 1, else within noise.

With --fail-below MARK the exit status is 1 if the whole range of a matched cell is below MARK, or
if B ran out of memory or time in a cell that A has a time for. A cell that either study timed once
has no range and never fails.
"""

import re
from pathlib import Path

from scaling.core import command_line, files
from scaling.core.errors import UserError
from scaling.report import compare, page
from scaling.report.cells import download
from scaling.tables.schema import as_csv

TEMPLATE = Path(__file__).parents[2] / "report/compare.html.j2"


@command_line.script
def main(
    a: str, b: str, fail_below: float | None = None, output: Path = Path("results/compare")
) -> None:
    """Write the page and the table into the folder `output`, and print a summary."""
    sides = compare.read(a), compare.read(b)
    if sides[0].times.equals(sides[1].times):
        raise UserError(f"A ({a}) and B ({b}) have the same times in every cell: name two studies")
    found = compare.cells(*sides)
    name = "-".join(re.sub(r"[^\w.]+", "-", side).strip("-.") for side in (a, b))
    table, target = output / f"{name}.csv", output / f"{name}.html"
    files.write_text(table, as_csv(found))
    refusal = compare.refusal(found, fail_below) if fail_below else ""
    html = page.render(
        TEMPLATE,
        **compare.values(*sides, found),
        data=[download(table, "text/csv")],
        mark=fail_below,
        refusal=refusal,
    )
    files.write_text(target, html)
    print(f"{b} against {a}: {compare.summary(found)}\nThe page is {target.resolve().as_uri()}")
    if refusal:
        raise UserError(refusal)
