"""Question 4.2: which remedies help, each against what differs from it in its own option alone."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from scaling.claims import equal_updates, gaps, linear_rule
from scaling.claims import rates as best_rate
from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import caveat
from scaling.claims.seeds import bonferroni, difference
from scaling.tables.experiments.best_remedy import (
    base_rate,
    is_plain,
    plain_sweep,
    reference_epochs,
)
from scaling.tables.experiments.same_runs import same_runs

QUESTION = "Q4.2"
REMEDY = f"{QUESTION}-remedy-"
"""What the ids of claims on one remedy begin with, before its name."""
HELPS = (
    "Welch's interval of the difference in mean test accuracy, same epochs, at each of m global "
    "batches above the reference (where both are the same trainings, evaluated in two ways, the "
    "interval of Student's t for paired differences). A remedy with a sweep is compared with plain "
    "SGD with a sweep, both at the rate with the least training loss; one without, and swept plain "
    "SGD itself, with plain SGD at the base rate. Supported: the 95 % interval is above 0 at all "
    "of them, and at none is plain SGD's best rate at an end of its sweep (beyond it plain SGD may "
    "be better); refuted: "
    "as any one decides, an interval of confidence 1 − 0.05/m (Bonferroni) is below 0 at one where "
    "the remedy's best rate is not at an end (beyond it the remedy may be better); undecided: "
    "otherwise. Where both have the very same runs there is nothing to compare: such a batch is "
    "not one of the m, refutes nothing, and with one the remedy is not above 0 at all."
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
        *best_rate.claims(tables),
        *(_helps(name, chosen, table, larger, file) for name in names),
        *gaps.claims(tables, larger),
        *equal_updates.claims(tables, larger),
    ]


@dataclass(frozen=True)
class _Pair:
    """The runs with and without a remedy at a global batch, and what their comparison tells."""

    batch: int
    with_it: pd.DataFrame
    plain: pd.DataFrame
    base_rate: float

    @property
    def same(self) -> bool:
        return same_runs(self.with_it, self.plain)

    @property
    def nothing_to_warm_up(self) -> bool:
        """Whether a warm-up is all that the remedy adds, and its rate needs none."""
        own, other = (_but_scaling(runs["options"].iloc[0]) for runs in (self.with_it, self.plain))
        added = own - other
        warms = len(added) == 1 and next(iter(added)).startswith("warmup_epochs ")
        return warms and other < own and bool(self.with_it["learning_rate"].max() <= self.base_rate)

    @property
    def own_edge(self) -> bool:
        return bool(self.with_it["at_edge"].eq(True).any())


def _but_scaling(options: str) -> set[str]:
    return {part for part in options.split(", ") if part and not part.startswith("scaling ")}


def _helps(
    name: str, chosen: pd.DataFrame, table: pd.DataFrame, batches: list[int], file: str
) -> Claim:
    """That a remedy gains test accuracy over what it adds its option to."""
    id, own = f"{REMEDY}{name}", table[table["remedy"] == name]
    options, rates = str(own["options"].iloc[0]), own["rates"].max()
    beside_sweep = rates > 1 and not is_plain(options)
    other = "plain SGD with its rate swept alike" if beside_sweep else "plain SGD at the base rate"
    pairs = []
    for batch in batches:
        runs = chosen[chosen["global_batch"] == batch]
        sweep = plain_sweep(table, batch) if beside_sweep else None
        base = base_rate(runs)
        plain = base
        if beside_sweep:
            plain = runs[runs["remedy"] == sweep.remedy] if sweep else runs.iloc[:0]
        with_it = runs[runs["remedy"] == name]
        if not (with_it.empty or plain.empty):
            rate = base["learning_rate"].max()
            pairs.append(_Pair(batch, with_it, plain, rate))
    if not pairs:
        lacks = f"Whether {name} helps cannot be said: no larger batch has it beside {other}."
        return undecided(id, QUESTION, lacks, file, HELPS)
    compared = [pair for pair in pairs if not pair.same]
    same = [pair for pair in pairs if pair.same]
    what = ", ".join([*options.split(", "), f"best of {rates:g} rates" if rates > 1 else "unswept"])
    what = what.replace("_", " ")
    named = f"{name} ({what})"
    figures: dict[str, Any] = {"options": what, "compared_with": other}
    figures |= _places("same_runs", same)
    figures |= _places("nothing_to_warm_up", [pair for pair in same if pair.nothing_to_warm_up])
    if not compared:
        sentence = (
            f"{named} is not put to the test at these rates: against {other}, at equal epochs, it "
            f"has {_same(same)}."
        )
        figures |= {f"test_accuracy_at_{pair.batch}": _mean(pair.with_it) for pair in same}
        return Claim(id, QUESTION, sentence, "undecided", [Evidence(file, figures, HELPS)])
    return _compared(id, named, figures, compared, same, beside_sweep, file)


def _compared(
    id: str,
    named: str,
    figures: dict[str, Any],
    pairs: list[_Pair],
    same: list[_Pair],
    beside_sweep: bool,
    file: str,
) -> Claim:
    level = bonferroni(len(pairs))
    parts, above, below = [], [], []
    at_plain_end = [p for p in pairs if beside_sweep and p.plain["at_edge"].eq(True).any()]
    at_own_end = [pair for pair in pairs if pair.own_edge]
    plain_ends, own_ends = ([pair.batch for pair in at] for at in (at_plain_end, at_own_end))
    figures = figures | {"confidence_to_refute": level}
    figures |= _places("plain_at_an_end", at_plain_end) | _places("remedy_at_an_end", at_own_end)
    for pair in pairs:
        batch = pair.batch
        gain = difference(pair.with_it, pair.plain, "test_accuracy")
        wide = difference(pair.with_it, pair.plain, "test_accuracy", level)
        above.append(gain.above and batch not in plain_ends)
        below.append(wide.below and batch not in own_ends)
        figures |= {f"planned_updates_at_{batch}": int(pair.with_it["planned_updates"].iloc[0])}
        figures |= {f"test_accuracy_at_{batch}": _mean(pair.with_it)}
        figures |= {f"plain_test_accuracy_at_{batch}": _mean(pair.plain)}
        figures |= gain.figures(f"gain_at_{batch}")
        figures |= {f"gain_at_{batch}_high_to_refute": wide.figures("gain")["gain_high"]}
        parts.append(f"{gain.words()} at {batch}")
    holds, fails = all(above) and not same, any(below)
    word = "helps" if holds else "hurts somewhere" if fails else "is not shown to help everywhere"
    alike = f" It has {_same(same)}." if same else ""
    sentence = (
        f"{named} {word}: against {figures['compared_with']}, at equal epochs, it changes "
        f"test accuracy by {'; '.join(parts)}.{alike}{_at_an_end(plain_ends, own_ends)}"
        f"{caveat(*(pair.with_it for pair in pairs))}"
    )
    return Claim(id, QUESTION, sentence, judge(holds, fails), [Evidence(file, figures, HELPS)])


def _places(name: str, pairs: list[_Pair]) -> dict[str, str]:
    """The global batches of `pairs` as a figure, if there are any."""
    return {f"{name}_at": _listed([pair.batch for pair in pairs])} if pairs else {}


def _same(pairs: list[_Pair]) -> str:
    """`the same runs at 512, 2048`, and why where the options tell."""
    text = f"the same runs at {_listed([pair.batch for pair in pairs])}"
    idle = [pair.batch for pair in pairs if pair.nothing_to_warm_up]
    if not idle:
        return text
    where = "" if len(idle) == len(pairs) else f" at {_listed(idle)}"
    return (
        f"{text}: its best rate{where} is not above the base rate of {pairs[0].base_rate:g}, so "
        "there is nothing to warm up"
    )


def _at_an_end(plain: list[int], own: list[int]) -> str:
    """The sentences on global batches whose sweeps were too narrow, or nothing."""
    text = ""
    if plain:
        text += (
            f" At {_listed(plain)} the best rate of plain SGD is at an end of its sweep: beyond it "
            "plain SGD may be better, so the remedy is not shown to help there."
        )
    if own:
        text += (
            f" At {_listed(own)} the best rate of the remedy is at an end of its sweep: beyond it "
            "the remedy may be better, so it is not shown to hurt there."
        )
    return text


def _listed(batches: list[int]) -> str:
    return ", ".join(map(str, batches))


def _mean(runs: pd.DataFrame) -> float | str:
    values = runs["test_accuracy"].dropna()
    return float(values.mean()) if len(values) else "not finite"
