"""Question 4.2: the linear scaling rule taken at its word."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.seeds import figures_of, spread
from scaling.core import numbers as fmt
from scaling.tables.experiments.best_remedy import without_sweep

QUESTION = "Q4.2"
NAIVE = (
    "Runs with nothing but linear scaling, at the rule's rate, unswept. Diverged: a loss that "
    "is not finite, or a training loss of the last epoch no better than guessing. Supported: every "
    "seed diverged at some global batch; refuted: none did at any; undecided: only some seeds did."
)


def claims(tables: ClaimTables) -> list[Claim]:
    """That the rate k times as high diverges once k is large and updates are few."""
    runs, file = tables["convergence"], tables.file("convergence")
    rows = runs[(runs["options"] == "scaling linear") & runs["remedy"].isin(without_sweep(runs))]
    rows = rows[rows["factor"] == 1]
    rows = rows[rows["global_batch"] > rows["global_batch"].min()]
    if rows.empty:
        lacks = "Whether linear scaling diverges cannot be said: no run has it at the rule's rate."
        return [undecided("Q4.2-rule", QUESTION, lacks, file, NAIVE)]
    groups = [(int(batch), group) for batch, group in rows.groupby("global_batch")]
    failed = [(batch, group) for batch, group in groups if (group["diverged"] != "").all()]
    some = any((group["diverged"] != "").any() for _, group in groups)
    batch, group = (failed or groups[-1:])[0]
    first = group.iloc[0]
    figures: dict[str, Any] = {
        "global_batch": batch,
        "learning_rate": first["learning_rate"],
        "planned_updates": first["planned_updates"],
        "updates": group["updates"].max(),
        "updates_per_epoch": first["updates_per_epoch"],
        "reference_updates": first["reference_updates"],
        "seeds": len(group),
        "diverged_seeds": int((group["diverged"] != "").sum()),
        **figures_of(group, "train_loss"),
        **figures_of(group, "test_accuracy"),
    }
    learned = [str(size) for size, each in groups if (each["diverged"] == "").all()]
    sentence = (
        f"Linear scaling taken at its word {'diverges' if failed else 'does not diverge'}: at a "
        f"global batch of {batch} it asks for a rate of {first['learning_rate']:g}, but "
        f"{fmt.plural(int(first['planned_epochs']), 'epoch')} are {int(first['planned_updates'])} "
        f"updates there ({int(first['updates_per_epoch'])} an epoch), where the reference has "
        f"{int(first['reference_updates'])}, and it {_outcome(group, bool(failed))}."
    )
    if failed and learned:
        sentence += f" It still learns at {', '.join(learned)}."
    for size, each in groups:
        lost = int((each["diverged"] != "").sum())
        if failed and 0 < lost < len(each):
            sentence += f" At {size} {lost} of {len(each)} seeds diverged."
    course, curve = _course(tables["loss_curves"], str(first["remedy"]), batch)
    evidence = [Evidence(file, figures, NAIVE)]
    if curve:
        evidence.append(Evidence(tables.file("loss_curves"), curve, "Shown, not tested."))
    return [
        Claim("Q4.2-rule", QUESTION, sentence + course, judge(bool(failed), not some), evidence)
    ]


def _outcome(group: pd.DataFrame, failed: bool) -> str:
    """How the runs of a global batch ended."""
    ended = (
        f"ends with a training loss of {spread(group, 'train_loss')} and a test accuracy of "
        f"{spread(group, 'test_accuracy')}"
    )
    if not failed:
        diverged = int((group["diverged"] != "").sum())
        return f"{ended}; {diverged} of {len(group)} seeds diverged"
    every = f"{'every' if len(group) > 1 else 'the one'} seed ({len(group)})"
    infinite = group[group["diverged"] == "not finite"]
    if infinite.empty:
        return f"{ended}, no better than guessing in {every}"
    first = int(infinite["diverged_update"].min())
    return (
        f"has a loss that is not finite, from update {first} on, in {len(infinite)} of "
        f"{fmt.plural(len(group), 'seed')}, and is no better than guessing in the others"
    )


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
