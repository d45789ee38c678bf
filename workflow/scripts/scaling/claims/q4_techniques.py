"""Question 4.2: what brings large batches to the small batch's accuracy; full trainings.

Each technique's gain and verdict are in remedies.csv.
"""

import math
from typing import Any

from scaling.claims.claim import Claim, Hypothesis
from scaling.claims.phrases import difference, spread
from scaling.core import numbers as fmt
from scaling.core.statistics import Difference
from scaling.tables.experiments import best_remedy, same_runs
from scaling.tables.experiments.same_runs import BEHIND, CLOSED, non_inferiority
from scaling.tables.schema import StudyTables, rows_of


def claims(tables: StudyTables) -> list[Claim]:
    """Return claims on rates, techniques and updates, and on full trainings."""
    plain = next(rows_of(tables.remedies[tables.remedies["reference"].eq(True)]), None)
    made = []
    if plain is not None:
        made = [_best_rate(plain.global_batch, tables), *_techniques(plain, tables)]
        made += _equal_updates(plain, tables)
    return [*made, *_full_trainings(tables)] or [
        CLOSES.missing("", "Add techniques to `convergence.remedies`.")
    ]


BEST_RATE = Hypothesis(
    "Q4.2-best-rate",
    "The best learning rate of plain SGD grows more slowly than the global batch.",
    table="convergence",
    test="The swept rate that did best, at the reference batch and at the largest global batch "
    "whose best rate is not at an end of its sweep: exponent of a power law through both. It has a "
    "range, as the best of all rates may lie half a step of the sweep, in its logarithm, beside "
    "the best that was tried. The noise of the sweep's one seed is not in it. Supported: the whole "
    "range is below 1; refuted: all of it is at or above 1.",
    more="finer `convergence.factors`",
)


def _best_rate(size: int, tables: StudyTables) -> Claim:
    inside = _best_rates(tables)
    if len(inside) < 2 or min(inside) != size:
        add = f"Widen `convergence.factors` until the best rates at {size} and a larger batch lie "
        return BEST_RATE.missing("", f"{add}inside.")
    largest = max(inside)
    low, exponent, high = (
        math.log(above / below) / math.log(largest / size)
        for above, below in zip(inside[largest], reversed(inside[size]), strict=True)
    )
    return BEST_RATE.claim(
        "",
        f"From {inside[size][1]:.3g} at batch {size} to {inside[largest][1]:.3g} at {largest}, as "
        f"the batch to the power of {exponent:.2f} ({low:.2f}–{high:.2f} by the steps of the "
        "sweep).",
        holds=high < 1,
        fails=low >= 1,
    )


def _best_rates(tables: StudyTables) -> dict[int, tuple[float, float, float]]:
    """Return each global batch's best rate, if inside its sweep, with half a step as error."""
    table, runs = tables.remedies, tables.convergence
    inside = {}
    for batch in sorted(int(batch) for batch in table["global_batch"].unique()):
        row = best_remedy.plain_sweep(table, batch)
        if row is None or row.diverged_seeds or row.at_edge:
            continue
        tried = runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == batch)]
        rates, best = tried["learning_rate"], row.learning_rate
        below, above = rates[rates < best].max(), rates[rates > best].min()
        inside[batch] = (math.sqrt(best * below), best, math.sqrt(best * above))
    return inside


CLOSES = Hypothesis(
    "Q4.2-gap",
    "The best technique, chosen without test images, brings a large batch to the small batch's "
    "test accuracy in as many epochs.",
    table="remedies",
    test="Welch's 95 % interval of mean test accuracy minus that of the best technique at the "
    "reference batch. Supported: all of it is above −margin, and the reference's best rate inside "
    "its sweep. Refuted: all of it is below 0 and not above −margin, and the technique's best rate "
    "inside its sweep.",
    more="more seeds",
)
CLOSES_TO_SGD = Hypothesis(
    "Q4.2-best-sgd",
    "The best technique brings a large batch to the test accuracy of the small batch's best SGD "
    "in as many epochs.",
    table="remedies",
    test="As for the best technique, with neither LARS nor Muon at the reference batch.",
    more="more seeds",
)
EQUAL_UPDATES = Hypothesis(
    "Q4.2-equal-updates",
    "With as many updates, plain SGD brings a large batch to the small batch's test accuracy.",
    table="remedies",
    test="Plain SGD with at least as many updates as the reference, rates swept in both; Welch's "
    "95 % interval of mean test accuracy minus the reference's. Decided by the rule for the best "
    "technique.",
    more="more seeds",
)


