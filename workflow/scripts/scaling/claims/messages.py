"""Question 6: what travels in a training step, beside K, the bytes of all gradients."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim, Evidence, judge, undecided
from scaling.claims.claim_tables import ClaimTables
from scaling.core import numbers as fmt

QUESTION = "Q6"
SETTLED = "Messages of the last recorded step, in which DDP has settled its buckets. "
GRADIENTS = SETTLED + (
    "Supported: every rank recorded the same ones, they carry gradients and buffers alone, and the "
    "gradients' bytes add up to K exactly; refuted: otherwise."
)
BUFFERS = SETTLED + (
    "Supported: the broadcasts of the forward pass add up to the model's buffers exactly, and with "
    "broadcasting switched off there are none; refuted: otherwise."
)
START = (
    "Messages before the first step and in the last one. Supported: those of the start add up to "
    "parameters and buffers exactly, besides the check of shapes, and no step carries parameters; "
    "refuted: otherwise."
)
TUNED = SETTLED + (
    "Supported: they carry gradients alone, K and its padding, and nothing is sent at the start; "
    "refuted: otherwise."
)
DATA_PARALLEL = SETTLED + (
    "Supported: parameters copied from GPU 0 and gradients summed on it are K each, and images, "
    "outputs and the gradients of outputs move besides; refuted: otherwise."
)
SYNCHRONIZED = SETTLED + (
    "Supported: beside K of gradients there are messages of batch statistics in both passes; "
    "refuted: otherwise."
)

SUBJECTS = {
    "Q6-gradients": "Which gradients a step of DDP sends",
    "Q6-buffers": "Which buffers a step of DDP sends",
    "Q6-start": "What DDP sends at its start",
    "Q6-sync-batch-norm": "What a step of DDP with SyncBatchNorm sends",
    "Q6-tuned": "What a step of recipe tuned sends",
    "Q6-data-parallel": "What a step of DataParallel moves",
}
"""What each claim is about, for want of evidence."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Six claims from collectives.csv."""
    table, file = tables["collectives"], tables.file("collectives")
    return [
        _claim("Q6-gradients", "ddp", GRADIENTS, _gradients, table, file),
        _claim("Q6-buffers", "ddp", BUFFERS, _buffers, table, file),
        _claim("Q6-start", "ddp", START, _start, table, file),
        _claim(
            "Q6-sync-batch-norm", "ddp, SyncBatchNorm", SYNCHRONIZED, _synchronized, table, file
        ),
        _claim("Q6-tuned", "tuned", TUNED, _tuned, table, file),
        _claim("Q6-data-parallel", "dp", DATA_PARALLEL, _data_parallel, table, file),
    ]


Judgement = tuple[str, bool, dict[str, Any]]
"""A sentence, whether the test holds, and the figures."""


def _claim(
    id: str,
    way: str,
    test: str,
    judgement: Callable[[pd.DataFrame, pd.DataFrame], Judgement],
    table: pd.DataFrame,
    file: str,
) -> Claim:
    rows = table[table["way"] == way]
    known = rows[rows["bytes"].notna()]
    if known.empty:
        reason = next(iter(rows["note"]), "not recorded: the study has no such step")
        return undecided(id, QUESTION, f"{SUBJECTS[id]} was {reason}.", file, test)
    sentence, holds, figures = judgement(known, table)
    return Claim(id, QUESTION, sentence, judge(holds, not holds), [Evidence(file, figures, test)])


def settled(rows: pd.DataFrame) -> pd.DataFrame:
    """The messages of the last recorded step."""
    return rows[rows["step"] == rows["step"].max()]


def _bytes(rows: pd.DataFrame, *contents: str) -> int:
    return int(rows[rows["content"].isin(contents)]["bytes"].sum())


def _k(rows: pd.DataFrame) -> int:
    return int(rows["gradient_bytes"].iloc[0])


def _listed(rows: pd.DataFrame) -> str:
    """The bytes of each message, and of all where they are several."""
    sizes = [f"{int(size):,}" for size in rows["bytes"]]
    whole = f" = {int(rows['bytes'].sum()):,}" if len(sizes) > 1 else ""
    return f"{' + '.join(sizes)}{whole} B"


def _messages(rows: pd.DataFrame) -> str:
    words = [
        f"{count} × {kind.replace('_', '-')} of {content}"
        for (kind, content), count in rows.groupby(["kind", "content"], sort=False).size().items()
    ]
    return ", ".join(words)


