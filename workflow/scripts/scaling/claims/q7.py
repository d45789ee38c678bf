"""Question 7: whether ranks that only average gradients stay equal."""

from scaling.claims.claim import Answer, Hypothesis
from scaling.core import numbers as fmt
from scaling.tables.schema import StudyTables

PARAMETERS = Hypothesis(
    "Q7-parameters",
    "Averaging gradients alone keeps the parameters of all ranks equal, bit for bit.",
    table="buffers",
    test="SHA-256 of all parameters on each rank after the last epoch. Supported: the same on all "
    "ranks in every training; refuted: not in one.",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by parameters and running statistics after the last epoch; one claim."""
    table = tables.buffers
    if table.empty:
        return Answer(None, [PARAMETERS.missing("", "Add 3 or more to `synchronization.seeds`.")])
    modes = table.groupby("buffers", sort=False)
    different = modes["parameters_sha256"].nunique()
    apart = list(different.index[different > 1])
    text = "No: parameters differ between ranks." if apart else "For parameters yes, bit for bit."
    drift = modes["variance_drift_max"].first().reindex(["broadcast", "local"])
    if drift.gt(0).all():
        sent, local = map(fmt.percent, drift)
        text += f" Not for running statistics: variances end {sent} apart, {local} if not sent."
    ranks, epochs = int(modes.size().iloc[0]), int(table["epochs"].iloc[0])
    names = ", ".join(apart or different.index).replace("sync_batch_norm", "SyncBatchNorm")
    claim = PARAMETERS.claim(
        "",
        f"On {fmt.plural(ranks, 'rank')} after {fmt.plural(epochs, 'epoch')} they "
        f"{'differ' if apart else 'are equal'} with buffers {names}.",
        holds=not apart,
        fails=apart,
    )
    return Answer(text, [claim])
