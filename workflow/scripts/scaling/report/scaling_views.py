"""Strong or weak? The sentence that resolves it, with the cell that shows it."""

import math
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.finding import Finding, source


def strong_or_weak(cells: pd.DataFrame) -> Finding:
    """What the three views say of one cell; `cells` are the speedups of one recipe and strategy.

    The cell is one on the most GPUs that have a speedup: that whose fixed-global-batch speedup
    differs most from its strong one; without any T(1, N·b), that of the largest batch.
    """
    known = cells[(cells["gpus"] > 1) & cells["speedup"].notna()]
    if known.empty:
        return Finding(
            "Strong or weak cannot be said: no cell on several GPUs has both its own time and "
            "that of one GPU at the same batch size per GPU.",
            "speedup.csv",
            supported=False,
        )
    most = known[known["gpus"] == known["gpus"].max()]
    gap = (most["speedup"] / most["fixed_global_batch_speedup"]).map(math.log).abs()
    chosen = gap.idxmax() if gap.notna().any() else most["batch_size"].idxmax()
    cell = next(most.loc[[chosen]].itertuples())
    return Finding(f"{_one_measurement(cell)} {_other_training(cell)}", source("speedup", cell))


def _one_measurement(cell: Any) -> str:
    b, gpus = int(cell.batch_size), int(cell.gpus)
    sentence = (
        f"Both words name one measurement. With b\u00a0=\u00a0{b} on each of {gpus} GPUs an epoch "
        f"is {fmt.times(cell.speedup)} as fast as on one (“strong”: the training set is the same)"
    )
    if math.isnan(cell.weak_speedup):
        return f"{sentence}; the number of steps, which the weak view needs, is unknown."
    return (
        f"{sentence}, and a step on {gpus} times the images takes "
        f"{fmt.times(1 / cell.weak_efficiency)} as long, so {fmt.times(cell.weak_speedup)} the "
        f"images per second (“weak”: the batch per GPU is the same). N GPUs take N times fewer "
        "steps, so only a partial last batch can tell the two apart."
    )


def _other_training(cell: Any) -> str:
    whole = int(cell.gpus) * int(cell.batch_size)
    if math.isnan(cell.fixed_global_batch_speedup):
        return (
            f"Neither compares the same training, as the global batch grew to {whole}; with that "
            f"held fixed nothing can be said, since T(1,\u00a0{whole}) is not there."
        )
    return (
        f"Neither compares the same training, as the global batch grew to {whole}: against one "
        f"GPU with that batch, T(1,\u00a0{whole}), the speedup is "
        f"{fmt.times(cell.fixed_global_batch_speedup)}, an efficiency of "
        f"{fmt.percent(cell.fixed_global_batch_efficiency)} instead of "
        f"{fmt.percent(cell.efficiency)}."
    )
