"""Question 6: what travels in a training step, beside K, the bytes of all gradients."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables

Judgement = tuple[bool, dict[str, Any], dict[str, Any]]
"""Whether the test holds, the figures, and what else the sentence says."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Six claims from collectives.csv."""
    return [_claim(kind, way, judgement, tables) for kind, way, judgement in _CLAIMS]


def _claim(
    kind: str,
    way: str,
    judgement: Callable[[pd.DataFrame, pd.DataFrame], Judgement],
    tables: ClaimTables,
) -> Claim:
    """The claim on the messages of one way to train; `all_messages` are those of its last step."""
    table = tables["collectives"]
    rows = table[table["way"] == way]
    known = rows[rows["bytes"].notna()]
    if known.empty:
        reason = next(iter(rows["note"]), "not recorded: the study has no such step")
        return tables.missing(kind, "not_recorded", reason=reason)
    holds, figures, facts = judgement(known, table)
    counts = settled(known).groupby(["kind", "content"], sort=False).size()
    everything = ", ".join(
        f"{count} × {kind.replace('_', '-')} of {content}"
        for (kind, content), count in counts.items()
    )
    facts = facts | {"k": _k(known), "all_messages": everything}
    return tables.claim(kind, figures, holds=holds, fails=not holds, **facts)


def settled(rows: pd.DataFrame) -> pd.DataFrame:
    """The messages of the last recorded step."""
    return rows[rows["step"] == rows["step"].max()]


def _bytes(rows: pd.DataFrame, *contents: str) -> int:
    return int(rows[rows["content"].isin(contents)]["bytes"].sum())


def _k(rows: pd.DataFrame) -> int:
    return int(rows["gradient_bytes"].iloc[0])


def _sizes(rows: pd.DataFrame) -> str:
    """The bytes of each message, and of all where they are several."""
    sizes = [f"{int(size):,}" for size in rows["bytes"]]
    whole = f" = {int(rows['bytes'].sum()):,}" if len(sizes) > 1 else ""
    return f"{' + '.join(sizes)}{whole} B"


def _gradients(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
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
    return total == k and alone and agree, figures, {"sizes": _sizes(sent), "agree": agree}


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
    return total == expected and left == 0, figures, {}


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
    return whole == expected and later == 0, figures, {}


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
        "gradient_messages": int((step["content"] == "gradients").sum()),
    }
    holds = gradients == _k(rows) and forward > 0 and backward > 0
    return holds, figures, {"gradients": gradients}


def _tuned(rows: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    step, k = settled(rows), _k(rows)
    total, start = int(step["bytes"].sum()), int((rows["phase"] == "start").sum())
    figures = {"messages": len(step), "bytes": total, "gradient_bytes": k, "padding": total - k}
    holds = set(step["content"]) == {"gradients"} and total >= k and start == 0
    return holds, figures, {"sizes": _sizes(step), "start": start}


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
    holds = sizes["parameters"] == sizes["gradients"] == k and min(sizes.values()) > 0
    return holds, figures, {"others": others}


_CLAIMS = [
    ("Q6-gradients", "ddp", _gradients),
    ("Q6-buffers", "ddp", _buffers),
    ("Q6-start", "ddp", _start),
    ("Q6-sync-batch-norm", "ddp, SyncBatchNorm", _synchronized),
    ("Q6-tuned", "tuned", _tuned),
    ("Q6-data-parallel", "dp", _data_parallel),
]
"""The kinds of claims, the way to train that each is on, and its test."""
