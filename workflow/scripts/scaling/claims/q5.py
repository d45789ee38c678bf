"""Question 5: the effect of set_epoch on image order and accuracy."""

from scaling.claims import phrases
from scaling.claims.claim import Answer, Claim, Hypothesis
from scaling.core import numbers as fmt
from scaling.core.statistics import difference
from scaling.tables.schema import StudyTables


def answer(tables: StudyTables) -> Answer:
    """Answer whether orders come again; two claims."""
    if tables.sampler.empty:
        return Answer(None, [REPEATS.missing("", "Add 3 or more to `synchronization.seeds`.")])
    repeats = _repeats(tables)
    text = repeats.sentence
    if repeats.verdict == "supported":
        epochs = tables.sampler["epoch"].nunique()
        text = "Without set_epoch every epoch repeats the first one’s order: the seed of the "
        text += f"shuffle is seed + epoch. With it all {epochs} epochs differ."
    return Answer(text, [repeats, _accuracy(tables)])


REPEATS = Hypothesis(
    "Q5-repeats",
    "Without set_epoch, every epoch repeats the same order of images.",
    table="sampler",
    test="Orders of each rank hashed, over 2 epochs or more. Supported: without set_epoch every "
    "rank's order is that of the first epoch in all, with it no rank has one twice; refuted: one "
    "rank does otherwise.",
)


def _repeats(tables: StudyTables) -> Claim:
    drawn = tables.sampler[tables.sampler["sampler"] == "DistributedSampler"]
    reshuffled, fixed = drawn[drawn["set_epoch"]], drawn[~drawn["set_epoch"].astype(bool)]
    new, old = (int((rows["first_epoch"] == rows["epoch"]).sum()) for rows in (reshuffled, fixed))
    fine = new == len(reshuffled) and (fixed["first_epoch"] == fixed["epoch"].min()).all()
    gpus = " and ".join(str(int(gpus)) for gpus in sorted(drawn["gpus"].unique()))
    return REPEATS.claim(
        "",
        f"Over {drawn['epoch'].nunique()} epochs on {gpus} GPUs, {old} of {len(fixed)} orders are "
        f"new without set_epoch, {new} of {len(reshuffled)} with it.",
        holds=fine,
        fails=not fine,
    )


ACCURACY = Hypothesis(
    "Q5-accuracy",
    "Training without set_epoch costs test accuracy.",
    table="sampler_accuracy",
    test="Test accuracy without set_epoch minus that with it, paired by seed, after equally many "
    "epochs: 95 % interval by Student's t. Supported: all of it is below 0; refuted: all of it is "
    "above.",
    more="more seeds",
)


def _accuracy(tables: StudyTables) -> Claim:
    table = tables.sampler_accuracy
    pairs = table.pivot(index="seed", columns="set_epoch", values="test_accuracy")
    diverged = int(table["train_loss"].isna().sum())
    if diverged:
        said = f"{fmt.plural(diverged, 'training')} diverged."
        return ACCURACY.claim("", said, unclear="what is left is no fair selection")
    if len(pairs) < 3:
        return ACCURACY.missing("", "Add seeds to `synchronization.seeds` until there are 3.")
    found, epochs = difference((pairs[False] - pairs[True]).to_list()), int(table["epochs"].max())
    with_it, without = pairs[True].mean(), pairs[False].mean()
    return ACCURACY.claim(
        "",
        f"{100 * without:.1f} % without set_epoch, {100 * with_it:.1f} % with it after "
        f"{fmt.plural(epochs, 'epoch')} and {len(pairs)} seeds: {phrases.difference(found)}.",
        holds=found.below,
        fails=found.above,
    )
