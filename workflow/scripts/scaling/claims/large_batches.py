"""Question 4.1: loss and accuracy after equal epochs, of larger and larger global batches."""

from itertools import pairwise
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import caveat
from scaling.claims.seeds import difference, figures_of, spread
from scaling.core import numbers as fmt
from scaling.tables import large_batch
from scaling.tables.experiments.best_remedy import base_rate
from scaling.tables.noise import ranges_overlap

QUESTION = "Q4.1"
LARGEST = (
    "Welch's 95 % interval of the difference in mean accuracy, seeds against seeds, training and "
    "test each for itself. Supported: both lie below 0; refuted: one lies above 0; undecided: "
    "otherwise, or fewer than 2 seeds, or a loss that was not finite."
)
EVERY = (
    "Training accuracy of neighbouring global batches, ranges over the seeds. Supported: each "
    "larger batch lies below the one before it; refuted: one lies above it; undecided: ranges "
    "overlap, or there are fewer than 2 seeds."
)
CELLS = (
    "Ranges of the seeds' accuracies of the two cells. Supported: disjoint, and the larger batch "
    "is below; refuted: disjoint, and it is above; undecided: they overlap, or one has one seed."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """From convergence.csv, at the base rate; without it, from the timed cells' own seeds."""
    runs = base_rate(tables["convergence"])
    batches = sorted(int(batch) for batch in runs["global_batch"].unique())
    if len(batches) > 1:
        file = tables.file("convergence")
        return [_largest(runs, batches, file), _every(runs, batches, file)]
    return _cells(tables)


def _largest(runs: pd.DataFrame, batches: list[int], file: str) -> Claim:
    own, small = (runs[runs["global_batch"] == batch] for batch in (batches[-1], batches[0]))
    row, first = own.iloc[0], small.iloc[0]
    figures: dict[str, Any] = {
        "largest_global_batch": batches[-1],
        "reference_batch": batches[0],
        "epochs": row["planned_epochs"],
        "seeds": len(own),
        "reference_seeds": len(small),
        "learning_rate": row["learning_rate"],
        "updates": row["planned_updates"],
        "reference_run_updates": first["planned_updates"],
    }
    intervals = {}
    for split in ("train", "test"):
        figures |= figures_of(own, f"{split}_loss") | figures_of(own, f"{split}_accuracy")
        figures |= figures_of(small, f"{split}_loss", "reference_")
        figures |= figures_of(small, f"{split}_accuracy", "reference_")
        intervals[split] = difference(own, small, f"{split}_accuracy")
        figures |= intervals[split].figures(f"{split}_accuracy")
    sentence = (
        f"After {fmt.plural(int(row['planned_epochs']), 'epoch')} at a constant rate of "
        f"{row['learning_rate']:g}, a global batch of {batches[-1]} ({fmt.gpus(int(row['gpus']))} "
        f"× {int(row['batch_size'])}) has made {int(row['planned_updates'])} updates and has "
        f"{_learned(own)}; batch {batches[0]} on {fmt.gpus(int(first['gpus']))}, after "
        f"{int(first['planned_updates'])} updates, {_learned(small)}. The difference is "
        f"{intervals['train'].words()} in training accuracy and {intervals['test'].words()} in "
        f"test accuracy ({fmt.plural(len(own), 'seed')} against {len(small)}).{caveat(own)}"
    )
    holds = all(interval.below for interval in intervals.values())
    fails = any(interval.above for interval in intervals.values())
    evidence = [Evidence(file, figures, LARGEST)]
    return Claim("Q4.1-largest", QUESTION, sentence, judge(holds, fails), evidence)


def _learned(runs: pd.DataFrame) -> str:
    """Loss and accuracy of both sets."""
    return (
        f"a training loss of {spread(runs, 'train_loss')} and accuracy of "
        f"{spread(runs, 'train_accuracy')}, a test loss of {spread(runs, 'test_loss')} and "
        f"accuracy of {spread(runs, 'test_accuracy')}"
    )


def _every(runs: pd.DataFrame, batches: list[int], file: str) -> Claim:
    groups = [runs[runs["global_batch"] == batch]["train_accuracy"].dropna() for batch in batches]
    figures: dict[str, Any] = {}
    parts = []
    for batch, values in zip(batches, groups, strict=True):
        figures |= {f"train_accuracy_at_{batch}": values.mean() if len(values) else "none"}
        figures |= {f"seeds_at_{batch}": len(values)}
        test = runs[runs["global_batch"] == batch]
        parts.append(
            f"{batch}: {spread(test, 'train_accuracy')} training, "
            f"{spread(test, 'test_accuracy')} test"
        )
    pairs = list(pairwise(groups))
    known = all(len(values) > 1 for values in groups)
    holds = known and all(larger.max() < smaller.min() for smaller, larger in pairs)
    fails = known and any(larger.min() > smaller.max() for smaller, larger in pairs)
    what = (
        "each larger global batch has learned less"
        if holds
        else "a larger global batch has learned more than a smaller one"
        if fails
        else "not every larger global batch has learned less beyond the spread of the seeds"
    )
    sentence = f"After equal epochs at the same rate {what}. Accuracy at {'; '.join(parts)}."
    evidence = [Evidence(file, figures, EVERY)]
    return Claim("Q4.1-every-batch", QUESTION, sentence, judge(holds, fails), evidence)


def _cells(tables: ClaimTables) -> list[Claim]:
    file = tables.file("accuracy")
    if tables["timing"].empty or tables["accuracy"].empty:
        lacks = "What a larger batch does cannot be said: no cell of the study has an accuracy."
        return [undecided("Q4.1", QUESTION, lacks, file, CELLS)]
    compared = large_batch.compare(tables["timing"], tables["accuracy"])
    made = []
    for (recipe, strategy), rows in compared.groupby(["recipe", "strategy"], sort=False):
        id, name = f"Q4.1-{recipe}-{strategy}", f"{recipe}/{strategy}"
        known = rows[rows["difference"].notna() & (rows["gpus"] == rows["gpus"].max())]
        if known.empty:
            lacks = (
                f"{name}: what a larger batch does cannot be said, as no cell on the most GPUs "
                "can be compared with a batch on one GPU."
            )
            made.append(undecided(id, QUESTION, lacks, file, CELLS))
            continue
        large = next(known.loc[[known["global_batch_size"].idxmax()]].itertuples())
        small = next(rows[rows["reference"]].itertuples())
        made.append(_cell(id, name, large, small, file))
    return made


def _cell(id: str, name: str, large: Any, small: Any, file: str) -> Claim:
    quantity = large.difference_of
    value, other = getattr(large, quantity), getattr(small, quantity)
    ends = [getattr(row, f"{quantity}{end}") for row in (large, small) for end in ("_min", "_max")]
    repeated = large.within_spread is not None and pd.notna(large.within_spread)
    apart = repeated and not ranges_overlap(*ends)
    sentence = (
        f"{name}: a global batch of {large.global_batch_size} has {fmt.percent(value)} "
        f"{quantity.replace('_', ' ')} where batch {small.batch_size} on one GPU has "
        f"{fmt.percent(other)}, a difference of {fmt.points(100 * large.difference)} points"
        f"{'' if repeated else ', of one seed'}."
    )
    figures = {
        "global_batch_size": large.global_batch_size,
        quantity: value,
        f"reference_{quantity}": other,
        "seeds": large.seeds,
        "reference_seeds": small.seeds,
    }
    verdict = judge(bool(apart and value < other), bool(apart and value > other))
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, CELLS)])
