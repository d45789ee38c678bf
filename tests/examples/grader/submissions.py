"""Honest submissions made by a seed, of every definition we accept."""

import math
from dataclasses import dataclass, field

import numpy as np

from examples.grader.published_study import HEADER, TRAIN_IMAGES

CIFAR, IMAGENET = 11_173_962, 11_689_512
COLUMNS = HEADER.split(",")
Key = tuple[int, int]
FIGURES = {
    "speedup": "printed_speedup",
    "compute": "printed_compute_seconds",
    "communication": "printed_communication_seconds",
    "bandwidth": "printed_bandwidth_gb_per_s",
    "utilization": "printed_utilization_percent",
}


@dataclass
class Submission:
    """Rows by (gpus, batch size) as texts, the values before they were rounded, and the digits."""

    rows: dict[Key, dict[str, str]]
    values: dict[Key, dict[str, float]]
    digits: dict[str, int]
    peaks: dict[int, float] = field(default_factory=dict)
    """GB/s for each number of GPUs, where the submission states them."""

    @property
    def text(self) -> str:
        lines = [",".join(row[column] for column in COLUMNS) for row in self.rows.values()]
        return "\n".join([HEADER, *lines]) + "\n"

    def put(self, key: Key, quantity: str, value: float) -> None:
        """Print another figure, with the digits of its column."""
        self.rows[key][FIGURES[quantity]] = f"{value:.{self.digits[quantity]}f}"


def honest(seed: int, plain: bool = False, noisy: bool = False) -> Submission:
    """A submission without an error; a `plain` one has every cell, and digits for any mistake.

    A `noisy` one has times that differ by up to 4 % and now and then by 8 % more, hardly any
    communication, so that some are faster than N times one GPU, and states its peaks.

    Figures are derived before or after rounding, each from the times or from the figure before.
    """
    rng = np.random.default_rng(seed)

    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    strategy, imagenet = ("dp", "ddp")[rng.integers(2)], chance(0.3)
    parameters = IMAGENET if imagenet else CIFAR
    stated = "" if not plain and chance(0.15) else str(parameters)
    gpus = [1, 2, 4] if plain else [1, *sorted(rng.choice([2, 3, 4, 8], rng.integers(1, 4), False))]
    batches = sorted(rng.choice([32, 64, 128, 256, 512, 1024, 2048], 3 + rng.integers(3), False))
    decimals = 3 if plain else int(rng.integers(1, 4))
    few = rng.integers(1, 5, len(FIGURES)).tolist()
    digits = dict.fromkeys(FIGURES, 4) if plain else dict(zip(FIGURES, few, strict=True))
    digits["utilization"] = 2 + plain
    # The times that figures are of: whole, or without loading.
    ratio, part = (not chance(share) for share in (0.7, 0.5))
    ring = strategy == "ddp" or chance(0.5)
    early, chained = chance(0.5), chance(0.5)
    per_step, base = rng.uniform(0.002, 0.02) * (0.1 if noisy else 1), rng.uniform(8, 60)
    peaks = dict.fromkeys(gpus, 1.0) if chance(0.5) else {n: rng.uniform(1, 2) for n in gpus}
    fastest = IMAGENET * 8 / per_step / 1e9 * rng.uniform(1.6, 8)
    count = int(rng.integers(2, 6)) if chance(0.5) else 1 if chance(0.5) else 0
    times: dict[Key, tuple[float, float]] = {}
    for b in map(int, batches):
        work, loading = base * (1 + rng.uniform(0, 8) / b), rng.uniform(0.3, 3)
        for n in map(int, gpus):
            steps = math.ceil(TRAIN_IMAGES / (n * b))
            moved = 0.0 if n == 1 else steps * per_step * rng.uniform(0.7, 1.3)
            without = work / n + moved
            times[n, b] = without + loading / n * (1 if n == 1 else rng.uniform(1, 1.3)), without
    if noisy:
        sigma = rng.uniform(0, 0.04)
        for key, pair in times.items():
            slow = (1 + rng.uniform(0, 0.08) * chance(0.05)) * math.exp(rng.normal(0, sigma))
            times[key] = pair[0] * slow, pair[1] * slow
        fastest = min(450.0, fastest * math.exp(rng.uniform(0, 6)))
    if early:
        times = {key: (round(t, decimals), round(w, decimals)) for key, (t, w) in times.items()}
    separate = plain or chance(0.8) or ratio or part
    made = Submission({}, {}, digits)
    if noisy and chance(0.7):
        made.peaks = {int(n): fastest * peak for n, peak in peaks.items()}
    for (n, b), (seconds, without) in times.items():
        if not plain and (n, b) != (1, int(batches[0])) and chance(0.05):
            continue
        row = dict.fromkeys(COLUMNS, "") | {"study": "one", "strategy": strategy, "status": "ok"}
        row |= {"model": "resnet18-imagenet" if imagenet else "resnet18-cifar"}
        row |= {"gpus": str(n), "batch_size": str(b), "parameters": stated}
        made.rows[n, b] = row
        if not plain and n > 1 and chance(0.05):
            row["status"] = "oom"
            continue
        row["epoch_seconds"] = f"{seconds:.{decimals}f}"
        if separate:
            row["epoch_seconds_without_loading"] = f"{without:.{decimals}f}"
        if count:
            row["count"] = str(count)
            wide = rng.uniform(0, 0.03) * seconds if count > 1 else 0
            row["epoch_seconds_min"] = f"{seconds - wide:.{decimals}f}"
            row["epoch_seconds_max"] = f"{seconds + wide:.{decimals}f}"
        if n == 1 or (1, b) not in made.rows or not made.rows[1, b]["epoch_seconds"]:
            if n == 1:
                made.values[n, b] = {"seconds": seconds, "without": without}
                row["printed_speedup"] = "1" if chance(0.5) else ""
            continue
        own, single, sent = times[n, b][part], times[1, b][part], 2 * (n - 1) / n if ring else 2
        compute, communication = single / n, own - single / n
        said = round(communication, digits["communication"]) if chained else communication
        moved = 4 * parameters * sent * math.ceil(TRAIN_IMAGES / (n * b))
        bandwidth = moved / said / 1e9 if said > 1e-6 else math.nan
        rate = round(bandwidth, digits["bandwidth"]) if chained else bandwidth
        figures = [times[1, b][ratio] / times[n, b][ratio], compute, communication, bandwidth]
        figures.append(100 * rate / (fastest * peaks[n]))
        made.values[n, b] = {
            **dict(zip(FIGURES, figures, strict=True)),
            **{"seconds": seconds, "without": without, "waited": seconds - times[1, b][1] / n},
            **{"own": own, "own single": single, "sent": sent},
        }
        for name, value in made.values[n, b].items():
            if name in FIGURES and math.isfinite(value) and (plain or chance(0.97)):
                made.put((n, b), name, value)
    return made
