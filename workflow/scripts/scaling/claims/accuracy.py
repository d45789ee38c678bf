"""Answer question 4: how much accuracy large batches lose, and which techniques help."""

from typing import Any

import pandas as pd

from scaling.claims.claim import (
    Answer,
    Claim,
    Hypothesis,
    difference,
    extremes,
    on_several_gpus,
    span,
    spread,
)
from scaling.core import numbers as fmt
from scaling.core import statistics
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import Difference
from scaling.tables import accuracy as learning
from scaling.tables.schema import StudyTables, by_configuration, rows_of

OTHER_UPDATES = "muon |lars "
"""Regular expression for options that replace SGD by another optimizer."""


def answer(tables: StudyTables) -> Answer:
    """Return the answer to Q4: accuracy at large batches, and the best techniques if compared."""
    claims = _of_cells(tables)
    trained = tables.remedies.dropna(subset="planned_updates")
    text = _best_techniques(trained)
    if claims and not text:
        text = f"{claims[0].configuration}: {claims[0].sentence}"
        text += " Techniques were not compared." * tables.remedies.empty
    elif not text and len(trained):
        reached = trained.dropna(subset="test_accuracy").groupby("global_batch")["test_accuracy"]
        spans = [f"{span(own)} at global batch {batch}" for batch, own in reached]
        text = f"Techniques reach {', '.join(spans) or 'no accuracy'}; none is best by validation."
    return Answer(text, [*claims, *_techniques(tables)])


def _best_techniques(table: pd.DataFrame) -> str:
    """Return text on the best SGD and each batch's best technique; "" without validation."""
    if table["validation_accuracy"].isna().all():
        return ""
    first, *_ = batches = sorted(set(table["global_batch"]))
    texts, before, text = list[str](), "", ""
    if sgd := best(table, first, sgd=True):
        text = f"SGD at its best ({sgd.remedy}) reaches {fmt.percent(sgd.test_accuracy)} at "
        text += f"global batch {first}. "
    for batch in batches:
        row = best(table, batch)
        name = f"{row.remedy} " * (row.remedy != before) if row else ""
        reached = fmt.percent(row.test_accuracy) if row else "no technique without diverged seeds"
        texts, before = [*texts, f"{name}{reached} at {batch}"], row.remedy if row else ""
    return f"{text}The best by validation: {', '.join(texts)}.".replace("_", " ")


def best(table: pd.DataFrame, global_batch: int, sgd: bool = False) -> Any | None:
    """Return the row with the best validation accuracy at a batch, or None if no row qualifies.

    A row qualifies if no seed diverged and its number of epochs is the reference's (without a
    reference, the smallest in `table`). If `sgd` is True, Muon and LARS do not qualify.
    """
    reference = table[table["reference"].eq(True)]
    epochs = (table if reference.empty else reference)["planned_epochs"].min()
    trained = table["validation_accuracy"].notna() & (table["diverged_seeds"] == 0)
    equal = (table["planned_epochs"] == epochs) & (table["global_batch"] == global_batch)
    rows = table[trained & equal]
    if sgd:
        rows = rows[~rows["options"].str.contains(OTHER_UPDATES)]
    return next(rows.nlargest(1, "validation_accuracy").itertuples(), None)


LOWER = Hypothesis(
    "Q4.1",
    "A larger global batch reaches a lower accuracy after the same number of epochs.",
    test="Accuracies of the seeds of the largest global batch on the most GPUs and, on one GPU, "
    "of the techniques' reference batch, else 128, else the smallest. With fewer than 3 seeds the "
    "noise is pooled over all trainings of one recipe and global batch. Supported: the larger "
    "batch is below by more than noise; refuted: above by more.",
    more="more seeds",
)