def _gradients(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    step, k = settled(rows), _k(rows)
    sent = step[step["content"] == "gradients"]
    total = int(sent["bytes"].sum())
    alone = set(step["content"]) <= {"gradients", "buffers"}
    agree = bool(step["ranks_agree"].all())
    figures = {
        "messages": len(sent),
        "bytes": total,
        "gradient_bytes": k,
        "ranks_agree": str(agree),
    }
    if total == k and alone and agree:
        sentence = (
            f"Each step of DDP sends {fmt.plural(len(sent), 'all-reduce')} in its backward pass, "
            f"{_listed(sent)}: that is K, the gradients, and besides buffers nothing "
            "else travels, neither images nor outputs nor parameters."
        )
    else:
        sentence = (
            f"A step of DDP does not send K = {k:,} B of gradients and buffers alone: its messages "
            f"are {_messages(step)}, {total:,} B of them gradients"
            + ("." if agree else ", and the ranks recorded different ones.")
        )
    return sentence, total == k and alone and agree, figures


def _buffers(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    step = settled(rows)
    sent = step[(step["phase"] == "forward") & (step["kind"] == "broadcast")]
    local = table[(table["way"] == "ddp, buffers local") & table["bytes"].notna()]
    left = len(settled(local)[settled(local)["phase"] == "forward"])
    total, expected = int(sent["bytes"].sum()), int(rows["buffer_bytes"].iloc[0])
    figures = {
        "messages": len(sent),
        "bytes": total,
        "buffer_bytes": expected,
        "share_of_gradients": total / _k(rows),
        "messages_switched_off": left,
    }
    holds = total == expected and left == 0
    sentence = (
        f"Before each forward pass DDP broadcasts the buffers of rank 0, batch norm's running "
        f"statistics: {fmt.plural(len(sent), 'message')} of {total:,} B together, "
        f"{100 * figures['share_of_gradients']:.2g} % of K; switched off, none is left."
        if holds
        else f"In the forward pass of DDP {total:,} B are broadcast where the model's buffers have "
        f"{expected:,} B, and {fmt.plural(left, 'message')} where broadcasting is switched off."
    )
    return sentence, holds, figures


def _start(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    start, step = rows[rows["phase"] == "start"], settled(rows)
    whole = _bytes(start, "parameters and buffers")
    expected = _k(rows) + int(rows["buffer_bytes"].iloc[0])
    later = _bytes(step, "parameters", "parameters and buffers")
    first = rows[(rows["step"] == 1) & (rows["content"] == "gradients")]
    figures = {
        "start_bytes": whole,
        "parameter_and_buffer_bytes": expected,
        "shape_bytes": _bytes(start, "shapes"),
        "step_parameter_bytes": later,
        "first_step_messages": len(first),
    }
    holds = whole == expected and later == 0
    sentence = (
        f"Parameters travel once: when DDP is made, rank 0 broadcasts parameters and buffers, "
        f"{whole:,} B, after {figures['shape_bytes']:,} B that compare the shapes. No step sends "
        f"them again; in the first the gradients go in {fmt.plural(len(first), 'message')}."
        if holds
        else f"At the start of DDP {whole:,} B of parameters and buffers are sent where the model "
        f"has {expected:,} B, and {later:,} B of parameters in a step."
    )
    return sentence, holds, figures


def _synchronized(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    step = settled(rows)
    statistics = step[step["content"] == "batch statistics"]
    phases = statistics["phase"].value_counts()
    gradients, k = _bytes(step, "gradients"), _k(rows)
    figures = {
        "forward_messages": int(phases.get("forward", 0)),
        "backward_messages": int(phases.get("backward", 0)),
        "statistics_bytes": int(statistics["bytes"].sum()),
        "gradient_messages": int((step["content"] == "gradients").sum()),
    }
    holds = gradients == k and figures["forward_messages"] > 0 and figures["backward_messages"] > 0
    sentence = (
        f"SyncBatchNorm adds {figures['forward_messages']} messages to the forward pass and "
        f"{figures['backward_messages']} to the backward pass, "
        f"{figures['statistics_bytes']:,} B in all, {100 * figures['statistics_bytes'] / k:.2g} % "
        f"of K, which itself takes {fmt.plural(figures['gradient_messages'], 'message')}."
        if holds
        else f"With SyncBatchNorm a step sends {_messages(step)}: {gradients:,} B of gradients "
        f"where K is {k:,} B."
    )
    return sentence, holds, figures


def _tuned(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    step, k = settled(rows), _k(rows)
    total, start = int(step["bytes"].sum()), int((rows["phase"] == "start").sum())
    holds = set(step["content"]) == {"gradients"} and total >= k and start == 0
    figures = {"messages": len(step), "bytes": total, "gradient_bytes": k, "padding": total - k}
    sentence = (
        f"Recipe tuned sends {fmt.plural(len(step), 'all-reduce')} a step, {_listed(step)}: K "
        f"and {total - k:,} B of padding, no buffers; and nothing at the start, as every rank "
        "draws the same weights from the seed."
        if holds
        else f"Recipe tuned does not send its gradients alone: {_messages(step)}, {total:,} B "
        f"where K is {k:,} B, and {fmt.plural(start, 'message')} at the start."
    )
    return sentence, holds, figures


def _data_parallel(rows: pd.DataFrame, table: pd.DataFrame) -> Judgement:
    step, k = settled(rows), _k(rows)
    others = int(rows["gpus"].iloc[0]) - 1
    share = others / (others + 1)
    sizes = {
        content: _bytes(step, content)
        for content in ("parameters", "gradients", "buffers", "images", "outputs")
    }
    sizes["output_gradients"] = _bytes(step, "gradients of outputs")
    copied = sizes["parameters"] + sizes["gradients"] + sizes["buffers"]
    divided = sizes["images"] + sizes["outputs"] + sizes["output_gradients"]
    passing = round(others * copied + share * divided)
    figures = {**{f"{name}_bytes": size for name, size in sizes.items()}, "through_gpu_0": passing}
    figures["ring_bytes"] = round(2 * share * k)
    holds = sizes["parameters"] == sizes["gradients"] == k and min(sizes.values()) > 0
    sentence = (
        f"Each step of DataParallel copies all parameters, {sizes['parameters']:,} B, and "
        f"{sizes['buffers']:,} B of buffers from GPU 0 to {fmt.plural(others, 'other GPU')} and "
        f"sums as many bytes of gradients back on it; {sizes['images']:,} B of images go out, "
        f"{sizes['outputs']:,} B of outputs come back, and their gradients go out again. Through "
        f"GPU 0 pass {passing:,} B, {fmt.times(passing / figures['ring_bytes'])} what a ring "
        "all-reduce of K sends from each GPU."
        if holds
        else f"A step of DataParallel copies {sizes['parameters']:,} B of parameters and sums "
        f"{sizes['gradients']:,} B of gradients, where K is {k:,} B: {_messages(step)}."
    )
    return sentence, holds, figures
