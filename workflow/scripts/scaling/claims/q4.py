"""Question 4: what large batches cost in accuracy after equal epochs, and what helps."""

import pandas as pd

from scaling.claims import q4_techniques
from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.claims.phrases import row_at, spread
from scaling.core import numbers as fmt
from scaling.tables import accuracy as learning
from scaling.tables.experiments import best_remedy
from scaling.tables.schema import StudyTables, by_configuration, rows_of


def answer(tables: StudyTables) -> Answer:
    """Answer by the accuracy of the best techniques or, without any, by the first claim."""
    less = _of_cells(tables)
    add = "Add 2 or more to `grid.gpus`, or larger sizes to `grid.batch_sizes`."
    claims = less or [OF_CELLS.missing("", add)]
    text = _best_techniques(tables.remedies)
    if less and not text:
        text = f"{less[0].configuration}: {less[0].sentence}"
    return Answer(text, [*claims, *q4_techniques.claims(tables)])


def _best_techniques(table: pd.DataFrame) -> str | None:
    """Return the best SGD at the smallest batch, and the best technique at each larger one."""
    if table.empty:
        return None
    small, *larger = sorted(set(table["global_batch"]))
    sgd = best_remedy.best(table, small, sgd=True)
    best = [row for batch in larger if (row := best_remedy.best(table, batch))]
    if sgd is None or not best:
        return None
    names = ["", *(row.remedy for row in best)]
    techniques = [
        f"{'' if row.remedy == before else f'{row.remedy} '}at {row.global_batch} "
        f"{fmt.percent(row.test_accuracy)}"
        for row, before in zip(best, names, strict=False)
    ]
    reference = f"SGD at {small} reaches {fmt.percent(sgd.test_accuracy)}"
    return f"{reference}; by held-out images {', '.join(techniques).replace('_', ' ')}."


OF_CELLS = Hypothesis(
    "Q4.1",
    "A larger global batch learns less in as many epochs.",
    table="accuracy",
    test="Accuracies of the seeds of the largest global batch on the most GPUs and of batch 128, "
    "else the smallest, on one GPU. With fewer than 3 seeds the noise is pooled over all trainings "
    "of one recipe and global batch. Supported: the larger batch is below by more than noise; "
    "refuted: above by more.",
    more="more seeds",
)


def _of_cells(tables: StudyTables) -> list[Claim]:
    """Claim it of the largest global batch of each recipe and strategy."""
    cells = learning.compare_batches(tables.timing, tables.accuracy)
    made = []
    for recipe, strategy, rows in by_configuration(cells) if len(cells) else []:
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if known.empty:
            continue
        large = row_at(known, known["global_batch_size"].idxmax())
        small = next(rows_of(rows[rows["reference"]]))
        of, apart = large.difference_of, large.within_spread is False
        seeds = min(getattr(row, f"{of}_count") for row in (large, small))
        sentence = f"Batch {large.global_batch_size} reaches {spread(large, of)} {fmt.words(of)}, "
        sentence += f"{spread(small, of)} with batch {small.batch_size} on one GPU"
        if seeds < learning.SEEDS:
            sentence += f" ({fmt.plural(seeds, 'seed')}; noise: of trainings alike)"
        claim = OF_CELLS.claim(
            f"{recipe}/{strategy}",
            f"{sentence}.",
            holds=apart and large.difference < 0,
            fails=apart and large.difference > 0,
        )
        made.append(claim)
    return made