def _techniques(plain: Any, tables: StudyTables) -> list[Claim]:
    """Return the claims on each trained global batch above the reference's."""
    table = tables.remedies
    if table["validation_accuracy"].isna().all():
        add = "No technique was judged on held-out images, so none is chosen: set "
        add += "`convergence.held_out_images` above 0, and sweep rates."
        return [CLOSES.missing("", add)]
    trained = table.loc[table["planned_updates"].notna(), "global_batch"]
    larger = sorted({int(batch) for batch in trained if batch > plain.global_batch})
    own = {batch: best_remedy.best(table, batch) for batch in larger}
    there = best_remedy.best(table, plain.global_batch)
    sgd = best_remedy.best(table, plain.global_batch, sgd=True)
    compared_with = [(CLOSES, there, ", best")]
    if sgd and there and sgd.remedy != there.remedy:
        compared_with.append((CLOSES_TO_SGD, sgd, ", the best SGD"))
    return [
        _closes(expected, batch, row, other, tables, best)
        for expected, other, best in compared_with
        for batch, row in own.items()
    ]


def _equal_updates(plain: Any, tables: StudyTables) -> list[Claim]:
    """Return the claims on plain SGD with the reference's number of updates or more."""
    table = tables.remedies
    options = table["options"].map(best_remedy.non_learning_rate_options)
    enough = table["updates"].notna() & (table["planned_updates"] >= plain.planned_updates)
    rows = table[enough & (table["global_batch"] > plain.global_batch)]
    rows = rows[[each == ["equal_updates"] for each in options[rows.index]]]
    made = [
        _closes(EQUAL_UPDATES, row.global_batch, row, plain, tables)
        for row in rows_of(rows.drop_duplicates("global_batch"))
    ]
    add = "Add `equal_updates: true` to `convergence.remedies`, or raise `convergence.max_epochs`."
    return made or [EQUAL_UPDATES.missing("", add)]


def _closes(
    expected: Hypothesis, batch: int, own: Any, there: Any, tables: StudyTables, best: str = ""
) -> Claim:
    """Claim that a technique reaches the test accuracy of another row, the `best` at its batch.

    A technique whose best rate is at the end of its sweep might be better, so it is never called
    behind; if the reference's is at an end, nothing is called closed.
    """
    about = f"global batch {batch}"
    if own is None or there is None:
        said = "No technique learned in every seed, there or at the small batch."
        return expected.claim(about, said, unclear="so there is none to choose")
    found, margin = compared(own, there, tables), float(own.accuracy_margin)
    tells = non_inferiority(found.low, found.high, margin)
    at_end = bool(own.at_edge or there.at_edge)
    said = f"{difference(found)} against {there.remedy}{best} at batch {there.global_batch}"
    base = best_remedy.base_rate(tables.remedies, chosen=False)
    lab = next(rows_of(base[base["global_batch"] == there.global_batch]), None)
    if expected is CLOSES and lab and lab.remedy != there.remedy:
        said += f", {difference(compared(own, lab, tables), '', '')} against the lab's rate there"
    after = ":"
    if expected is EQUAL_UPDATES:
        after = f" after {fmt.plural(own.planned_epochs, 'epoch')},"
        said += f" after {there.planned_epochs:.0f}"
    return expected.claim(
        about,
        f"{own.remedy} reaches {spread(own)}{after} {said}.",
        holds=tells == CLOSED and not there.at_edge,
        fails=tells == BEHIND and not own.at_edge,
        unclear="a best rate at the end of its sweep leaves it open" if at_end else "",
    )


def compared(own: Any, other: Any, tables: StudyTables, of: str = "test_accuracy") -> Difference:
    """Return the difference in accuracy between the seeds of two rows of remedies.csv."""
    runs = tables.convergence[tables.convergence["chosen"].eq(True)]
    first, second = (
        runs[(runs["remedy"] == row.remedy) & (runs["global_batch"] == row.global_batch)]
        for row in (own, other)
    )
    return same_runs.difference(first, second, of)


SOONER = Hypothesis(
    "Q4.2-trained",
    "More GPUs reach an accuracy sooner, in trainings run to their end.",
    table="trained_to_accuracy",
    test="Training seconds of a number of epochs chosen beforehand, 95 % interval of the ratio of "
    "geometric means. Supported: it is above 1, and most trainings reached the accuracy on either "
    "number of GPUs. Refuted: it is below 1, or none reached it.",
    more="more seeds",
)


def _full_trainings(tables: StudyTables) -> list[Claim]:
    """Return a claim on each number of GPUs above the fewest."""
    rows = list(rows_of(tables.trained_to_accuracy.sort_values("gpus")))
    return [
        SOONER.claim(
            f"{row.recipe}/{row.strategy}, {fmt.gpus(row.gpus)}",
            f"{_reached(row)}; {_reached(rows[0])}: {fmt.times(row.speedup)} "
            f"({fmt.span(row.speedup_low, row.speedup_high)}).",
            holds=row.speedup_low > 1 and min(row.reached, rows[0].reached) > row.seeds / 2,
            fails=row.speedup_high < 1 or row.reached == 0,
        )
        for row in rows[1:]
    ]


def _reached(row: Any) -> str:
    seconds = fmt.span(row.training_seconds_min, row.training_seconds_max)
    said = f"{row.reached} of {row.seeds} reach {fmt.percent(row.target_accuracy)} on "
    said += f"{fmt.gpus(row.gpus)}, in {seconds} s"
    return said if math.isnan(row.joules) else f"{said} and {fmt.significant(row.joules)} J"
