"""Question 4.2: whether any remedy comes as far as the reference batch in as many epochs."""

import math
from typing import Any

import pandas as pd

from scaling.claims.chosen_runs import margin, reference_runs, runs_of
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import caveat
from scaling.claims.seeds import Difference, bonferroni, difference, figures_of, spread
from scaling.tables.experiments.best_remedy import at_equal_epochs, best
from scaling.tables.experiments.gap import BEHIND, CLOSED, gap

QUESTION = "Q4.2"
LEFT = (
    "At equal epochs, of each remedy without a diverged seed, Welch's 95 % interval of its mean "
    "test accuracy minus that of the best remedy at the reference batch, the one with the highest "
    "mean training accuracy there. Supported: for every remedy it lies below 0, and not above "
    "−margin. As each of them has to pass, none needs a correction for their number (an "
    "intersection-union test: Berger, Technometrics 24, 1982, pp. 295–300). A remedy whose best "
    "rate is at an end of its sweep may be better beyond it and does not count as behind; the "
    "reference's best rate at an end could only widen the gap. Refuted: the remedy with the "
    "highest mean training accuracy at this batch, which the test set did not choose, has the "
    "lower end of its interval above −margin, and the reference’s best rate is not at an end. "
    "Undecided: otherwise. The highest test accuracy of m remedies is shown, with an interval of "
    "confidence 1 − 0.05/m (Bonferroni), as the test set that judges it also chose it; plain SGD "
    "at the reference batch is shown. Neither is tested."
)


def claims(tables: ClaimTables, larger: list[int]) -> list[Claim]:
    """That no remedy closes the gap at equal epochs, for each global batch of `larger`."""
    return [_left(batch, tables) for batch in larger]


def _left(batch: int, tables: ClaimTables) -> Claim:
    id, file, table = f"Q4.2-gap-{batch}", tables.file("convergence"), tables["remedies"]
    plain, allowed = reference_runs(tables), margin(tables)
    size = int(plain.iloc[0]["global_batch"])
    found, beside = best(table, batch), best(table, size)
    if found is None or beside is None:
        lacking = size if beside is None else batch
        lacks = (
            f"How close a global batch of {batch} comes cannot be said: no remedy learned in every "
            f"seed at {lacking}."
        )
        return undecided(id, QUESTION, lacks, file, LEFT)
    own, reference = runs_of(tables, found), runs_of(tables, beside)
    to_best, to_plain = (difference(own, each, "test_accuracy") for each in (reference, plain))
    tried = at_equal_epochs(table)
    tried = tried[tried["global_batch"] == batch]
    open_, ends = _not_behind(tried, reference, tables)
    tells = gap(to_best.low, to_best.high, allowed)
    verdict = judge(not open_ and not ends, tells == CLOSED and not beside.at_edge)
    highest, after_the_fact = _highest(tried, found, reference, size, tables)
    sentence = (
        f"{LEADS[verdict].format(batch=batch, size=size)} The best by training accuracy "
        f"there, {found.remedy} at a rate of {found.learning_rate:.3g} with "
        f"{spread(own, 'train_accuracy')}, {_tells(tells, to_best, size, allowed)}: "
        f"{spread(own, 'test_accuracy')} test accuracy after {int(found.updates)} updates, "
        f"{to_best.words()} to the best at {size}, {beside.remedy} with "
        f"{spread(reference, 'test_accuracy')} after {int(beside.updates)} updates, and "
        f"{to_plain.words()} to plain SGD at {size} with {spread(plain, 'test_accuracy')}."
        f"{after_the_fact}{_left_open(open_, ends) if verdict == 'undecided' else ''}"
        f"{_reference_at_an_end(beside)}{caveat(own)}"
    )
    figures: dict[str, Any] = {
        "remedies": len(tried),
        "remedies_not_behind": ", ".join(open_) or "none",
        "remedies_at_an_end": ", ".join(ends) or "none",
        "remedy": found.remedy,
        "learning_rate": found.learning_rate,
        "updates": found.updates,
        "reference_remedy": beside.remedy,
        "reference_learning_rate": beside.learning_rate,
        "reference_run_updates": beside.updates,
        "accuracy_margin": allowed,
        **figures_of(own, "train_accuracy"),
        **figures_of(own, "test_accuracy"),
        **figures_of(reference, "test_accuracy", "reference_"),
        **figures_of(plain, "test_accuracy", "plain_reference_"),
        **to_best.figures("test_accuracy"),
        **to_plain.figures("test_accuracy_to_plain"),
        **highest,
    }
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, LEFT)])


