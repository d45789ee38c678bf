"""Sentence on the fixed cost of a run: how much of the study's time was not measured epochs."""

from scaling.core import numbers as fmt
from scaling.report.finding import Finding, part_of
from scaling.tables.schema import StudyTables
from scaling.tables.startup import PHASE_COLUMNS


def fixed_cost(tables: StudyTables) -> Finding:
    """The share of the run time that is measured epochs, the start-up and its longest phase."""
    rows = tables.startup[tables.startup["run_seconds"].notna()]
    if rows.empty:
        return Finding(
            "What a run costs besides its measured epochs is unknown: no run that came to its end "
            "recorded it.",
            "startup.csv",
            supported=False,
        )
    # A run that two strategies share was made once: its seconds agree to the last digit.
    runs = rows.drop_duplicates(["recipe", "gpus", "batch_size", "run_seconds"])
    measured, whole = runs["measured_seconds"].sum(), runs["run_seconds"].sum()
    cells = fmt.plural(len(tables.startup), "cell")
    represented = "all" if len(rows) == len(tables.startup) else f"{len(rows)} of"
    startups = []
    for recipe, same in runs.groupby("recipe", sort=False):
        phases = same[PHASE_COLUMNS].median()
        longest = phases.idxmax()
        startups.append(
            f"{fmt.seconds(same['startup_seconds'].median())} with {recipe} (longest phase: "
            f"{longest.removesuffix('_seconds')}, {fmt.seconds(phases[longest])})"
        )
    return Finding(
        f"Measured epochs are {fmt.percent(measured / whole)} of the run time "
        f"({part_of(measured, whole)}; {fmt.plural(len(runs), 'run')} that stand for "
        f"{represented} {cells}). The median start-up of a run takes {', '.join(startups)}.",
        "startup.csv: all cells",
    )
