"""Question 4.2: which remedies help, and how close they come to the reference batch."""

from typing import Any

import pandas as pd

from scaling import report_format as fmt
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.seeds import difference, figures_of, spread
from scaling.convergence.best import base_rate, best, without_sweep

QUESTION = "Q4.2"
NAIVE = (
    "Runs with nothing but linear scaling, at the rule's rate, unswept. Diverged: a loss that "
    "is not finite, or a training loss of the last epoch no better than guessing. Supported: every "
    "seed diverged at some global batch; refuted: none did at any; undecided: only some seeds did."
)
HELPS = (
    "Welch's 95 % interval of the difference in mean test accuracy to plain SGD at the base rate, "
    "same global batch, same epochs, at each global batch above the reference. Supported: above 0 "
    "at all of them; refuted: below 0 at one of them; undecided: otherwise."
)
CLOSES = (
    "The remedy with the highest mean training accuracy at equal epochs; Welch's 95 % interval of "
    "its mean test accuracy minus the reference's. Supported: it lies below 0; refuted: it lies "
    "above 0; undecided: it contains 0, or there is none."
)
UPDATES = (
    "Runs with at least as many updates as the reference; Welch's 95 % interval of mean test "
    "accuracy minus the reference's. Supported: at every such global batch it lies above 0 or "
    "contains it; refuted: at one it lies below 0; undecided: there are no such runs."
)
NONE = "the study has no runs of remedies with a reference batch on one GPU"


def claims(tables: ClaimTables) -> list[Claim]:
    """From convergence.csv and remedies.csv."""
    runs, file = tables["convergence"], tables.file("convergence")
    chosen = runs[runs["chosen"].eq(True)]
    reference = chosen[chosen["reference"].eq(True)]
    if reference.empty:
        lacks = f"Which remedies help cannot be said: {NONE}."
        return [undecided("Q4.2", QUESTION, lacks, file, HELPS)]
    batches = sorted(int(b) for b in chosen["global_batch"].unique())
    larger = [batch for batch in batches if batch > int(reference.iloc[0]["global_batch"])]
    names = [
        name
        for name, rows in chosen.groupby("remedy", sort=False)
        if rows["options"].iloc[0] != "" and rows["epochs"].max() == reference["epochs"].max()
    ]
    return [
        _naive(runs, tables),
        *(_helps(str(name), chosen, larger, file) for name in names),
        *(_closes(batch, chosen, reference, tables) for batch in larger),
        _equal_updates(chosen, reference, larger, file),
    ]


