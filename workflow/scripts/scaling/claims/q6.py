"""Question 6: the messages of a training step, compared with K, the bytes of all gradients."""

from scaling.claims.claim import Answer, Hypothesis
from scaling.core import numbers as fmt
from scaling.tables.schema import StudyTables

GRADIENTS = Hypothesis(
    "Q6-gradients",
    "A DDP step sends every gradient once, and besides them only buffers.",
    table="collectives",
    test="Messages of the last recorded step, in which DDP has settled its buckets. Supported: "
    "every rank recorded the same ones, they carry gradients and buffers alone, and the gradients' "
    "bytes add up to K exactly; refuted: otherwise.",
)


def answer(tables: StudyTables) -> Answer:
    """Answer by what a step of DDP sends besides gradients; one claim."""
    table = tables.collectives
    rows = table[table["way"] == "ddp"]
    if rows.empty:
        add = "Add 3 or more to `synchronization.seeds`, and 2 or more to `grid.gpus`."
        return Answer(None, [GRADIENTS.missing("", add)])
    step = rows[rows["step"] == rows["step"].max()]
    own, others = (step[step["content"].eq("gradients") == each] for each in (True, False))
    size, more = (int(sent["bytes"].sum()) for sent in (own, others))
    text = f"Yes: DDP sends {fmt.data(size)} of gradients in a step, and nothing else."
    if more:
        names = " and ".join(dict.fromkeys(others["content"]))
        text = f"No: DDP sends {names} too, {fmt.data(more)}, and {fmt.data(size)} of gradients."
    k, agree = int(step["gradient_bytes"].iloc[0]), bool(step["ranks_agree"].all())
    holds = size == k and agree and set(others["content"]) <= {"buffers"}
    contents = " and ".join(sorted(set(step["content"])))
    claim = GRADIENTS.claim(
        "",
        f"{fmt.plural(len(own), 'message')} with {size:,} of {k:,} B of gradients; a step sends "
        f"{contents}{'' if agree else '; the ranks recorded different ones'}.",
        holds=holds,
        fails=not holds,
    )
    return Answer(text, [claim])
