"""Submissions for tests, correct or with one mistake, and how often an audit is right."""

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from examples.grader.published_study import TRAIN_IMAGES as IMAGES
from grader.judge import Finding, judge
from grader.study import read_folder

PARAMETERS = 11_173_962
UNNAMED = {"unexplained", "nearly"}
RIGHT = {
    "speedup": "T1 / T",
    "efficiency": "100 * T1 / T / N",
    "rate": "images / T",
    "compute": "first / N",
    "communication": "moving",
    "bandwidth": "bytes * steps / moving / 1e9",
}
"""Formulas of the values for N GPUs and batch size b. T and T1 are seconds of an epoch on N GPUs
and on one; `first` is the time that compute is part of, `moving` that of communication; `bytes` are
sent in each of `steps`; k is 4 bytes per parameter. In `MISTAKES`, `right` is the right value."""
MISTAKES = {
    "speedup upside down": ("speedup", "T / T1"),
    "speedup of the first batch": ("speedup", "smallest / T"),
    "speedup of the mean": ("speedup", "mean / T"),
    "speedup of the GPUs before": ("speedup", "before / T"),
    "speedup times N": ("speedup", "right * N"),
    "speedup divided by N": ("speedup", "right / N"),
    "speedup saved": ("speedup", "1 - T / T1"),
    "efficiency not divided": ("efficiency", "right * N"),
    "efficiency upside down": ("efficiency", "100 * T / T1 / N"),
    "rate times N": ("rate", "right * N"),
    "rate of 60,000": ("rate", "right * 1.2"),
    "rate in batches": ("rate", "steps / T"),
    "compute not divided": ("compute", "right * N"),
    "compute divided twice": ("compute", "right / N"),
    "compute of N GPUs divided": ("compute", "T / N"),
    "compute a third": ("compute", "right / 3"),
    "compute is the epoch": ("compute", "T"),
    "communication of T1 not divided": ("communication", "T - first"),
    "communication cut off at 0": ("communication", "maximum(0, T - first)"),
    "communication upside down": ("communication", "-right"),
    "communication a step": ("communication", "right / steps"),
    "communication is the epoch": ("communication", "T"),
    "bandwidth of one step": ("bandwidth", "right / steps"),
    "bandwidth 2(N-1)": ("bandwidth", "right * 2 * (N - 1) * k / bytes"),
    "bandwidth (N-1)/N": ("bandwidth", "right * (N - 1) / N * k / bytes"),
    "bandwidth N K": ("bandwidth", "right * N * k / bytes"),
    "bandwidth of the epoch": ("bandwidth", "right * moving / T"),
    "bandwidth in Gbit": ("bandwidth", "right * 8"),
    "bandwidth in GiB": ("bandwidth", "right * 1e9 / 2**30"),
    "bandwidth of parameters": ("bandwidth", "right / 4"),
    "bandwidth, steps of one GPU": ("bandwidth", "right * ceil(images / b) / steps"),
}
"""Column and formula of each mistake."""
COLUMNS = {
    "speedup": ["Speedup", "Speed-up (x)"],
    "efficiency": ["Efficiency (%)", "parallel efficiency (%)"],
    "rate": ["images/s", "Throughput (images/s)"],
    "compute": ["Compute (s)", "compute_s"],
    "communication": ["Communication (s)", "comm_s"],
    "bandwidth": ["Bandwidth (GB/s)", "bandwidth_GB_s"],
}


@dataclass(frozen=True)
class Submission:
    """A file as a student submits it (name and text), and the planted mistake, if any."""

    name: str
    text: str
    column: str = ""
    wrong: int = 0  # printed figures that differ from the right ones


