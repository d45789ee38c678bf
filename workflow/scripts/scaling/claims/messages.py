"""Question 6: what travels in a training step, beside K, the bytes of all gradients."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables

Judgement = tuple[bool, dict[str, Any]]
"""Whether the test holds, and the figures."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Six claims from collectives.csv, none without it."""
    table = tables["collectives"]
    if table.empty:
        return []
    made = []
    for kind, (way, judge) in _CLAIMS.items():
        known = table[(table["way"] == way) & table["bytes"].notna()]
        if known.empty:
            made.append(tables.missing(kind))
            continue
        holds, figures = judge(known, table)
        figures = {"gradient_bytes": int(known["gradient_bytes"].iloc[0]), **figures}
        made.append(tables.claim(kind, figures, holds=holds, fails=not holds))
    return made


def settled(rows: pd.DataFrame) -> pd.DataFrame:
    """The messages of the last recorded step."""
    return rows[rows["step"] == rows["step"].max()]


def _bytes(rows: pd.DataFrame, *contents: str) -> int:
    return int(rows[rows["content"].isin(contents)]["bytes"].sum())


def _k(rows: pd.DataFrame) -> int:
    return int(rows["gradient_bytes"].iloc[0])


def _gradients(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    step = settled(rows)
    contents, agree = sorted(set(step["content"])), bool(step["ranks_agree"].all())
    total = _bytes(step, "gradients")
    figures = {
        "messages": int((step["content"] == "gradients").sum()),
        "bytes": total,
        "contents": " and ".join(contents),
        "ranks_agree": str(agree),
    }
    return total == _k(rows) and set(contents) <= {"gradients", "buffers"} and agree, figures


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
    return total == expected and left == 0, figures


def _start(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    start = rows[rows["phase"] == "start"]
    whole = _bytes(start, "parameters and buffers")
    expected = _k(rows) + int(rows["buffer_bytes"].iloc[0])
    later = _bytes(settled(rows), "parameters", "parameters and buffers")
    figures = {
        "start_bytes": whole,
        "parameter_and_buffer_bytes": expected,
        "shape_bytes": _bytes(start, "shapes"),
        "step_parameter_bytes": later,
        "first_step_messages": int(((rows["step"] == 1) & (rows["content"] == "gradients")).sum()),
    }
    return whole == expected and later == 0, figures


def _synchronized(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    step = settled(rows)
    statistics = step[step["content"] == "batch statistics"]
    forward, backward = (
        int((statistics["phase"] == phase).sum()) for phase in ("forward", "backward")
    )
    gradients = _bytes(step, "gradients")
    figures = {
        "forward_messages": forward,
        "backward_messages": backward,
        "statistics_bytes": int(statistics["bytes"].sum()),
        "share_of_gradients": statistics["bytes"].sum() / _k(rows),
        "bytes": gradients,
    }
    return gradients == _k(rows) and forward > 0 and backward > 0, figures


def _tuned(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    step, k = settled(rows), _k(rows)
    total, start = int(step["bytes"].sum()), int((rows["phase"] == "start").sum())
    contents = set(step["content"])
    figures = {
        "messages": len(step),
        "bytes": total,
        "contents": " and ".join(sorted(contents)),
        "padding": total - k,
        "start_messages": start,
    }
    return contents == {"gradients"} and total >= k and start == 0, figures


def _data_parallel(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    """GPU 0 sends to, and gets from, every other GPU: copies whole, images and outputs in parts."""
    step, k = settled(rows), _k(rows)
    others = int(rows["gpus"].iloc[0]) - 1
    share = others / (others + 1)
    copied = {name: _bytes(step, name) for name in ("parameters", "gradients", "buffers")}
    divided = {name: _bytes(step, name) for name in ("images", "outputs")}
    divided["output_gradients"] = _bytes(step, "gradients of outputs")
    sizes = copied | divided
    figures = {f"{name}_bytes": size for name, size in sizes.items()}
    figures["through_gpu_0"] = round(others * sum(copied.values()) + share * sum(divided.values()))
    figures["ring_bytes"] = round(2 * share * k)
    return sizes["parameters"] == sizes["gradients"] == k and min(sizes.values()) > 0, figures


_CLAIMS: dict[str, tuple[str, Callable[[pd.DataFrame, pd.DataFrame], Judgement]]] = {
    "Q6-gradients": ("ddp", _gradients),
    "Q6-buffers": ("ddp", _buffers),
    "Q6-start": ("ddp", _start),
    "Q6-sync-batch-norm": ("ddp, SyncBatchNorm", _synchronized),
    "Q6-tuned": ("tuned", _tuned),
    "Q6-data-parallel": ("dp", _data_parallel),
}
"""The kinds of claims, the way to train that each is on, and its test."""
