"""Question 6: the messages of a training step, compared with K, the bytes of all gradients.

Also the effect of sharding: on the training (none) and on memory.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.registry.strategy import STRATEGIES
from scaling.tables import schema
from scaling.tables.bandwidth import swept_gradient_bytes

OF_BUFFERS = ("Q6-buffers", "Q6-sync-batch-norm")
"""Claims that need batch norms."""
FORMULA_MARGIN = 0.05
"""Allowance for parts outside of all blocks, which fully_shard gathers once, and for padding."""

ROUNDING = 0.001
"""Relative to the parameters' path: float32 rounding, amplified by ten steps."""
MEMORY_MARGIN = 0.1
RECIPE = "plain"
"""The recipe with known memory: parameters, gradients, momenta, and DDP's buckets, each K."""

Judgement = tuple[bool, dict[str, Any]]
"""Whether the test holds, and the figures."""


def claims(tables: ClaimTables) -> list[Claim]:
    """Return eight claims from collectives.csv, none without it."""
    table = tables["collectives"]
    recorded = table[table["bytes"].notna()]
    if table.empty:
        return []
    made = []
    for kind, (way, judge) in _CLAIMS.items():
        rows = recorded[recorded["way"] == way]
        if kind in OF_BUFFERS and (table["buffer_bytes"] == 0).all():
            continue
        if rows.empty:
            # Old records lack some modes.
            made += [tables.missing(kind)] if (table["way"] == way).any() else []
            continue
        holds, figures = judge(rows, settled(rows), recorded)
        figures["gradient_bytes"] = _k(rows)
        made.append(tables.claim(kind, holds=holds, fails=not holds, **figures))
    return made