LEADS = {
    "supported": "At equal epochs no remedy closes the gap of a global batch of {batch} to batch "
    "{size}.",
    "refuted": "At equal epochs a remedy closes the gap of a global batch of {batch} to batch "
    "{size}.",
    "undecided": "That no remedy closes the gap of a global batch of {batch} to batch {size} at "
    "equal epochs is not decided.",
}


def _not_behind(
    tried: pd.DataFrame, reference: pd.DataFrame, tables: ClaimTables
) -> tuple[dict[str, Difference], list[str]]:
    """Remedies whose intervals do not lie below 0 (or do above −margin), and those at an end."""
    open_, ends = {}, []
    for row in tried.itertuples():
        found = difference(runs_of(tables, row), reference, "test_accuracy")
        if gap(found.low, found.high, margin(tables)) != BEHIND:
            open_[str(row.remedy)] = found
        elif row.at_edge:
            ends.append(str(row.remedy))
    return open_, ends


def _highest(
    tried: pd.DataFrame, found: Any, reference: pd.DataFrame, size: int, tables: ClaimTables
) -> tuple[dict[str, Any], str]:
    """Figures and sentence of the highest test accuracy, a choice made by the test set."""
    row: Any = next(tried.loc[[tried["test_accuracy"].idxmax()]].itertuples())
    own = runs_of(tables, row)
    gained = difference(own, reference, "test_accuracy", bonferroni(len(tried)))
    figures = {
        "highest_remedy": row.remedy,
        **figures_of(own, "test_accuracy", "highest_"),
        **gained.figures("highest_test_accuracy"),
        "highest_confidence": bonferroni(len(tried)),
    }
    if len(tried) == 1:
        return figures, ""
    if row.remedy == found.remedy:
        return figures, f" It has the highest test accuracy of the {len(tried)} as well."
    return figures, (
        f" The highest test accuracy of the {len(tried)}, chosen after the fact and so optimistic, "
        f"is that of {row.remedy}: {spread(own, 'test_accuracy')}, {gained.words()} to the best at "
        f"{size}."
    )


def _tells(tells: str, found: Difference, size: int, allowed: float) -> str:
    points = f"{100 * allowed:g} points"
    if tells == CLOSED:
        if found.above:
            return f"is ahead of batch {size}"
        return f"closes the gap to batch {size} to less than {points}"
    if tells == BEHIND:
        return f"stays behind batch {size}"
    if math.isnan(found.low):
        return f"cannot be told from batch {size} by these seeds"
    return f"is by these seeds neither shown to be behind batch {size} nor within {points} of it"


def _left_open(open_: dict[str, Difference], ends: list[str]) -> str:
    """The sentences on what stands against saying that every remedy is behind."""
    text = ""
    if open_:
        each = "; ".join(f"{name}, {found.words()}" for name, found in open_.items())
        text += f" Not shown to be behind by its seeds: {each}."
    if ends:
        text += (
            f" Behind, but with a best rate at an end of its sweep, beyond which a better one may "
            f"be: {', '.join(ends)}."
        )
    return text


def _reference_at_an_end(beside: Any) -> str:
    return (
        f" The best rate of {beside.remedy} at {int(beside.global_batch)} is at an end of its "
        "sweep: a better one could only widen the gap."
        if beside.at_edge
        else ""
    )
