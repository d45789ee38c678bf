"""The noise model: ratios of the flagship study, coverage of intervals, machines, verdicts."""

import math

import numpy as np
import pandas as pd
import pytest

from examples.stored import study
from scaling.tables import noise
from scaling.tables.noise import Noise, verdict

SIZES = [32, 128, 512, 2048, 8192]
FLAGSHIP = study().provenance.rename(columns={"epoch_seconds": "seconds"})
"""The flagship's runs with machine, code and median epoch."""


def of(recipe: str, strategy: str, gpus: int, sizes: list[int]) -> pd.DataFrame:
    """Return rows of configurations with these batch sizes."""
    return pd.DataFrame({"batch_size": sizes}).assign(recipe=recipe, strategy=strategy, gpus=gpus)


@pytest.mark.parametrize("strategy", ["ddp", "dp"])
def test_ratios_are_the_quotients_of_printed_times(strategy):
    model, cells = Noise(FLAGSHIP, "seconds"), [of("plain", "", 1, SIZES)]
    cells.append(of("plain", strategy, 2, SIZES))
    one, two = (model.times(each)["value"] for each in cells)
    np.testing.assert_allclose(one / two, model.ratios(*cells)["ratio"])


@pytest.mark.parametrize("moved", ["", "ddp"])
def test_equal_configurations_are_seldom_faster_or_slower(moved):
    """3,600 comparisons have the flagship's layout and noise. Of 10,008 intervals, 94.8 % contain
    1, and 94.7 % if another machine ran the first repeat of a strategy."""
    runs = FLAGSHIP.query("recipe == 'plain' and seconds > 0").copy()
    runs.loc[(runs["repeat"] == 0) & (runs["strategy"] == moved) & (moved != ""), "machine"] = "d"
    draw, verdicts = np.random.default_rng(52), []
    spread = runs["strategy"].map({"": 0.134, "ddp": 0.15, "dp": 0.10})
    for _ in range(400):
        machines = {name: draw.normal(0, 0.3) for name in runs["machine"].unique()}
        runs["seconds"] = np.exp(runs["machine"].map(machines) + draw.normal(0, spread))
        model = Noise(runs, "seconds")
        for strategy, sizes in (("ddp", SIZES), ("dp", SIZES[1:])):
            one, two = of("plain", "", 1, sizes), of("plain", strategy, 2, sizes)
            verdicts += model.ratios(one, two)["verdict"].tolist()
    wrong = len(verdicts) - verdicts.count("unclear") - verdicts.count("same")
    assert len(verdicts) == 3600 and 108 <= wrong <= 216


def test_verdict_follows_the_interval_or_counts_runs_to_decide():
    cases = (1.05, 0.01, "faster"), (0.95, 0.01, "slower"), (1.001, 0.003, "same")
    for ratio, error, expected in cases:
        assert verdict(math.log(ratio), error, 30, 3)[0] == expected
    # Of twice the runs the interval of 1.05, ± 7 % now, is ± 5 % wide, of 3 more it is less.
    assert verdict(math.log(1.05), 0.035, math.inf, 3) == ("unclear", 3)
    assert verdict(math.log(1.05), 0.035 * math.sqrt(3 / 6), math.inf, 6)[0] == "faster"
    # A difference of one deviation is significant in 7 pairs: t(5) = 2.57 > √6, t(6) = 2.45 < √7.
    assert verdict(0.05, 0.05 / math.sqrt(2), 1, 2) == ("unclear", 5)
    # Equal times are the same from 8 pairs on: t(6) = 1.94 > √7 · 0.72, t(7) = 1.89 < √8 · 0.72.
    assert verdict(0.0, math.log(1.01) / 0.72 / math.sqrt(2), 1, 2) == ("unclear", 6)


def test_nodes_that_jobs_connect_are_one_machine():
    recorded = "0123456789ab", "cd", "0123456789ab+ba9876543210"
    records = [{"environment": {"machine": name}} for name in recorded]
    noise.name_machines(records)
    *named, last = (one["environment"]["machine"] for one in records)
    assert [last, *named] == [last, last, "cd"] and last == "0123456789ab+ba9876543210"
    assert noise.scope(3, {named[0]}, unknown=False) == "3 runs, 2 nodes"
    assert noise.scope(1, {named[0]}, unknown=True) == "1 run, 2 nodes: no interval"