def settled(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the messages of the last recorded step."""
    return rows[rows["step"] == rows["step"].max()]


def _k(rows: pd.DataFrame) -> int:
    return int(rows["gradient_bytes"].iloc[0])


def _bytes(rows: pd.DataFrame, *contents: str) -> int:
    return int(rows.loc[rows["content"].isin(contents), "bytes"].sum())


def _sent(step: pd.DataFrame) -> dict[str, Any]:
    """Return the number and bytes of gradient messages, and the names of what the step sends."""
    return {
        "messages": int((step["content"] == "gradients").sum()),
        "bytes": _bytes(step, "gradients"),
        "contents": " and ".join(sorted(set(step["content"]))),
    }


def _gradients(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    sent, agree = _sent(step), bool(step["ranks_agree"].all())
    alone = set(step["content"]) <= {"gradients", "buffers"}
    return sent["bytes"] == _k(rows) and alone and agree, sent | {"ranks_agree": str(agree)}


def _buffers(rows: pd.DataFrame, step: pd.DataFrame, recorded: pd.DataFrame) -> Judgement:
    sent = step[(step["phase"] == "forward") & (step["kind"] == "broadcast")]
    local = settled(recorded[recorded["way"] == "ddp, buffers local"])
    left = int((local["phase"] == "forward").sum())
    total, expected = int(sent["bytes"].sum()), int(rows["buffer_bytes"].iloc[0])
    figures = {
        "messages": len(sent),
        "bytes": total,
        "buffer_bytes": expected,
        "share_of_gradients": total / _k(rows),
        "messages_switched_off": left,
    }
    return total == expected and left == 0, figures


def _start(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    whole = _bytes(rows[rows["phase"] == "start"], "parameters and buffers")
    expected = _k(rows) + int(rows["buffer_bytes"].iloc[0])
    later = _bytes(step, "parameters", "parameters and buffers")
    figures = {"start_bytes": whole, "parameter_and_buffer_bytes": expected}
    return whole == expected and later == 0, figures | {"step_parameter_bytes": later}


def _synchronized(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    statistics = step[step["content"] == "batch statistics"]
    figures = {
        f"{phase}_messages": int((statistics["phase"] == phase).sum())
        for phase in ("forward", "backward")
    }
    holds = _bytes(step, "gradients") == _k(rows) and min(figures.values()) > 0
    total = int(statistics["bytes"].sum())
    shares = {"statistics_bytes": total, "share_of_gradients": total / _k(rows)}
    return holds, figures | shares


def _tuned(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    sent, start = _sent(step), int((rows["phase"] == "start").sum())
    padding = sent["bytes"] - _k(rows)
    holds = sent["contents"] == "gradients" and padding >= 0 and start == 0
    return holds, sent | {"padding": padding, "start_messages": start}


def _data_parallel(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    """Judge DataParallel: copies in one direction of a ring, images and outputs via GPU 0."""
    k, gpus = _k(rows), int(rows["gpus"].iloc[0])
    share = (gpus - 1) / gpus
    copied = {name: _bytes(step, name) for name in ("parameters", "gradients", "buffers")}
    divided = [_bytes(step, name) for name in ("images", "outputs", "gradients of outputs")]
    figures = {
        **{f"{name}_bytes": size for name, size in copied.items()},
        "over_busiest_link": round(sum(copied.values()) + share * sum(divided)),
        "ring_bytes": round(2 * share * k),
    }
    all_travel = min(*copied.values(), *divided) > 0
    return copied["parameters"] == copied["gradients"] == k and all_travel, figures


def _spread(rows: pd.DataFrame, step: pd.DataFrame, _: pd.DataFrame) -> Judgement:
    """Compare what each GPU sends in `step` by rings with the strategy's formula.

    A gather, and a broadcast of each rank's part, send a part to N-1 others; a reduction over all
    ranks sends (N-1)/N of its bytes once if the result is sharded (reduce-scatter), else twice
    (all-reduce).
    """
    k, gpus, strategy = _k(rows), int(rows["gpus"].iloc[0]), rows["way"].iloc[0]
    ring = {
        "all_gather": gpus - 1,
        "broadcast": (gpus - 1) / gpus,
        "reduce_scatter": (gpus - 1) / gpus,
        "all_reduce": 2 * (gpus - 1) / gpus,
    }
    carrying = step[step["content"].isin(["parameters", "gradients"])]
    sent = float((carrying["bytes"] * carrying["kind"].map(ring)).sum())
    expected = STRATEGIES.find(str(strategy)).busiest_bytes(gpus, k)
    figures = {"sent": sent, "expected": expected, "ratio": sent / expected}
    return abs(sent / expected - 1) <= FORMULA_MARGIN, figures


_CLAIMS: dict[str, tuple[str, Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], Judgement]]] = {
    "Q6-gradients": ("ddp", _gradients),
    "Q6-buffers": ("ddp", _buffers),
    "Q6-start": ("ddp", _start),
    "Q6-sync-batch-norm": ("ddp, SyncBatchNorm", _synchronized),
    "Q6-tuned": ("tuned", _tuned),
    "Q6-data-parallel": ("dp", _data_parallel),
    "Q6-fsdp": ("fsdp", _spread),
    "Q6-zero1": ("zero1", _spread),
}
"""The kinds of claims, each with its parallel mode and test."""


def sharding(tables: ClaimTables) -> list[Claim]:
    """Return a claim from agreement.csv, and one from costs.csv if sharded cells ran on GPUs."""
    rows = tables["agreement"]
    if rows.empty:
        return _memory(tables)
    # Sharding must not change more than rounding does.
    again = float(rows.loc[rows["strategy"] == "ddp", "distance"].iloc[0])
    others = rows[rows["strategy"] != "ddp"]
    far = others[others["distance"] > max(ROUNDING, 10 * again)]
    distances = {
        STRATEGIES.find(strategy).title: float(distance)
        for strategy, distance in zip(others["strategy"], others["distance"], strict=True)
    }
    agreement = tables.claim(
        "Q6-agreement",
        holds=far.empty and again <= 10 * ROUNDING,
        fails=not far.empty,
        steps=int(rows["steps"].iloc[0]),
        again=again,
        distances=distances,
    )
    return [agreement, *_memory(tables)]


def _memory(tables: ClaimTables) -> list[Claim]:
    """Claim that N ranks with a shard each save (N-1)/N of the sharded memory at the peak."""
    k, key = swept_gradient_bytes(tables["interconnect"]), ["recipe", "gpus", "batch_size"]
    costs = tables["costs"].merge(tables["timing"][[*key, "strategy", "status"]])
    own = costs[(costs["recipe"] == RECIPE) & (costs["gpus"] > 1)]
    peaks = own.assign(peak=own["peak_memory_bytes"].where(own["status"] == "ok"))
    found = peaks.pivot(index=key, columns="strategy", values="peak").reset_index()
    if not {"ddp", "fsdp"} <= set(found) or schema.on_cpu(tables["provenance"]):
        return []
    found = found[found["ddp"].notna() & found["fsdp"].notna()]
    if found.empty:
        return [tables.missing("Q6-memory")]
    part = (found["gpus"] - 1) / found["gpus"] * k
    found = found.assign(saved=found["ddp"] - found["fsdp"], least=2 * part, most=4 * part + k)
    low = found["saved"] >= (1 - MEMORY_MARGIN) * found["least"]
    high = found["saved"] <= (1 + MEMORY_MARGIN) * found["most"]
    holds = low & high
    cell = row_at(found, (found["saved"] / found["least"]).idxmin())
    parts = zip(found.itertuples(), holds, ~holds, strict=True)
    return [tables.claim("Q6-memory", parts=parts, cell=cell, cells=len(found))]