def _naive(runs: pd.DataFrame, tables: ClaimTables) -> Claim:
    """That the rate k times as high diverges once k is large and updates are few."""
    file = tables.file("convergence")
    rows = runs[(runs["options"] == "scaling linear") & runs["remedy"].isin(without_sweep(runs))]
    rows = rows[rows["factor"] == 1]
    rows = rows[rows["global_batch"] > rows["global_batch"].min()]
    if rows.empty:
        lacks = "Whether linear scaling diverges cannot be said: no run has it at the rule's rate."
        return undecided("Q4.2-rule", QUESTION, lacks, file, NAIVE)
    groups = [(int(batch), group) for batch, group in rows.groupby("global_batch")]
    failed = [(batch, group) for batch, group in groups if (group["diverged"] != "").all()]
    some = any((group["diverged"] != "").any() for _, group in groups)
    batch, group = (failed or groups[-1:])[0]
    first = group.iloc[0]
    figures: dict[str, Any] = {
        "global_batch": batch,
        "learning_rate": first["learning_rate"],
        "updates": first["updates"],
        "updates_per_epoch": first["updates_per_epoch"],
        "reference_updates": first["reference_updates"],
        "seeds": len(group),
        "diverged_seeds": int((group["diverged"] != "").sum()),
        **figures_of(group, "train_loss"),
        **figures_of(group, "test_accuracy"),
    }
    learned = [str(size) for size, each in groups if (each["diverged"] == "").all()]
    outcome = (
        f"ends with a training loss of {spread(group, 'train_loss')}, no better than guessing, and "
        f"a test accuracy of {spread(group, 'test_accuracy')} in "
        f"{'every' if len(group) > 1 else 'the one'} seed ({len(group)})"
        if failed
        else f"ends with a training loss of {spread(group, 'train_loss')} and a test accuracy of "
        f"{spread(group, 'test_accuracy')}; {figures['diverged_seeds']} of {len(group)} seeds "
        "diverged"
    )
    sentence = (
        f"Linear scaling taken at its word {'diverges' if failed else 'does not diverge'}: at a "
        f"global batch of {batch} it asks for a rate of {first['learning_rate']:g}, but "
        f"{fmt.plural(int(first['epochs']), 'epoch')} are {int(first['updates'])} updates there "
        f"({int(first['updates_per_epoch'])} an epoch), where the reference has "
        f"{int(first['reference_updates'])}, and it {outcome}."
    )
    if failed and learned:
        sentence += f" It still learns at {', '.join(learned)}."
    course, curve = _course(tables["loss_curves"], str(first["remedy"]), batch)
    evidence = [Evidence(file, figures, NAIVE)]
    if curve:
        evidence.append(Evidence(tables.file("loss_curves"), curve, "Shown, not tested."))
    verdict = judge(bool(failed), not some)
    return Claim("Q4.2-rule", QUESTION, sentence + course, verdict, evidence)


def _course(curves: pd.DataFrame, remedy: str, batch: int) -> tuple[str, dict[str, Any]]:
    """How the training loss went, of the first seed, in words and figures."""
    rows = curves[(curves["remedy"] == remedy) & (curves["global_batch"] == batch)]
    rows = rows[rows["train_loss"].notna()]
    if rows.empty:
        return "", {}
    highest = rows.loc[rows["train_loss"].idxmax()]
    figures = {
        "first_loss": rows["train_loss"].iloc[0],
        "highest_loss": highest["train_loss"],
        "highest_at_update": highest["update"],
        "last_loss": rows["train_loss"].iloc[-1],
    }
    words = (
        f" Its loss is {fmt.significant(figures['first_loss'])} at first, at most "
        f"{fmt.significant(figures['highest_loss'])} (update {int(highest['update'])}) and "
        f"{fmt.significant(figures['last_loss'])} at last."
    )
    return words, figures


def _helps(name: str, chosen: pd.DataFrame, batches: list[int], file: str) -> Claim:
    """That a remedy gains test accuracy over doing nothing."""
    id, plain = f"Q4.2-remedy-{name}", base_rate(chosen)
    own = chosen[chosen["remedy"] == name]
    figures: dict[str, Any] = {}
    parts, found = [], []
    for batch in batches:
        with_it, without = (each[each["global_batch"] == batch] for each in (own, plain))
        if with_it.empty or without.empty:
            continue
        gain = difference(with_it, without, "test_accuracy")
        found.append(gain)
        figures |= {f"test_accuracy_at_{batch}": _mean(with_it)}
        figures |= {f"base_test_accuracy_at_{batch}": _mean(without)}
        figures |= gain.figures(f"gain_at_{batch}")
        parts.append(f"{gain.words()} at {batch}")
    if not found:
        lacks = f"Whether {name} helps cannot be said: no larger batch has it beside plain SGD."
        return undecided(id, QUESTION, lacks, file, HELPS)
    holds = all(gain.above for gain in found)
    fails = any(gain.below for gain in found)
    word = "helps" if holds else "hurts somewhere" if fails else "does not help everywhere"
    what = own["options"].iloc[0].replace("_", " ")
    sentence = (
        f"{name} ({what}) {word}: against the base rate, at equal epochs, it changes test accuracy "
        f"by {'; '.join(parts)}."
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, HELPS)])


