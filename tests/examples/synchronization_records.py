"""A synchronization.json made by hand: two ranks, 100 images, K = 1,000 B, buffers of 40 B."""

from typing import Any

IMAGES = 100
GRADIENT_BYTES = 1000
BUFFER_BYTES = 40
EPOCHS = 3
SEEDS = [0, 1, 2]


def orders(told: bool, ranks: int = 2, **changes: Any) -> list[dict[str, Any]]:
    """Rows of `shards.describe` for each epoch, new ones each time where the sampler is `told`."""
    row = {"samples": IMAGES // ranks, "unseen": 0, "repeated": 0}
    row["overlap"] = 0 if ranks > 1 else None
    return [
        {
            "epoch": epoch,
            "rank": rank,
            **row,
            "order_sha256": f"{rank}{epoch if told else 0}",
            **changes,
        }
        for epoch in range(EPOCHS)
        for rank in range(ranks)
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


def sync_batch_norm_messages() -> list[dict[str, Any]]:
    """Two batch norms: statistics go round in both passes, among the gradients."""
    rows = []
    for step in (1, 2, 3):
        rows += [message(step, "forward", "all_gather", 36)] * 2
        rows += [message(step, "backward", "all_reduce", size) for size in (32, 700, 32, 300)]
    return rows


def dp_messages() -> list[dict[str, Any]]:
    """One step of DataParallel: everything passes through GPU 0."""
    rows = []
    for step in (1, 2, 3):
        rows += [
            message(step, "forward", "scatter", 5000),
            message(step, "forward", "broadcast", GRADIENT_BYTES),
            message(step, "forward", "broadcast", BUFFER_BYTES),
            message(step, "forward", "gather", 80),
            message(step, "backward", "scatter", 80),
            message(step, "backward", "reduce", GRADIENT_BYTES),
        ]
    return rows


def sharded_messages() -> list[dict[str, Any]]:
    """Each rank's half goes to the other for either pass; all gradients are summed in halves."""
    half = GRADIENT_BYTES // 2
    return [
        row
        for step in (1, 2, 3)
        for row in (
            message(step, "forward", "all_gather", half),
            message(step, "backward", "all_gather", half),
            message(step, "backward", "reduce_scatter", GRADIENT_BYTES),
        )
    ]


def steps(on_gpus: bool = False) -> list[dict[str, Any]]:
    """The messages of every way to train that the machine can run."""
    buckets = [600, 400]
    ways = {
        "ddp": ddp_messages(buckets),
        "ddp, buffers local": ddp_messages(buckets, broadcast=False),
        "tuned": [message(step, "backward", "all_reduce", 512) for step in (1, 2, 3)] * 2,
        "fsdp": sharded_messages(),
        "zero1": [
            *ddp_messages(buckets),
            *(message(3, "update", "broadcast", GRADIENT_BYTES // 2) for _ in range(2)),
        ],
    }
    if on_gpus:
        ways["ddp, SyncBatchNorm"] = sync_batch_norm_messages()
        ways["dp"] = dp_messages()
    return [
        {"way": way, "bucket_bytes": buckets, "ranks_agree": True, "messages": messages}
        for way, messages in ways.items()
    ]


def training(
    buffers: str = "broadcast",
    set_epoch: bool = True,
    seed: int = 0,
    parameters: tuple[str, ...] = ("p", "p"),
    statistics: tuple[str, ...] = ("b0", "b1"),
    drift: float = 0.01,
) -> dict[str, Any]:
    """One training; rank 1 takes 10 % longer for each epoch."""
    return {
        "buffers": buffers,
        "set_epoch": set_epoch,
        "seed": seed,
        "epochs": [
            {
                "epoch": epoch,
                "rank": rank,
                "seconds": length * (1 + rank / 10),
                "samples": IMAGES // 2,
                "train_loss": 1.0 + rank,
                "train_accuracy": 0.5,
            }
            for epoch, length in enumerate((9.0, 1.0, 1.2))
            for rank in (0, 1)
        ],
        "orders": orders(set_epoch),
        "ranks": [
            {
                "rank": rank,
                "test_loss": 1.5,
                "test_accuracy": 0.6 + rank / 100,
                "parameters_sha256": parameters[rank],
                "buffers_sha256": statistics[rank],
            }
            for rank in (0, 1)
        ],
        "drift": {"variance_max": drift, "variance_mean": drift},
    }


def trainings(on_gpus: bool = False) -> list[dict[str, Any]]:
    """With and without set_epoch for three seeds, one with local buffers, one synchronized."""
    found = [training(set_epoch=told, seed=seed) for seed in SEEDS for told in (True, False)]
    found.append(training("local", drift=0.02))
    if on_gpus:
        same = ("s", "s")
        found.append(training("sync_batch_norm", parameters=same, statistics=same, drift=0.0))
    return found


def document(on_gpus: bool = False, **changes: Any) -> dict[str, Any]:
    """All of it, its top keys changed."""
    drawn = [
        {"sampler": "DistributedSampler", "gpus": 2, "seed": 0, "set_epoch": told}
        | {"orders": orders(told)}
        for told in (True, False)
    ]
    drawn.append({"sampler": "RandomSampler", "gpus": 1, "seed": 0, "set_epoch": False})
    drawn[-1]["orders"] = orders(True, ranks=1)
    whole = {
        "gpus": 2,
        "device": "cuda" if on_gpus else "cpu",
        "backend": "nccl" if on_gpus else "gloo",
        "train_images": IMAGES,
        "parameters": {"batch_size": 10, "model_width": 1},
        "model": {
            "parameter_bytes": GRADIENT_BYTES,
            "buffer_bytes": BUFFER_BYTES,
            "widest_norm": 8,
        },
        "permutations": drawn,
        "steps": steps(on_gpus),
        "trainings": trainings(on_gpus),
        "environment": {},
    }
    return whole | changes
