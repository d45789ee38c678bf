"""Question 4.2: which remedies help, each against what differs from it in its own option alone."""

from typing import Any

import pandas as pd

from scaling.claims import gaps, linear_rule
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import caveat
from scaling.claims.seeds import bonferroni, difference
from scaling.convergence.best import base_rate, is_plain, plain_sweep, reference_epochs

QUESTION = "Q4.2"
HELPS = (
    "Welch's interval of the difference in mean test accuracy, same epochs, at each of m global "
    "batches above the reference. A remedy with a sweep is compared with plain SGD with a sweep, "
    "both at the rate with the least training loss; one without, and swept plain SGD itself, with "
    "plain SGD at the base rate. Supported: the 95 % interval is above 0 at all of them; refuted: "
    "as any one decides, an interval of confidence 1 − 0.05/m (Bonferroni) is below 0 at one; "
    "undecided: otherwise. A batch whose best rate is at an end of a sweep decides nothing."
)
NONE = "the study has no runs of remedies with a reference batch on one GPU"


def claims(tables: ClaimTables) -> list[Claim]:
    """From convergence.csv and remedies.csv."""
    runs, table, file = tables["convergence"], tables["remedies"], tables.file("convergence")
    chosen = runs[runs["chosen"].eq(True)]
    reference = chosen[chosen["reference"].eq(True)]
    if reference.empty:
        lacks = f"Which remedies help cannot be said: {NONE}."
        return [undecided("Q4.2", QUESTION, lacks, file, HELPS)]
    batches = sorted(int(batch) for batch in chosen["global_batch"].unique())
    larger = [batch for batch in batches if batch > int(reference.iloc[0]["global_batch"])]
    known = table[(table["options"] != "") | (table["rates"] > 1)]
    epochs = known.groupby("remedy", sort=False)["planned_epochs"].max()
    names = [str(name) for name in epochs[epochs == reference_epochs(table)].index]
    return [
        *linear_rule.claims(tables),
        *(_helps(name, chosen, table, larger, file) for name in names),
        *gaps.claims(tables, larger),
    ]


def _helps(
    name: str, chosen: pd.DataFrame, table: pd.DataFrame, batches: list[int], file: str
) -> Claim:
    """That a remedy gains test accuracy over what it adds its option to."""
    id, own = f"Q4.2-remedy-{name}", table[table["remedy"] == name]
    options, rates = str(own["options"].iloc[0]), own["rates"].max()
    beside_sweep = rates > 1 and not is_plain(options)
    other = "plain SGD with its rate swept alike" if beside_sweep else "plain SGD at the base rate"
    pairs, edges = [], []
    for batch in batches:
        runs = chosen[chosen["global_batch"] == batch]
        sweep = plain_sweep(table, batch) if beside_sweep else None
        plain = base_rate(runs)
        if beside_sweep:
            plain = runs[runs["remedy"] == sweep.remedy] if sweep else runs.iloc[:0]
        with_it = runs[runs["remedy"] == name]
        if with_it.empty or plain.empty:
            continue
        pairs.append((batch, with_it, plain))
        if with_it["at_edge"].any() or (beside_sweep and plain["at_edge"].any()):
            edges.append(batch)
    if not pairs:
        lacks = f"Whether {name} helps cannot be said: no larger batch has it beside {other}."
        return undecided(id, QUESTION, lacks, file, HELPS)
    level = bonferroni(len(pairs))
    figures: dict[str, Any] = {"confidence_to_refute": level}
    parts, above, below = [], [], []
    for batch, with_it, plain in pairs:
        gain = difference(with_it, plain, "test_accuracy")
        wide = difference(with_it, plain, "test_accuracy", level)
        above.append(gain.above and batch not in edges)
        below.append(wide.below and batch not in edges)
        figures |= {f"test_accuracy_at_{batch}": _mean(with_it)}
        figures |= {f"plain_test_accuracy_at_{batch}": _mean(plain)}
        figures |= gain.figures(f"gain_at_{batch}")
        figures |= {f"gain_at_{batch}_high_to_refute": wide.figures("gain")["gain_high"]}
        parts.append(f"{gain.words()} at {batch}")
    holds, fails = all(above), any(below)
    word = "helps" if holds else "hurts somewhere" if fails else "is not shown to help everywhere"
    what = ", ".join([*options.split(", "), f"best of {rates:g} rates" if rates > 1 else "unswept"])
    sentence = (
        f"{name} ({what.replace('_', ' ')}) {word}: against {other}, at equal epochs, it changes "
        f"test accuracy by {'; '.join(parts)}.{at_an_end(edges)}"
        f"{caveat(*(with_it for _, with_it, _ in pairs))}"
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, HELPS)])


def at_an_end(batches: list[int]) -> str:
    """The sentence on global batches whose sweep was too narrow, or nothing."""
    where = ", ".join(map(str, batches))
    return (
        f" At {where} the best rate is at an end of a sweep: a rate beyond it may be better, so "
        "nothing is decided there."
        if batches
        else ""
    )


def _mean(runs: pd.DataFrame) -> float | str:
    values = runs["test_accuracy"].dropna()
    return float(values.mean()) if len(values) else "not finite"
