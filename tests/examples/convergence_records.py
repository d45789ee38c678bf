"""Records of remedies, made by hand: a few lines say what every run came to."""

from typing import Any

from scaling.core.records.run import TechniqueRecord
from scaling.core.training_options import LargeBatches, Sgd
from scaling.registry.update_rule import Technique, gpus_of

OPTIONS = LargeBatches(epochs=2, factors=[0.25, 1.0])
TRAINING = {**Sgd().model_dump(), **OPTIONS.model_dump(), "precision": "bf16"}
MARGIN = 0.02


def run(
    accuracy: float | None, seed: int = 0, factor: float = 1.0, epochs: int = 2, **more: Any
) -> dict[str, Any]:
    """A run of so many epochs of 5 updates each that ends with this test accuracy.

    Before the last epoch it was 0.2 lower; training accuracy is 0.1 higher. None: the loss was not
    finite.
    """
    failed = accuracy is None
    value = 0.1 if accuracy is None else accuracy
    rows = [
        {
            "epoch": epoch,
            "updates": 5 * epoch,
            "train_loss": None if failed else 2 - value + lag,
            "train_accuracy": None if failed else value + 0.1 - lag,
            "test_loss": None if failed else 3 - value + lag,
            "test_accuracy": None if failed else value - lag,
        }
        for epoch, lag in enumerate([0.2] * (epochs - 1) + [0.0], start=1)
    ]
    return {
        "seed": seed,
        "factor": factor,
        "held_out": False,
        "chosen": True,
        "updates": 5 * epochs,
        "planned_epochs": epochs,
        "planned_updates": 5 * epochs,
        "diverged": "not finite" if failed else "",
        "epochs": rows,
        "seconds": 1.0,
        **more,
    }


def record(
    remedy: str,
    global_batch: int,
    runs: list[dict[str, Any]],
    at_edge: bool = False,
    **options: Any,
) -> TechniqueRecord:
    """The record of a remedy with these options and runs."""
    chosen = Technique.of(options)
    rate = chosen.rate(TRAINING["learning_rate"], global_batch / OPTIONS.reference_batch)
    result = {
        "gpus": gpus_of(global_batch, OPTIONS.reference_batch, OPTIONS.gpus),
        "chosen_factor": 1.0,
        "at_edge": at_edge,
        "runs": [{"learning_rate": rate * each["factor"], **each} for each in runs],
    }
    return TechniqueRecord(
        remedy=remedy,
        global_batch=global_batch,
        options=chosen.model_dump(),
        status="ok",
        message=None,
        training=TRAINING,
        dataset={"source": "digits", "checksum": "fae71f", "train_images": 640, "test_images": 100},
        result=result,
        environment={},
    )


def seeds(*accuracies: float | None, **more: Any) -> list[dict[str, Any]]:
    """A run of each accuracy, seed after seed."""
    return [run(accuracy, seed, **more) for seed, accuracy in enumerate(accuracies)]


def swept(
    *accuracies: float | None, held_out: float | None = None, **more: Any
) -> list[dict[str, Any]]:
    """A sweep of three rates of which the middle one was chosen, and that one's seeds.

    On held-out images the chosen rate reaches the first seed's accuracy, or `held_out`.
    """
    first = accuracies[0] if held_out is None else held_out
    tried = [run(one, factor=at, chosen=False, **more) for one, at in [(0.1, 0.25), (0.1, 4.0)]]
    sweep = run(first, chosen=False, **more) | {"held_out": True}
    sweep["epochs"] = [
        {key.replace("test", "validation"): value for key, value in row.items()}
        | {"test_loss": None, "test_accuracy": None}
        for row in sweep["epochs"]
    ]
    return [*tried, sweep, *seeds(*accuracies, **more)]


def study() -> list[TechniqueRecord]:
    """Two rules at their word, swept plain SGD, warm-up and Nesterov; at 128, 512 and 8192."""
    naive = {"scaling": "linear", "factors": [1]}
    root, warm = {"scaling": "sqrt"}, {"scaling": "sqrt", "warmup_epochs": 1}
    equal = {"scaling": "sqrt", "nesterov": True}
    tried: list[tuple[str, dict[str, Any], Any, tuple[float, ...]]] = [
        ("none", {"factors": [1]}, seeds, (0.70, 0.50, 0.20)),
        ("naive", naive, seeds, (0.70, 0.55)),
        ("rate_sweep", root, swept, (0.70, 0.60, 0.40)),
        ("warmup", warm, swept, (0.72, 0.64, 0.44)),
        ("equal", equal, swept, (0.70,)),
    ]
    return [
        *(
            record(name, batch, made(*(first + n / 100 for n in range(3))), **options)
            for name, options, made, accuracies in tried
            for batch, first in zip((128, 512, 8192), accuracies, strict=False)
        ),
        record("naive", 8192, seeds(*[0.10] * 3, diverged="at chance"), **naive),
        record("equal", 512, swept(0.74, 0.75, 0.76, epochs=4), **equal),
        record("equal", 8192, swept(0.50, 0.51, 0.52, epochs=4, planned_updates=8), **equal),
    ]
