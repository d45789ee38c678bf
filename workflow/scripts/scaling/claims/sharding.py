"""Question 6: whether sharding trains the same model, and saves the memory that it should."""

from scaling.claims.claim import Claim
from scaling.claims.claim_tables import ClaimTables, row_at
from scaling.registry.strategy import STRATEGIES
from scaling.tables import schema
from scaling.tables.bandwidth import swept_gradient_bytes

ROUNDING = 0.001
"""Of the way that the parameters went: float32's rounding, amplified by ten steps."""
MEMORY_MARGIN = 0.1
RECIPE = "course"
"""Whose memory is known: parameters, gradients, momenta, and DDP's buckets, each K."""


def claims(tables: ClaimTables) -> list[Claim]:
    """A claim from agreement.csv, and one from costs.csv where sharded cells ran on GPUs."""
    agreement = [] if tables["agreement"].empty else [_agreement(tables)]
    return [*agreement, *_memory(tables)]


def _agreement(tables: ClaimTables) -> Claim:
    """That sharding changes no more than rounding does."""
    rows = tables["agreement"]
    again = float(rows.loc[rows["strategy"] == "ddp", "distance"].iloc[0])
    others = rows[rows["strategy"] != "ddp"]
    far = others[others["distance"] > max(ROUNDING, 10 * again)]
    distances = {
        STRATEGIES.find(strategy).title: float(distance)
        for strategy, distance in zip(others["strategy"], others["distance"], strict=True)
    }
    return tables.claim(
        "Q6-agreement",
        holds=far.empty,
        fails=not far.empty,
        steps=int(rows["steps"].iloc[0]),
        again=again,
        distances=distances,
    )


def _memory(tables: ClaimTables) -> list[Claim]:
    """That N ranks with a part each save (N-1)/N of it, and DDP's buckets.

    Where the update is the peak, its copy of the gradients with weight decay counts as well.
    """
    costs, k = tables["costs"], swept_gradient_bytes(tables["interconnect"])
    key = ["recipe", "gpus", "batch_size"]
    own = costs[(costs["recipe"] == RECIPE) & (costs["gpus"] > 1)]
    found = own.pivot(index=key, columns="strategy", values="peak_memory_bytes").reset_index()
    if not {"ddp", "fsdp"} <= set(found) or schema.on_cpu(tables["provenance"]):
        return []
    found = found[found["ddp"].notna() & found["fsdp"].notna()]
    if found.empty:
        return [tables.missing("Q6-memory")]
    part = (found["gpus"] - 1) / found["gpus"] * k
    found["saved"], found["least"], found["most"] = (
        found["ddp"] - found["fsdp"],
        3 * part + k,
        4 * part + k,
    )
    low = found["saved"] >= (1 - MEMORY_MARGIN) * found["least"]
    high = found["saved"] <= (1 + MEMORY_MARGIN) * found["most"]
    holds = bool((low & high).all())
    cell = row_at(found, (found["saved"] / found["least"]).idxmin())
    return [tables.claim("Q6-memory", holds=holds, fails=not holds, cell=cell, cells=len(found))]
