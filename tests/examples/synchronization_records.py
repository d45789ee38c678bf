"""A synchronization.json made by hand: two ranks, 100 images, K = 1,000 B, buffers of 40 B."""

from typing import Any

IMAGES = 100
GRADIENT_BYTES = 1000
BUFFER_BYTES = 40
EPOCHS = 3
SEEDS = [0, 1, 2]


def orders(told: bool) -> list[dict[str, Any]]:
    """Rows of `worker.orders_of` for each epoch, new ones each time where the sampler is `told`."""
    row = {"samples": IMAGES // 2, "unseen": 0, "repeated": 0, "overlap": 0}
    return [
        {"epoch": epoch, "rank": rank, **row, "order_sha256": f"{rank}{epoch if told else 0}"}
        for epoch in range(EPOCHS)
        for rank in (0, 1)
    ]


def message(step: int, phase: str, kind: str, size: int, dtype: str = "float32") -> dict[str, Any]:
    """A row of `messages.Messages`."""
    row = {"step": step, "phase": phase, "kind": kind, "dtype": dtype}
    return {**row, "elements": size // 4, "bytes": size}


def ddp_messages(buckets: list[int], broadcast: bool = True) -> list[dict[str, Any]]:
    """The start, the first steps, and the third, in which DDP has settled."""
    model = GRADIENT_BYTES + BUFFER_BYTES
    rows = [message(0, "start", "all_gather", 8), message(0, "start", "broadcast", model)]
    for step in (1, 2, 3):
        if step == 2:
            rows.append(message(2, "forward", "broadcast", 20, "int32"))
        if broadcast:
            rows.append(message(step, "forward", "broadcast", BUFFER_BYTES))
        sent = [GRADIENT_BYTES] if step == 1 else buckets
        rows += [message(step, "backward", "all_reduce", size) for size in sent]
    return rows


def training(
    buffers: str = "broadcast",
    set_epoch: bool = True,
    seed: int = 0,
    parameters: tuple[str, ...] = ("p", "p"),
    drift: float | None = 0.01,
) -> dict[str, Any]:
    """One training, whose parameters have these checksums on the ranks."""
    of_ranks = [
        {
            "rank": rank,
            "test_loss": 1.5,
            "test_accuracy": 0.6,
            "parameters_sha256": parameters[rank],
        }
        for rank in (0, 1)
    ]
    return {
        "buffers": buffers,
        "set_epoch": set_epoch,
        "seed": seed,
        "epochs": [{"epoch": epoch} for epoch in range(EPOCHS)],
        "orders": orders(set_epoch),
        "ranks": [row | {"buffers_sha256": f"b{row['rank']}"} for row in of_ranks],
        "drift": {"variance_max": drift, "variance_mean": drift},
    }


def document(**changes: Any) -> dict[str, Any]:
    """All that the tables read of it, its top keys changed."""
    sent = {"bucket_bytes": [600, 400], "ranks_agree": True, "messages": ddp_messages([600, 400])}
    trainings = [training(set_epoch=told, seed=seed) for seed in SEEDS for told in (True, False)]
    whole = {
        "gpus": 2,
        "backend": "gloo",
        "model": {
            "parameter_bytes": GRADIENT_BYTES,
            "buffer_bytes": BUFFER_BYTES,
            "widest_norm": 8,
        },
        "permutations": [],
        "steps": [{"way": "ddp", **sent}],
        "trainings": [*trainings, training("local", drift=0.02)],
    }
    return whole | changes
