"""Question 4.2: how close the best remedy comes to the reference batch."""

import math
from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import caveat
from scaling.claims.seeds import Difference, bonferroni, difference, figures_of, spread
from scaling.convergence.best import best, is_plain
from scaling.convergence.gap import BEHIND, CLOSED, gap

QUESTION = "Q4.2"
LEFT = (
    "The remedy with the highest mean training accuracy at equal epochs, chosen alike at this "
    "batch and at the reference batch; Welch's 95 % interval of the difference in mean test "
    "accuracy. Supported: it lies below 0, and not above −margin; refuted: its lower end is above "
    "−margin, which closes the gap; undecided: it contains both 0 and −margin, there is none, or a "
    "best rate is at an end of its sweep. Plain SGD at the reference batch is shown, not tested."
)
UPDATES = (
    "Plain SGD with at least as many updates as the reference, rates swept in both; Welch's "
    "interval of mean test accuracy minus the reference's at each of m such global batches. "
    "Supported: the lower end of the 95 % interval is above −margin at all of them; refuted: at "
    "one it is not, and, as any one decides, an interval of confidence 1 − 0.05/m (Bonferroni) is "
    "below 0; undecided: otherwise. A batch whose best rate is at an end of a sweep decides "
    "nothing. The best remedy at the reference batch is shown, not tested."
)


def claims(tables: ClaimTables, larger: list[int]) -> list[Claim]:
    """At equal epochs for each global batch of `larger`, and at equal updates."""
    return [*(_left(batch, tables) for batch in larger), _equal_updates(tables, larger)]


def _runs_of(tables: ClaimTables, row: Any) -> pd.DataFrame:
    """The runs of all seeds that a row of remedies.csv stands for."""
    runs = tables["convergence"]
    same = (runs["remedy"] == row.remedy) & (runs["global_batch"] == row.global_batch)
    return runs[same & runs["chosen"].eq(True)]


def _reference(tables: ClaimTables) -> pd.DataFrame:
    runs = tables["convergence"]
    return runs[runs["reference"].eq(True) & runs["chosen"].eq(True)]


def _margin(tables: ClaimTables) -> float:
    return float(tables["remedies"]["accuracy_margin"].iloc[0])


def _left(batch: int, tables: ClaimTables) -> Claim:
    """That a gap to the reference batch is left at equal epochs, even with the best remedy."""
    id, file, table = f"Q4.2-gap-{batch}", tables.file("convergence"), tables["remedies"]
    plain, margin = _reference(tables), _margin(tables)
    size = int(plain.iloc[0]["global_batch"])
    found, beside = best(table, batch), best(table, size)
    if found is None or beside is None:
        lacking = size if beside is None else batch
        lacks = (
            f"How close a global batch of {batch} comes cannot be said: no remedy learned in every "
            f"seed at {lacking}."
        )
        return undecided(id, QUESTION, lacks, file, LEFT)
    own, reference = _runs_of(tables, found), _runs_of(tables, beside)
    to_best, to_plain = (difference(own, each, "test_accuracy") for each in (reference, plain))
    edges = [row for row in (found, beside) if row.at_edge]
    tells = gap(to_best.low, to_best.high, margin)
    sentence = (
        f"At equal epochs the best remedy at a global batch of {batch}, {found.remedy} at a rate "
        f"of {found.learning_rate:.3g}, {_tells(tells, to_best, size, margin)}: "
        f"{spread(own, 'test_accuracy')} test accuracy after {int(found.updates)} updates, "
        f"{to_best.words()} to the best remedy at {size}, {beside.remedy} with "
        f"{spread(reference, 'test_accuracy')} after {int(beside.updates)} updates, and "
        f"{to_plain.words()} to plain SGD at {size} with {spread(plain, 'test_accuracy')}."
        f"{_at_an_end(edges)}{caveat(own)}"
    )
    figures: dict[str, Any] = {
        "remedy": found.remedy,
        "learning_rate": found.learning_rate,
        "updates": found.updates,
        "reference_remedy": beside.remedy,
        "reference_learning_rate": beside.learning_rate,
        "reference_run_updates": beside.updates,
        "accuracy_margin": margin,
        **figures_of(own, "test_accuracy"),
        **figures_of(reference, "test_accuracy", "reference_"),
        **figures_of(plain, "test_accuracy", "plain_reference_"),
        **to_best.figures("test_accuracy"),
        **to_plain.figures("test_accuracy_to_plain"),
    }
    verdict = judge(not edges and tells == BEHIND, not edges and tells == CLOSED)
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, LEFT)])


