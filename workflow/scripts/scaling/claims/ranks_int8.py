"""Answer questions 5 to 7 (image orders, messages, equal ranks) and Part B (accuracy of int8)."""

from typing import Any

import pandas as pd

from scaling.claims.claim import Answer, Claim, Hypothesis, span
from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.tables.ranks_int8 import by_buffers, costs, difference
from scaling.tables.schema import StudyTables, rows_of

REPEATS = Hypothesis(
    "Q5-repeats",
    "Without set_epoch, every epoch repeats the same order of images.",
    test="Orders of each rank hashed, over 2 epochs or more. Supported: without set_epoch every "
    "rank's order is that of the first epoch in all, with it no rank has one twice; refuted: one "
    "rank does otherwise.",
)
GRADIENTS = Hypothesis(
    "Q6-gradients",
    "A DDP step sends every gradient once, and besides them only buffers.",
    test="Messages of the last recorded step, in which DDP has settled its buckets. Supported: "
    "every rank recorded the same ones, they carry gradients and buffers alone, and the gradients' "
    "bytes add up to K exactly; refuted: otherwise.",
)
PARAMETERS = Hypothesis(
    "Q7-parameters",
    "Averaging gradients alone keeps the parameters of all ranks equal, bit for bit.",
    test="SHA-256 of all parameters on each rank after the last epoch. Supported: the same on all "
    "ranks in every training; refuted: not in one.",
)


def order(tables: StudyTables) -> Answer:
    """Return the answer to Q5: whether epochs repeat an image order, with and without set_epoch."""
    drawn = tables.sampler
    if drawn.empty:
        return Answer(None)
    reshuffled, fixed = (drawn[drawn["set_epoch"].eq(told)] for told in (True, False))
    new, old = (int((rows["first_epoch"] == rows["epoch"]).sum()) for rows in (reshuffled, fixed))
    fine = new == len(reshuffled) and (fixed["first_epoch"] == fixed["epoch"].min()).all()
    epochs = drawn["epoch"].nunique()
    gpus = drawn["gpus"].iloc[0]
    fact = f"Over {epochs} epochs on {gpus} GPUs, for each rank of each run, {old} of "
    fact += f"{len(fixed)} orders are new without set_epoch, {new} of {len(reshuffled)} with it."
    text = "Without set_epoch every epoch repeats the first order: the shuffle’s seed is seed + "
    text += f"epoch, and epoch stays 0. With it each of {epochs} epochs has another order."
    return Answer(text if fine else fact, [REPEATS.claim("", fact, holds=fine, fails=not fine)])


def messages(tables: StudyTables) -> Answer:
    """Return the answer to Q6: what a DDP step sends besides gradients."""
    rows = tables.collectives
    if rows.empty:
        return Answer(None)
    step = rows[rows["step"] == rows["step"].max()]
    own, others = (step[step["content"].eq("gradients") == each] for each in (True, False))
    size, more = (int(sent["bytes"].sum()) for sent in (own, others))
    text = f"Nothing: each DDP step in float32 sends {fmt.data(size)} of gradients."
    if more:
        names = " and ".join(dict.fromkeys(others["content"]))
        text = f"Each DDP step in float32 sends {fmt.data(size)} of gradients and "
        text += f"{fmt.data(more)} of {names}."
    k, agree = int(step["gradient_bytes"].iloc[0]), bool(step["ranks_agree"].all())
    holds = size == k and agree and set(others["content"]) <= {"buffers"}
    fact = f"{fmt.plural(len(own), 'message')} with {size:,} of {k:,} B of gradients; a step sends "
    fact += " and ".join(sorted(set(step["content"])))
    fact += "." if agree else "; the ranks recorded different ones."
    return Answer(text, [GRADIENTS.claim("", fact, holds=holds, fails=not holds)])


def replicas(tables: StudyTables) -> Answer:
    """Return the answer to Q7: whether ranks end with equal parameters and running variances."""
    table = tables.buffers
    if table.empty:
        return Answer(None)
    modes = by_buffers(table)
    equal = modes["equal_parameters"]
    text = "Yes for parameters, which are bit-identical on all ranks."
    if not equal.all():
        text = "No: parameters differ between ranks."
    for row in rows_of(modes.query("buffers == 'broadcast' and variance_drift_max > 0")):
        ends = (row.variance_drift_max_min, row.variance_drift_max_max)
        text += f" No for running variances: in {fmt.plural(row.trainings, 'training')} with "
        text += "buffer broadcast their largest difference between ranks was "
        text += f"{span(pd.Series(ends))}."
    names = ", ".join(modes.loc[equal == equal.all(), "buffers"])
    runs, (gpus, epochs) = modes["trainings"].sum(), table[["gpus", "epochs"]].iloc[0]
    fact = f"In {fmt.plural(runs, 'training')} of {fmt.plural(epochs, 'epoch')} on {gpus} "
    fact += f"ranks they {'are equal' if equal.all() else 'differ'} with buffers {names}."
    fact = fact.replace("sync_batch_norm", "SyncBatchNorm")
    return Answer(text, [PARAMETERS.claim("", fact, holds=equal.all(), fails=not equal.all())])


MARGIN = 1.0
"""Largest loss of test accuracy that hypothesis `LOSS` accepts, in percentage points."""

LOSS = Hypothesis(
    "B-cost",
    "Computing in 8-bit integers costs less than one point of test accuracy.",
    test="Mean difference to float32 over the seeds, in points, with the 95 % interval of the mean "
    "over networks (Student's t over the seeds). Supported: all of it is above −1; refuted: all of "
    "it is below.",
    more="more seeds",
)


def int8(tables: StudyTables) -> Answer:
    """Return the answer to Part B: a claim on each quantization stage, a text on the last stage."""
    measured = {row.stage: row for row in rows_of(costs(tables.quantization))}
    claims = {stage: _loss(stage, measured[stage]) for stage in STAGES[1:] if stage in measured}
    if not claims:
        return Answer(None)
    stage = list(claims)[-1]
    what = stage.replace("+activations+bias", ", activations and biases").replace("+", " and ")
    text = f"Int8 {what}: {claims[stage].sentence}"
    claims.pop(STAGES[1], None)  # With int8 weights alone, a network computes in floats.
    return Answer(text, list(claims.values()))


def _loss(about: str, row: Any) -> Claim:
    reach = row.margin_points
    unknown = ", whose noise is unknown" if pd.isna(reach) else ""
    return LOSS.claim(
        about,
        f"{row.accuracy_percent:.2f} % against {row.float32_percent:.2f} % in float32: "
        f"{difference(row)} points over {fmt.plural(row.seeds, 'seed')}{unknown}.",
        holds=row.difference_points - reach > -MARGIN,
        fails=row.difference_points + reach < -MARGIN,
    )