def _closes(
    batch: int, chosen: pd.DataFrame, reference: pd.DataFrame, tables: ClaimTables
) -> Claim:
    """That a gap to the reference is left at equal epochs, even with the best remedy."""
    id, file = f"Q4.2-gap-{batch}", tables.file("convergence")
    found = best(tables["remedies"], batch)
    if found is None:
        lacks = f"How close a global batch of {batch} comes cannot be said: no run has figures."
        return undecided(id, QUESTION, lacks, file, CLOSES)
    own = chosen[(chosen["remedy"] == found.remedy) & (chosen["global_batch"] == batch)]
    gap = difference(own, reference, "test_accuracy")
    size = int(reference.iloc[0]["global_batch"])
    what = (
        f"stays behind batch {size}"
        if gap.below
        else f"is ahead of batch {size}"
        if gap.above
        else f"cannot be told from batch {size} by these seeds"
    )
    sentence = (
        f"At equal epochs the best remedy at a global batch of {batch}, {found.remedy} at a rate "
        f"of {found.learning_rate:.3g}, {what}: {spread(own, 'test_accuracy')} test accuracy "
        f"against {spread(reference, 'test_accuracy')}, {gap.words()}, after "
        f"{int(found.updates)} updates against {int(reference.iloc[0]['updates'])}."
    )
    figures: dict[str, Any] = {
        "remedy": found.remedy,
        "learning_rate": found.learning_rate,
        "updates": found.updates,
        "reference_run_updates": reference.iloc[0]["updates"],
        **figures_of(own, "test_accuracy"),
        **figures_of(reference, "test_accuracy", "reference_"),
        **gap.figures("test_accuracy"),
    }
    verdict = judge(gap.below, gap.above)
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, CLOSES)])


def _equal_updates(
    chosen: pd.DataFrame, reference: pd.DataFrame, batches: list[int], file: str
) -> Claim:
    """That what a large batch lacks is updates."""
    id = "Q4.2-equal-updates"
    rows = chosen[chosen["options"].str.contains("equal_updates") & chosen["updates"].notna()]
    groups = [(batch, rows[rows["global_batch"] == batch]) for batch in batches]
    needed = int(reference.iloc[0]["updates"])
    equal = [(b, each) for b, each in groups if len(each) and each["updates"].min() >= needed]
    fewer = [
        f"{batch} got {int(each['updates'].max())} and reached {spread(each, 'test_accuracy')}"
        for batch, each in groups
        if len(each) and each["updates"].min() < needed
    ]
    short = f" With fewer, as the epochs are bounded: {'; '.join(fewer)}." if fewer else ""
    if not equal:
        lacks = f"What equal updates bring is not known: no larger batch had {needed}.{short}"
        return undecided(id, QUESTION, lacks, file, UPDATES)
    figures: dict[str, Any] = {"reference_run_updates": needed}
    gaps, parts = [], []
    for batch, each in equal:
        gap = difference(each, reference, "test_accuracy")
        gaps.append(gap)
        figures |= {f"test_accuracy_at_{batch}": _mean(each)} | gap.figures(f"gap_at_{batch}")
        epochs = fmt.plural(int(each["epochs"].max()), "epoch")
        parts.append(
            f"{batch} has {spread(each, 'test_accuracy')} after {epochs}, {gap.words()} to the "
            "reference"
        )
    holds = all(not gap.below and gap.low == gap.low for gap in gaps)
    fails = any(gap.below for gap in gaps)
    word = "closes" if holds else "does not close" if fails else "may close"
    sentence = (
        f"Training until there were as many updates as the reference's {needed} {word} the gap: "
        f"{'; '.join(parts)}.{short}"
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, UPDATES)])


def _mean(runs: pd.DataFrame) -> float | str:
    values = runs["test_accuracy"].dropna()
    return float(values.mean()) if len(values) else "not finite"