def study(rng: random.Random, digits: int) -> dict[str, Any]:
    """Return the names in formulas: times that follow from random costs, loading and noise."""
    gpus = rng.choice([(1, 2, 4), (1, 2, 4), (1, 2), (1, 2, 4, 8)])
    batches = rng.choice([(32, 128, 512), (32, 128, 512, 2048), (16, 64, 256)])
    batches += (8192,) * (gpus[-1] < 8 and 2048 in batches)
    step, image = rng.uniform(2e-3, 15e-3), rng.uniform(5e-5, 8e-4)
    exchange, loading = rng.uniform(1e-4, 1.2e-2), rng.choice([0.0, 0.02, 0.1, 0.5])
    noise, strategy = rng.uniform(0, 0.03), rng.choice(["ddp", "ddp", "dp"])
    of = pd.DataFrame(product(gpus, batches), columns=["N", "b"])
    n, of["steps"] = of["N"], np.ceil(IMAGES / (of["N"] * of["b"]))
    pure = of["steps"] * (step + exchange * (n > 1) * (1 + 0.3 * np.log2(n))) + IMAGES / n * image
    of["training"] = pure * [rng.lognormvariate(0, noise) for _ in n]
    of["T"] = of["training"] * [1 + loading * rng.uniform(0.9, 1.1) for _ in n]
    if rng.random() < 0.5:  # derived from the printed times
        of = of.round({"T": digits, "training": digits})
    single, hint = of[n == 1].set_index("b"), rng.random() < 0.4
    of["T1"], of["first"] = (of["b"].map(single[x]) for x in ("T", "training" if hint else "T"))
    of["before"] = of["T"].shift(len(batches)).fillna(of["T1"])
    of["moving"] = of["T"] - of["first"] / n
    of["bytes"] = (2 * (n - 1) / n if strategy == "ddp" else 2) * 4 * PARAMETERS
    about = {"strategy": strategy, "hint": hint, "k": 4 * PARAMETERS}
    about |= {"smallest": single["T"].iloc[0], "mean": single["T"].mean(), "images": IMAGES}
    return {**of, **about, "maximum": np.maximum, "ceil": np.ceil}


def submission(seed: int, mistake: str = "") -> Submission:
    """Return a seed's submission, correct or with one mistake. Layout and headers are random."""
    rng, (column, formula) = random.Random(f"{seed} {mistake}"), MISTAKES.get(mistake, ("", ""))
    digits = {name: rng.choice([2, 2, 3]) for name in ("T", "training", *RIGHT)}
    digits |= {"rate": rng.choice([0, 1]), "efficiency": rng.choice([0, 1, 1, 2])}
    of, cut, wrong = study(rng, digits["T"]), rng.random() < 0.1, 0
    with np.errstate(all="ignore"):
        of |= {name: eval(right, of) for name, right in RIGHT.items()}
    if mistake:  # Bytes of one step in an epoch's seconds have few digits else.
        few = 5 if mistake == "communication a step" else 2
        digits[column] = max(digits[column], {"bandwidth": 6, "speedup": 3}.get(column, few))
        planted, right = eval(formula, of | {"right": of[column]}), of[column]
        tolerance = 3 * 10.0 ** -digits[column] + 0.02 * right.abs()
        wrong = int(((planted - right).abs() > tolerance)[of["N"] > 1].sum())
        of[column] = planted
    texts = pd.DataFrame({"N": of["N"], "b": of["b"]})
    for name, number in digits.items():
        shown = of[name].replace([np.inf, -np.inf], np.nan)
        if cut and name in RIGHT:
            shown = np.trunc(shown * 10**number) / 10**number
        texts[name] = [f"{value:.{number}f}".replace("nan", "-") for value in shown]
    wide = column not in ("efficiency", "rate") and rng.random() < 0.6
    return Submission(*(_lab if wide else _tidy)(rng, of, texts, column), column, wrong)


def _tidy(rng: random.Random, of: Any, texts: pd.DataFrame, column: str) -> tuple[str, str]:
    names = [name for name in COLUMNS if rng.random() < 0.5 or name == column]
    if "bandwidth" in names and "communication" not in names:
        names = [name for name in COLUMNS if name in (*names, "communication")]
    heads = {"N": rng.choice(["GPUs", "gpus", "#GPUs", "Number of GPUs"])}
    heads["b"] = rng.choice(["Batch size", "batch_size", "Batch size per GPU", "bs"])
    heads["T"] = rng.choice(["Epoch time (s)", "Time (s)", "seconds", "Time per epoch (sec)"])
    if of["hint"] and {"compute", "communication"} & {*names} and rng.random() < 0.7:
        heads["training"] = "Training time without data loading (s)"
    heads |= {name: rng.choice(COLUMNS[name]) for name in names}
    table = texts[[*heads]].astype(str)
    table.loc[of["N"] > 1, table.columns == "training"] = ""
    parts = table.columns.isin(["compute", "communication", "bandwidth"])
    table.loc[of["N"] == 1, parts] = ""
    table = table.rename(columns=heads)
    table.insert(0, "parameters", str(PARAMETERS))
    table.insert(0, "strategy", of["strategy"])
    if rng.random() < 0.5:
        return "table.csv", table.to_csv(index=False)
    return "table.md", _markdown([[*table], ["---"] * table.shape[1], *table.to_numpy()]) + "\n"


