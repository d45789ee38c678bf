"""Question 7: whether ranks that average gradients alone stay alike."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt
from scaling.tables import noise

QUESTION = "Q7"
PARAMETERS = (
    "SHA-256 of all parameters on each rank after the last epoch. Supported: the same on all ranks "
    "in every training; refuted: not in one."
)
STATISTICS = (
    "SHA-256 of all buffers on each rank after the last epoch, where they are broadcast and where "
    "they are local. Supported: ranks differ in both trainings; refuted: they agree in one."
)
SYNCHRONIZED = (
    "SHA-256 of all buffers on each rank after the last epoch, with SyncBatchNorm. Supported: the "
    "same on all ranks; refuted: not."
)
EVALUATION = (
    "Test accuracy of every rank's own copy of one model, on the same images. Supported: ranks "
    "differ where buffers are broadcast or local; refuted: they agree in both."
)
SECONDS = (
    "Ranges of the seconds of an epoch on batches in memory, as many epochs with either kind of "
    "buffers, in turn. Supported: disjoint, and the second is slower; refuted: disjoint, and it is "
    "faster; undecided: they overlap, or an epoch was not measured at least twice with both."
)
DIVERGED = "How far running statistics drift apart cannot be said: a training diverged."
NAMES = {"broadcast": "broadcast", "local": "local", "sync_batch_norm": "SyncBatchNorm"}


def claims(tables: ClaimTables) -> list[Claim]:
    """Six claims from buffers.csv."""
    table, file = tables["buffers"], tables.file("buffers")
    kinds = {
        str(kind): rows
        for kind, rows in table[table["rank"].notna()].groupby("buffers", sort=False)
    }
    notes = dict(zip(table["buffers"], table["note"], strict=True))
    return [
        _parameters(kinds, file),
        _statistics(kinds, file),
        _synchronized(kinds, notes, file),
        _evaluation(kinds, file),
        _seconds("Q7-broadcast-seconds", "local", "broadcast", kinds, notes, file),
        _seconds("Q7-sync-seconds", "broadcast", "sync_batch_norm", kinds, notes, file),
    ]


def _hashes(rows: pd.DataFrame, what: str) -> int:
    return int(rows[f"{what}_sha256"].nunique())


def _ranks(rows: pd.DataFrame) -> str:
    return fmt.plural(len(rows), "rank")


def _parameters(kinds: dict[str, pd.DataFrame], file: str) -> Claim:
    id = "Q7-parameters"
    if not kinds:
        lacks = "Whether parameters stay equal cannot be said: no ranks were compared."
        return undecided(id, QUESTION, lacks, file, PARAMETERS)
    found = {kind: _hashes(rows, "parameters") for kind, rows in kinds.items()}
    apart = [NAMES[kind] for kind, hashes in found.items() if hashes > 1]
    rows = next(iter(kinds.values()))
    epochs = int(rows["epochs"].iloc[0])
    figures: dict[str, Any] = {"ranks": len(rows), "epochs": epochs}
    figures |= {f"different_{kind}": hashes for kind, hashes in found.items()}
    if apart:
        sentence = (
            f"Averaging gradients does not keep the parameters of {_ranks(rows)} equal: after "
            f"{epochs} epochs they differ with buffers {', '.join(apart)}."
        )
    else:
        sentence = (
            f"Averaged gradients alone keep the parameters of {_ranks(rows)} equal, bit for bit, "
            f"over {epochs} epochs, whatever becomes of the buffers "
            f"({', '.join(NAMES[kind] for kind in kinds)})."
        )
        if {"broadcast", "local"} <= set(kinds) and _hashes(
            pd.concat([kinds["broadcast"], kinds["local"]]), "parameters"
        ) == 1:
            sentence += (
                " Trainings with broadcast and with local buffers even end with the same "
                "parameters: a forward pass in training does not read running statistics."
            )
    verdict = judge(not apart, bool(apart))
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, PARAMETERS)])


def _statistics(kinds: dict[str, pd.DataFrame], file: str) -> Claim:
    id = "Q7-statistics"
    if not {"broadcast", "local"} <= set(kinds):
        lacks = "How far running statistics drift apart cannot be said: no ranks were compared."
        return undecided(id, QUESTION, lacks, file, STATISTICS)
    if pd.concat([kinds["broadcast"], kinds["local"]])["variance_drift_max"].isna().any():
        return undecided(id, QUESTION, DIVERGED, file, STATISTICS)
    figures: dict[str, Any] = {}
    words = {}
    for kind in ("broadcast", "local"):
        row = kinds[kind].iloc[0]
        figures[f"different_{kind}"] = _hashes(kinds[kind], "buffers")
        for column in ("variance_drift_max", "variance_drift_mean", "mean_drift_max"):
            figures[f"{column}_{kind}"] = row[column]
        words[kind] = (
            f"up to {fmt.percent(row['variance_drift_max'])} "
            f"({fmt.percent(row['variance_drift_mean'])} on average)"
        )
    same = [kind for kind in ("broadcast", "local") if figures[f"different_{kind}"] == 1]
    if same:
        sentence = (
            f"Running statistics are the same on {_ranks(kinds['local'])} after the last step "
            f"with buffers {' and '.join(same)}: running variances are apart by "
            f"{words['broadcast']} where they are broadcast, by {words['local']} where not."
        )
    else:
        sentence = (
            f"Running statistics are not equal on {_ranks(kinds['local'])}. Local, running "
            f"variances end {words['local']} of their size apart; broadcast, still "
            f"{words['broadcast']}, as each rank goes on with its own batch after the last "
            "broadcast, which comes before the forward pass."
        )
    verdict = judge(not same, bool(same))
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, STATISTICS)])


def _synchronized(kinds: dict[str, pd.DataFrame], notes: dict[str, str], file: str) -> Claim:
    id, kind = "Q7-sync-statistics", "sync_batch_norm"
    if kind not in kinds:
        lacks = f"What SyncBatchNorm makes of the statistics was {_why_not(kind, notes)}."
        return undecided(id, QUESTION, lacks, file, SYNCHRONIZED)
    rows = kinds[kind]
    if rows["variance_drift_max"].isna().any():
        return undecided(id, QUESTION, DIVERGED, file, SYNCHRONIZED)
    same = _hashes(rows, "buffers") == 1
    drift = rows.iloc[0]["variance_drift_max"]
    figures = {
        "ranks": len(rows),
        "different": _hashes(rows, "buffers"),
        "variance_drift_max": drift,
    }
    sentence = (
        f"With SyncBatchNorm the running statistics of {_ranks(rows)} are equal bit for bit: each "
        "step's are those of the batches of all ranks."
        if same
        else f"With SyncBatchNorm the running statistics of {_ranks(rows)} are not equal: running "
        f"variances are up to {fmt.percent(drift)} apart."
    )
    return Claim(
        id, QUESTION, sentence, judge(same, not same), [Evidence(file, figures, SYNCHRONIZED)]
    )


def _evaluation(kinds: dict[str, pd.DataFrame], file: str) -> Claim:
    id = "Q7-evaluation"
    compared = [kind for kind in ("broadcast", "local") if kind in kinds]
    if not compared:
        lacks = "Whether it matters which rank is evaluated cannot be said: no ranks were compared."
        return undecided(id, QUESTION, lacks, file, EVALUATION)
    figures: dict[str, Any] = {}
    words = []
    for kind, rows in kinds.items():
        low, high = rows["test_accuracy"].min(), rows["test_accuracy"].max()
        figures |= {f"test_accuracy_min_{kind}": low, f"test_accuracy_max_{kind}": high}
        words.append(f"{NAMES[kind]} {100 * low:.2f} to {100 * high:.2f} %")
    differ = any(
        figures[f"test_accuracy_max_{kind}"] > figures[f"test_accuracy_min_{kind}"]
        for kind in compared
    )
    sentence = (
        "Test accuracy depends on the rank whose copy is evaluated, by its running statistics: "
        if differ
        else "It does not matter which rank's copy is evaluated: "
    ) + f"{', '.join(words)} over the ranks."
    verdict = judge(differ, not differ)
    return Claim(id, QUESTION, sentence, verdict, [Evidence(file, figures, EVALUATION)])


def _seconds(
    id: str,
    first: str,
    second: str,
    kinds: dict[str, pd.DataFrame],
    notes: dict[str, str],
    file: str,
) -> Claim:
    """That an epoch with buffers of the `second` kind takes longer than with the `first`."""
    absent = [kind for kind in (first, second) if kind not in kinds]
    if absent:
        lacks = (
            f"What an epoch with {NAMES[absent[0]]} buffers takes was {_why_not(absent[0], notes)}."
        )
        lacks = lacks.replace("SyncBatchNorm buffers", "SyncBatchNorm")
        return undecided(id, QUESTION, lacks, file, SECONDS)
    base, other = kinds[first].iloc[0], kinds[second].iloc[0]
    what = "broadcasting buffers" if second == "broadcast" else "SyncBatchNorm"
    if not base["count"] == other["count"] > 0:
        lacks = (
            f"Whether {what} costs time cannot be said: no epochs without loading were timed, "
            "equally many with both."
        )
        return undecided(id, QUESTION, lacks, file, SECONDS)
    figures: dict[str, Any] = {}
    words = {}
    for kind, row in ((first, base), (second, other)):
        for column in ("epoch_seconds", "epoch_seconds_min", "epoch_seconds_max"):
            figures[f"{column}_{kind}"] = row[column]
        figures[f"count_{kind}"] = row["count"]
        words[kind] = (
            f"{fmt.seconds(row['epoch_seconds'])} "
            f"({fmt.span(row['epoch_seconds_min'], row['epoch_seconds_max'])})"
        )
    overlap = noise.ranges_overlap(
        base["epoch_seconds_min"],
        base["epoch_seconds_max"],
        other["epoch_seconds_min"],
        other["epoch_seconds_max"],
    )
    known = base["count"] > 1 and not overlap
    slower = known and other["epoch_seconds"] > base["epoch_seconds"]
    faster = known and not slower
    subject = what[0].upper() + what[1:]
    ratio = fmt.times(other["epoch_seconds"] / base["epoch_seconds"])
    against = (
        f"an epoch on batches in memory takes {words[second]}, against {words[first]} with "
        f"{NAMES[first]} buffers, {fmt.plural(int(base['count']), 'epoch')} each"
    )
    if slower:
        sentence = f"{subject} costs time: {against}, {ratio}."
    elif faster:
        sentence = f"{subject} does not cost time: {against}, {ratio}."
    else:
        sentence = f"Whether {what} costs time cannot be told from noise: {against}."
    return Claim(id, QUESTION, sentence, judge(slower, faster), [Evidence(file, figures, SECONDS)])


def _why_not(kind: str, notes: dict[str, str]) -> str:
    return notes.get(kind) or "not measured: the study has no such training"
