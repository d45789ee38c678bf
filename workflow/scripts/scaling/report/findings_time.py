"""Sentences on the outcome of a study: times, speedup, loading."""

from typing import Any

from scaling.core import numbers as fmt
from scaling.report.finding import Finding, measured, part_of, source
from scaling.tables import noise
from scaling.tables.schema import StudyTables


def outcome(tables: StudyTables) -> Finding:
    """How many cells ended how."""
    found = tables.timing["status"].value_counts(sort=False)
    if found.empty:
        return Finding("The study has no cells.", "timing.csv", supported=False)
    ok = f"{int(found.get('ok', 0))} ok"
    others = [f"{count} {name}" for name, count in found.items() if name != "ok"]
    sentence = f"Of {fmt.plural(int(found.sum()), 'cell')}, {', '.join([ok, *others])}."
    return Finding(sentence, "timing.csv: all cells")


def fastest(tables: StudyTables) -> Finding:
    """The cell with the shortest epoch, and those that cannot be told from it."""
    cells = measured(tables.timing, "epoch_seconds").sort_values("epoch_seconds")
    if cells.empty:
        return Finding("No cell has a time, so none is fastest.", "timing.csv", supported=False)
    best, *others = cells.itertuples()
    sentence = (
        f"The shortest epoch took {fmt.seconds(best.epoch_seconds)} "
        f"({fmt.span(best.epoch_seconds_min, best.epoch_seconds_max)} s over "
        f"{fmt.plural(int(best.count), 'epoch')}): {fmt.cell_name(best)}."
    )
    if best.count == 1:
        return Finding(
            f"{sentence} It was measured once, so its spread is unknown.", source("timing", best)
        )
    ties = [row for row in others if _same_time(row, best)]
    if ties:
        names = ", ".join(
            f"{fmt.cell_name(row)} ({fmt.seconds(row.epoch_seconds)})" for row in ties[:2]
        )
        more = f" and {len(ties) - 2} more" if len(ties) > 2 else ""
        sentence += f" Within noise of it: {names}{more}."
    return Finding(sentence, source("timing", best, *ties[:2]))


def best_speedup(tables: StudyTables) -> Finding:
    """The best speedup over one GPU and the best efficiency."""
    cells = measured(tables.speedup, "speedup")
    cells = cells[cells["gpus"] > 1]
    if cells.empty:
        return Finding(
            "No speedup can be stated: no cell on several GPUs has both its own time and that of "
            "one GPU at the same batch size.",
            "speedup.csv",
            supported=False,
        )
    fast = next(cells.loc[[cells["speedup"].idxmax()]].itertuples())
    efficient = next(cells.loc[[cells["efficiency"].idxmax()]].itertuples())
    lead = "The best speedup is" if fast.speedup > 1 else "No cell beats one GPU: the best reaches"
    sentence = (
        f"{lead} {fmt.times(fast.speedup)} ({fmt.span(fast.speedup_min, fast.speedup_max)}) on "
        f"{fmt.gpus(int(fast.gpus))}, an efficiency of {fmt.percent(fast.efficiency)}: "
        f"{fmt.cell_name(fast)}{_caveat(fast)}."
    )
    cited = [fast]
    if efficient.Index != fast.Index:
        cited.append(efficient)
        sentence += (
            f" The best efficiency is {fmt.percent(efficient.efficiency)}: "
            f"{fmt.cell_name(efficient)}{_caveat(efficient)}."
        )
    noisy = int(cells["within_spread"].sum())
    if noisy:
        sentence += (
            f" {noisy} of {fmt.plural(len(cells), 'cell')} on several GPUs cannot be told from one "
            "GPU: the difference is within noise."
        )
    return Finding(sentence, source("speedup", *cited))


def loading(tables: StudyTables) -> Finding:
    """The share of the epoch spent waiting for data."""
    cells = measured(tables.timing, "loader_seconds")
    if cells.empty:
        return Finding(
            "How much loading matters cannot be said: no cell has a loading time.",
            "timing.csv",
            supported=False,
        )
    cells = cells.assign(share=cells["loader_seconds"] / cells["epoch_seconds"])
    fast = next(cells.loc[[cells["epoch_seconds"].idxmin()]].itertuples())
    most = next(cells.loc[[cells["share"].idxmax()]].itertuples())
    sentence = (
        f"Waiting for data takes {fmt.percent(fast.share)} of the shortest epoch "
        f"({part_of(fast.loader_seconds, fast.epoch_seconds)})"
    )
    if most.Index == fast.Index:
        return Finding(f"{sentence}, the largest share of all cells.", source("timing", fast))
    sentence += (
        f", and at most {fmt.percent(most.share)} "
        f"({part_of(most.loader_seconds, most.epoch_seconds)}): {fmt.cell_name(most)}."
    )
    return Finding(sentence, source("timing", fast, most))


def _same_time(row: Any, other: Any) -> bool:
    return row.count > 1 and noise.ranges_overlap(
        row.epoch_seconds_min,
        row.epoch_seconds_max,
        other.epoch_seconds_min,
        other.epoch_seconds_max,
    )


def _caveat(row: Any) -> str:
    """What to doubt about a speedup."""
    if row.speedup > row.gpus:
        noise_only = ", within noise" if row.speedup_min <= row.gpus else ""
        return f" (above its {int(row.gpus)} GPUs{noise_only}: see the audit)"
    return " (within noise of one GPU)" if row.within_spread else ""