def _markdown(lines: list[Any]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lab(rng: random.Random, of: Any, texts: pd.DataFrame, column: str) -> tuple[str, str]:
    """Return the lab's three tables as Markdown or TSV, with one header row or two merged ones."""
    merged, tabs = rng.random() < 0.6, rng.random() < 0.3
    first = {"T": "Time (s)", "speedup": "Speedup"}
    second = {"compute": "Compute (s)", "communication": "Comm (s)"}
    blocks = [("Table 1: time and speedup", 1, first), ("Table 2: parts", 2, second)]
    if column == "bandwidth" or rng.random() < 0.6:
        blocks += [("Table 3: bandwidth", 2, {"bandwidth": "Bandwidth (GB/s)"})]
    word = rng.choice(["b = {}", "Batch size {}", "Batch-size {} per GPU"])
    parts = [f"{of['strategy'].upper()}, ResNet-18 with {PARAMETERS:,} parameters on CIFAR-10"]
    for title, least, columns in blocks:
        wide = texts[of["N"] >= least].pivot(index="N", columns="b", values=[*columns])
        wide = wide.sort_index(axis=1, level="b", sort_remaining=False)
        pairs = [(word.format(b), columns[name]) for name, b in wide]
        heads = [["GPUs", *map(": ".join, pairs)]]
        if merged:
            above = [size if i % len(columns) == 0 else "" for i, (size, _) in enumerate(pairs)]
            heads = [["", *above], ["", *(head for _, head in pairs)]]
        rows = [[f"{n}-GPU", *row] for n, row in zip(wide.index, wide.to_numpy(), strict=True)]
        if tabs:
            parts += ["\n".join([title, *map("\t".join, [*heads, *rows])])]
        else:
            parts += [title, _markdown([heads[0], ["---"] * len(heads[0]), *heads[1:], *rows])]
    return ("table.tsv" if tabs else "report.md"), "\n\n".join(parts) + "\n"


def judged(submitted: Submission) -> list[Finding]:
    """Return the findings on a submission, without remarks."""
    with TemporaryDirectory() as name:
        path = Path(name) / submitted.name
        path.write_text(submitted.text, encoding="utf-8")
        studies = read_folder(path)
    findings = [one for each in studies for one in judge(each, IMAGES).findings]
    return [one for one in findings if one.severity != "remark"]


def blamed(seeds: Iterable[int]) -> dict[int, set[str]]:
    """Return the severities of findings on correct submissions, by seed, if there are any."""
    each = ((seed, {one.severity for one in judged(submission(seed))}) for seed in seeds)
    return {seed: severities for seed, severities in each if severities}


def rates(seeds: Iterable[int], mistakes: Iterable[str] = MISTAKES) -> list[int]:
    """Return the numbers of planted mistakes, of found ones, and of those named by the first cause.

    A mistake that changes fewer than three values does not count.
    """
    counts = [0, 0, 0]
    for planted in (submission(seed, mistake) for mistake in mistakes for seed in seeds):
        if planted.wrong > 2:
            findings = judged(planted)
            here = [one for one in findings if one.quantity == planted.column]
            named = bool(here) and here[0].cause not in UNNAMED
            counts = [n + one for n, one in zip(counts, (1, bool(findings), named), strict=True)]
    return counts


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"of {number:,} honest submissions these have a finding: {blamed(range(number))}")
    print("of {} with one mistake {} were found and {} named".format(*rates(range(12))))