def _of_cells(tables: StudyTables) -> list[Claim]:
    """Return a claim for each recipe and strategy: its largest global batch lowers accuracy."""
    cells = on_several_gpus(learning.compare_batches(tables))
    diverged = tables.provenance.query("status == 'diverged'").groupby(CELL_KEYS).size()
    made = []
    for name, rows in by_configuration(cells).items():
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if known.empty:
            continue
        _, large = extremes(known, "global_batch_size")
        small = next(rows_of(rows[rows["reference"]]))
        seeds = min(row.test_accuracy_count for row in (large, small))
        text = f"Batch {large.global_batch_size} reaches {spread(large)} test accuracy, "
        text += f"batch {small.batch_size} on one GPU {spread(small)}"
        if seeds < learning.SEEDS:
            text += f" ({fmt.plural(seeds, 'seed')})"
        if lost := diverged.get(tuple(getattr(large, key) for key in CELL_KEYS)):
            text += f"; {fmt.plural(lost, 'run')} of batch {large.global_batch_size} diverged"
        larger = rows.query("status == 'diverged' and global_batch_size > @large.global_batch_size")
        for size in larger["global_batch_size"].unique():
            text += f"; batch {size} diverged"
        below, above = large.difference_high < 0, large.difference_low > 0
        made.append(LOWER.claim(name, f"{text}.", holds=below, fails=above))
    return made


CLOSES = Hypothesis(
    "Q4.2-gap",
    "The best technique, chosen without test images, brings a large batch to the small batch's "
    "test accuracy after the same number of epochs.",
    test="Welch's 95 % interval of mean test accuracy minus that of the best technique at the "
    "reference batch. Supported: all of it is above −margin, and the reference's best rate inside "
    "its sweep. Refuted: all of it is below 0 and not above −margin, and the technique's best rate "
    "inside its sweep.",
    more="more seeds",
)


def _techniques(tables: StudyTables) -> list[Claim]:
    """Return the claim of `_closes` for each trained global batch above the reference batch."""
    table = tables.remedies
    references = table.loc[table["reference"].eq(True), "global_batch"]
    if references.empty or table["validation_accuracy"].isna().all():
        return []
    reference = int(references.min())
    trained = table.loc[table["planned_updates"].notna(), "global_batch"]
    larger = sorted({int(batch) for batch in trained if batch > reference})
    return [_closes(batch, reference, tables) for batch in larger]


def _closes(batch: int, reference: int, tables: StudyTables) -> Claim:
    """Return the claim that the best technique at `batch` is not worse than that at `reference`.

    The test is for non-inferiority, as in clinical trials (EMEA/CPMP/EWP/2158/99, 2005). If a best
    learning rate is at an end of its sweep, its accuracy may be too low. At `batch`, a failed test
    then does not refute the claim. At `reference`, a passed test then does not support the claim.
    """
    about = f"global batch {batch}"
    own, there = (best(tables.remedies, each) for each in (batch, reference))
    if own is None or there is None:
        text = "No technique learned in every seed, there or at the small batch."
        return CLOSES.claim(about, text, unclear="so there is none to choose")
    found = _compared(own, there, tables)
    closed, at_end = found.low > -own.accuracy_margin, own.at_edge or there.at_edge
    text = f"{own.remedy} reaches {spread(own)}: {difference(found)} against {there.remedy}, best "
    return CLOSES.claim(
        about,
        f"{text}at batch {reference} (margin {fmt.points(-100 * own.accuracy_margin)} points).",
        holds=closed and not there.at_edge,
        fails=found.high < 0 and not closed and not own.at_edge,
        unclear="a best rate at the end of its sweep leaves it open" if at_end else "",
    )


def _compared(own: Any, other: Any, tables: StudyTables) -> Difference:
    """Return the difference of mean test accuracies, `own` - `other`, with its interval."""
    runs = tables.convergence.query("chosen == True").dropna(subset="test_accuracy")
    seeds = runs.groupby(["remedy", "global_batch"])["test_accuracy"].agg(list)
    return statistics.difference(*(seeds[row.remedy, row.global_batch] for row in (other, own)))