def _tells(tells: str, found: Difference, size: int, margin: float) -> str:
    points = f"{100 * margin:g} points"
    if tells == CLOSED:
        if found.above:
            return f"is ahead of batch {size}"
        return f"closes the gap to batch {size} to less than {points}"
    if tells == BEHIND:
        return f"stays behind batch {size}"
    if math.isnan(found.low):
        return f"cannot be told from batch {size} by these seeds"
    return f"is by these seeds neither shown to be behind batch {size} nor within {points} of it"


def _at_an_end(rows: list[Any]) -> str:
    where = " and ".join(f"{row.remedy} at {int(row.global_batch)}" for row in rows)
    return (
        f" The best rate of {where} is at an end of its sweep: a rate beyond it may be better, so "
        "nothing is decided."
        if rows
        else ""
    )


def _equal_updates(tables: ClaimTables, batches: list[int]) -> Claim:
    """That what a large batch lacks is updates."""
    id, file, table = "Q4.2-equal-updates", tables.file("convergence"), tables["remedies"]
    reference, margin = _reference(tables), _margin(tables)
    needed = int(reference.iloc[0]["planned_updates"])
    size = int(reference.iloc[0]["global_batch"])
    found = table[table["options"].map(_is_longer_plain).astype(bool) & table["updates"].notna()]
    found = found[found["global_batch"].isin(batches)].drop_duplicates("global_batch")
    rows = sorted(found.itertuples(), key=lambda row: int(row.global_batch))
    equal = [row for row in rows if row.planned_updates >= needed]
    fewer = [
        f"{int(row.global_batch)} got {int(row.planned_updates)} and reached "
        f"{spread(_runs_of(tables, row), 'test_accuracy')}"
        for row in rows
        if row.planned_updates < needed
    ]
    short = f" With fewer, as the epochs are bounded: {'; '.join(fewer)}." if fewer else ""
    if not equal:
        lacks = f"What equal updates bring is not known: no larger batch had {needed}.{short}"
        return undecided(id, QUESTION, lacks, file, UPDATES)
    level, beside = bonferroni(len(equal)), best(table, size)
    figures: dict[str, Any] = {
        "reference_run_updates": needed,
        "accuracy_margin": margin,
        "confidence_to_refute": level,
    }
    parts, closed, behind = [], [], []
    for row in equal:
        own, batch = _runs_of(tables, row), int(row.global_batch)
        to_plain = difference(own, reference, "test_accuracy")
        wide = difference(own, reference, "test_accuracy", level)
        edge = bool(row.at_edge or reference["at_edge"].any())
        tells = gap(to_plain.low, to_plain.high, margin)
        closed.append(tells == CLOSED and not edge)
        behind.append(tells == BEHIND and gap(wide.low, wide.high, margin) == BEHIND and not edge)
        figures |= figures_of(own, "test_accuracy", f"at_{batch}_")
        figures |= to_plain.figures(f"gap_at_{batch}")
        figures |= {f"gap_at_{batch}_high_to_refute": wide.figures("gap")["gap_high"]}
        epochs = fmt.plural(int(row.planned_epochs), "epoch")
        text = (
            f"{batch} has {spread(own, 'test_accuracy')} after {epochs}, {to_plain.words()} to "
            f"plain SGD at {size}"
        )
        if beside is not None:
            to_best = difference(own, _runs_of(tables, beside), "test_accuracy")
            figures |= to_best.figures(f"gap_to_best_at_{batch}")
            text += f" and {to_best.words()} to {beside.remedy} at {size}"
        parts.append(text + (", its best rate at an end of a sweep" if edge else ""))
    holds, fails = all(closed), any(behind)
    word = "closes" if holds else "does not close" if fails else "may or may not close"
    sentence = (
        f"Training until there were as many updates as the reference's {needed} {word} the gap to "
        f"{100 * margin:g} points: {'; '.join(parts)}.{short}"
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, UPDATES)])


def _is_longer_plain(options: str) -> bool:
    """Whether these are the options of plain SGD at equal updates."""
    parts = options.split(", ")
    return "equal_updates" in parts and is_plain(
        ", ".join(part for part in parts if part != "equal_updates")
    )
