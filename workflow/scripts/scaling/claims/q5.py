"""Question 5: the effect of set_epoch on the order of images."""

from scaling.claims.claim import Answer, Hypothesis
from scaling.tables.schema import StudyTables

REPEATS = Hypothesis(
    "Q5-repeats",
    "Without set_epoch, every epoch repeats the same order of images.",
    table="sampler",
    test="Orders of each rank hashed, over 2 epochs or more. Supported: without set_epoch every "
    "rank's order is that of the first epoch in all, with it no rank has one twice; refuted: one "
    "rank does otherwise.",
)


def answer(tables: StudyTables) -> Answer:
    """Answer whether orders come again; one claim."""
    drawn = tables.sampler[tables.sampler["sampler"] == "DistributedSampler"]
    if drawn.empty:
        return Answer(None, [REPEATS.missing("", "Add 3 or more to `synchronization.seeds`.")])
    reshuffled, fixed = drawn[drawn["set_epoch"]], drawn[~drawn["set_epoch"].astype(bool)]
    new, old = (int((rows["first_epoch"] == rows["epoch"]).sum()) for rows in (reshuffled, fixed))
    fine = new == len(reshuffled) and (fixed["first_epoch"] == fixed["epoch"].min()).all()
    gpus = " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
    epochs = drawn["epoch"].nunique()
    said = f"Over {epochs} epochs on {gpus} GPUs, {old} of {len(fixed)} orders are new without "
    said += f"set_epoch, {new} of {len(reshuffled)} with it."
    text = "Without set_epoch every epoch repeats the first one’s order: the seed of the shuffle "
    text += f"is seed + epoch. With it all {epochs} epochs differ."
    claim = REPEATS.claim("", said, holds=fine, fails=not fine)
    return Answer(text if fine else said, [claim])
