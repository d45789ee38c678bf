"""Question 4.2: whether what a large batch lacks is updates."""

from typing import Any

from scaling.claims.chosen_runs import margin, reference_runs, runs_of
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.seeds import bonferroni, difference, figures_of, spread
from scaling.core import numbers as fmt
from scaling.tables.experiments.best_remedy import best, is_plain
from scaling.tables.experiments.gap import BEHIND, CLOSED, gap

QUESTION = "Q4.2"
UPDATES = (
    "Plain SGD with at least as many updates as the reference, rates swept in both; Welch's "
    "interval of mean test accuracy minus the reference's at each of m such global batches. "
    "Supported: the lower end of the 95 % interval is above −margin at all of them, and the "
    "reference's best rate is not at an end of its sweep (beyond it the reference may be better); "
    "refuted: at one it is not, and, as any one decides, an interval of confidence 1 − 0.05/m "
    "(Bonferroni) is below 0, where that batch's best rate is not at an end of its sweep (a better "
    "rate beyond it can only add, so it stands against refuting alone); undecided: otherwise. The "
    "best remedy at the reference batch is shown, not tested."
)


def claims(tables: ClaimTables, batches: list[int]) -> list[Claim]:
    """That training until there were as many updates closes the gap of these global batches."""
    id, file, table = "Q4.2-equal-updates", tables.file("convergence"), tables["remedies"]
    reference, allowed = reference_runs(tables), margin(tables)
    needed = int(reference.iloc[0]["planned_updates"])
    size = int(reference.iloc[0]["global_batch"])
    found = table[table["options"].map(_is_longer_plain).astype(bool) & table["updates"].notna()]
    found = found[found["global_batch"].isin(batches)].drop_duplicates("global_batch")
    rows = sorted(found.itertuples(), key=lambda row: int(row.global_batch))
    equal = [row for row in rows if row.planned_updates >= needed]
    fewer = [
        f"{int(row.global_batch)} got {int(row.planned_updates)} and reached "
        f"{spread(runs_of(tables, row), 'test_accuracy')}"
        for row in rows
        if row.planned_updates < needed
    ]
    short = f" With fewer, as the epochs are bounded: {'; '.join(fewer)}." if fewer else ""
    if not equal:
        lacks = f"What equal updates bring is not known: no larger batch had {needed}.{short}"
        return [undecided(id, QUESTION, lacks, file, UPDATES)]
    level, beside = bonferroni(len(equal)), best(table, size)
    reference_edge = bool(reference["at_edge"].any())
    figures: dict[str, Any] = {
        "reference_run_updates": needed,
        "reference_epochs": reference.iloc[0]["planned_epochs"],
        "accuracy_margin": allowed,
        "confidence_to_refute": level,
    }
    parts, closed, behind = [], [], []
    for row in equal:
        own, batch = runs_of(tables, row), int(row.global_batch)
        to_plain = difference(own, reference, "test_accuracy")
        wide = difference(own, reference, "test_accuracy", level)
        tells = gap(to_plain.low, to_plain.high, allowed)
        closed.append(tells == CLOSED)
        lost = tells == BEHIND and gap(wide.low, wide.high, allowed) == BEHIND
        behind.append(lost and not row.at_edge)
        figures |= {f"epochs_at_{batch}": row.planned_epochs}
        figures |= figures_of(own, "test_accuracy", f"at_{batch}_")
        figures |= to_plain.figures(f"gap_at_{batch}")
        figures |= {f"gap_at_{batch}_high_to_refute": wide.figures("gap")["gap_high"]}
        text = (
            f"{batch} has {spread(own, 'test_accuracy')} after "
            f"{fmt.plural(int(row.planned_epochs), 'epoch')}, {to_plain.words()} to plain SGD at "
            f"{size}, which has {int(reference.iloc[0]['planned_epochs'])}"
        )
        if beside is not None:
            to_best = difference(own, runs_of(tables, beside), "test_accuracy")
            figures |= to_best.figures(f"gap_to_best_at_{batch}")
            text += f", and {to_best.words()} to {beside.remedy} at {size}"
        if row.at_edge:
            text += " (its best rate is at an end of its sweep: there may be a better one beyond)"
        parts.append(text)
    holds, fails = all(closed) and not reference_edge, any(behind)
    word = "closes" if holds else "does not close" if fails else "may or may not close"
    end = (
        f" The best rate of plain SGD at {size} is at an end of its sweep: beyond it plain SGD may "
        "be better, so nothing is closed."
        if reference_edge
        else ""
    )
    sentence = (
        f"Training until there were as many updates as the reference's {needed} {word} the gap to "
        f"less than {100 * allowed:g} points: {'; '.join(parts)}.{end}{short}"
    )
    return [Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, UPDATES)])]


def _is_longer_plain(options: str) -> bool:
    """Whether these are the options of plain SGD at equal updates."""
    parts = options.split(", ")
    return "equal_updates" in parts and is_plain(
        ", ".join(part for part in parts if part != "equal_updates")
    )
