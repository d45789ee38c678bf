"""Submissions made for tests: honest ones as students print them, and single mistakes."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

IMAGES, PARAMETERS = 50_000, 11_173_962
RIGHT = {
    "speedup": "T1 / T",
    "efficiency": "100 * T1 / T / N",
    "rate": "images / T",
    "compute": "first / N",
    "communication": "moving",
    "bandwidth": "bytes * steps / moving / 1e9",
    "utilization": "bytes * steps / moving / 1e7 / peak",
}
"""Figures of N GPUs and batch size b: T, T1 are seconds of an epoch on N GPUs and on one, `first`
the one that compute is of, `moving` the communication, `bytes` those of one of `steps`, k = 4 bytes
a parameter. In a mistake `right` is the right figure."""
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
    "communication cut off at 0": ("communication", "max(0, T - first)"),
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
    "utilization a share": ("utilization", "right / 100"),
    "utilization divided by N": ("utilization", "right / N"),
}
"""The column and the formula of each."""
COLUMNS = {
    "speedup": ["Speedup", "Speed-up (x)"],
    "efficiency": ["Efficiency (%)", "parallel efficiency (%)"],
    "rate": ["images/s", "Throughput (images/s)"],
    "compute": ["Compute (s)", "compute_s"],
    "communication": ["Communication (s)", "comm_s"],
    "bandwidth": ["Bandwidth (GB/s)", "bandwidth_GB_s"],
    "utilization": ["Utilization (%)"],
}


@dataclass(frozen=True)
class Study:
    """Times by (GPUs, batch size), in seconds; with `hint` compute is of training alone."""

    gpus: tuple[int, ...]
    batches: tuple[int, ...]
    epoch: dict[tuple[int, int], float]
    training: dict[tuple[int, int], float]
    strategy: str
    peak: float
    hint: bool

    @property
    def cells(self) -> list[tuple[int, int]]:
        return [(n, b) for n in self.gpus for b in self.batches]

    def figure(self, formula: str, n: int, b: int, **more: Any) -> float:
        """The value of a formula for a cell; infinite where it divides by nothing."""
        epoch, singles = self.epoch, [self.epoch[1, size] for size in self.batches]
        first = (self.training if self.hint else epoch)[1, b]
        names = {"T": epoch[n, b], "T1": epoch[1, b], "N": n, "b": b, "first": first}
        names |= {"smallest": singles[0], "peak": self.peak, "k": 4 * PARAMETERS}
        names |= {"mean": sum(singles) / len(singles), "images": IMAGES}
        names["before"] = epoch[self.gpus[max(self.gpus.index(n) - 1, 0)], b]
        names |= {"moving": epoch[n, b] - first / n, "steps": math.ceil(IMAGES / (n * b))}
        names["bytes"] = (2 * (n - 1) / n if self.strategy == "ddp" else 2) * 4 * PARAMETERS
        try:
            return eval(formula, {"max": max, "ceil": math.ceil} | names | more)
        except ZeroDivisionError:
            return math.inf


@dataclass(frozen=True)
class Submission:
    """A file as a student hands it in: its name and text, and the planted mistake, if any."""

    name: str
    text: str
    column: str = ""
    wrong: int = 0  # printed figures that differ from the right ones


def study(rng: random.Random) -> Study:
    """A study with times as of training: a cost a step and an image, exchange, loading, noise."""
    gpus = rng.choice([(1, 2, 4), (1, 2, 4), (1, 2), (1, 2, 4, 8)])
    batches = rng.choice([(32, 128, 512), (32, 128, 512, 2048), (16, 64, 256)])
    batches += (8192,) * (gpus[-1] < 8 and 2048 in batches)
    step, image = rng.uniform(2e-3, 15e-3), rng.uniform(5e-5, 8e-4)
    exchange, loading = rng.uniform(1e-4, 1.2e-2), rng.choice([0.0, 0.02, 0.1, 0.5])
    noise, strategy = rng.uniform(0, 0.03), rng.choice(["ddp", "ddp", "dp"])
    training, epoch = {}, {}
    for n, b in ((n, b) for n in gpus for b in batches):
        of_step = step + exchange * (n > 1) * (1 + 0.3 * math.log2(n))
        pure = math.ceil(IMAGES / (n * b)) * of_step + IMAGES / n * image
        training[n, b] = pure * rng.lognormvariate(0, noise)
        epoch[n, b] = training[n, b] * (1 + loading * rng.uniform(0.9, 1.1))
    peak = rng.choice([300.0, 450.0, 900.0])
    return Study(gpus, batches, epoch, training, strategy, peak, rng.random() < 0.4)


def _rounded(value: float, digits: int, cut: bool = False) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{math.trunc(value * 10**digits) / 10**digits if cut else value:.{digits}f}"


def submission(seed: int, mistake: str = "") -> Submission:
    """A submission by its seed, honest or with one mistake; layout, digits, headers by chance."""
    rng = random.Random(f"{seed} {mistake}")
    of, (column, formula) = study(rng), MISTAKES.get(mistake, ("", ""))
    digits = {name: rng.choice([2, 2, 3]) for name in ("time", *RIGHT)}
    digits |= {"rate": rng.choice([0, 1]), "efficiency": rng.choice([0, 1, 1, 2])}
    if rng.random() < 0.5:  # derived from the printed times
        times = ({cell: round(x, digits["time"]) for cell, x in of.epoch.items()},)
        times += ({cell: round(x, digits["time"]) for cell, x in of.training.items()},)
        of = replace(of, epoch=times[0], training=times[1])
    cut = rng.random() < 0.1
    if mistake:  # Bytes of one step in an epoch's seconds have few digits else.
        few = 5 if mistake == "communication a step" else 2
        digits[column] = max(digits[column], {"bandwidth": 6, "speedup": 3}.get(column, few))

    def value(name: str, n: int, b: int) -> float:
        right = of.figure(RIGHT[name], n, b)
        return of.figure(formula, n, b, right=right) if name == column else right

    def printed(name: str, n: int, b: int) -> str:
        if name == "time":
            return _rounded(of.epoch[n, b], digits["time"])
        return _rounded(value(name, n, b), digits[name], cut)

    wrong = 0
    for n, b in [(n, b) for n, b in of.cells if mistake and n > 1]:
        right = of.figure(RIGHT[column], n, b)
        tolerance = 3 * 10.0 ** -digits[column] + 0.02 * abs(right)
        wrong += abs(value(column, n, b) - right) > tolerance
    wide = column not in ("efficiency", "rate", "utilization") and rng.random() < 0.6
    return Submission(*(_lab if wide else _tidy)(rng, of, digits, printed, column), column, wrong)


def _tidy(rng, of, digits, printed, column) -> tuple[str, str]:
    names = [name for name in COLUMNS if rng.random() < 0.5 or name == column]
    if column in ("bandwidth", "utilization"):
        names = [name for name in COLUMNS if name in (*names, "communication", "bandwidth")]
    if "communication" not in names or "bandwidth" not in names:
        names = [name for name in names if name not in ("bandwidth", "utilization")]
    heads = ["strategy", "parameters", rng.choice(["GPUs", "gpus", "#GPUs", "Number of GPUs"])]
    heads += [rng.choice(["Batch size", "batch_size", "Batch size per GPU", "bs"])]
    heads += [rng.choice(["Epoch time (s)", "Time (s)", "seconds", "Time per epoch (sec)"])]
    first = of.hint and ("compute" in names or "communication" in names) and rng.random() < 0.7
    heads += ["Training time without data loading (s)"] * first
    heads += [rng.choice(COLUMNS[name]) for name in names]
    if column == "utilization" or rng.random() < 0.5:
        peak = f"Utilization of {of.peak:g} GB/s (%)"
        heads = [head.replace("Utilization (%)", peak) for head in heads]
    rows = [heads]
    for n, b in of.cells:
        row = [of.strategy, str(PARAMETERS), str(n), str(b), printed("time", n, b)]
        row += [_rounded(of.training[n, b], digits["time"]) if n == 1 else ""] * first
        everywhere = ("speedup", "efficiency", "rate")
        rows.append(row + [printed(x, n, b) if n > 1 or x in everywhere else "" for x in names])
    if rng.random() < 0.5:
        return "table.csv", "\n".join(map(",".join, rows)) + "\n"
    return "table.md", _markdown([rows[0], ["---"] * len(heads), *rows[1:]]) + "\n"


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lab(rng, of, digits, printed, column) -> tuple[str, str]:
    """The lab's three tables, with one header row or two merged ones, in Markdown or TSV."""
    merged, tabs = rng.random() < 0.6, rng.random() < 0.3
    first = {"Time (s)": "time", "Speedup": "speedup"}
    second = {"Compute (s)": "compute", "Comm (s)": "communication"}
    blocks = [("Table 1: time and speedup", of.gpus, first)]
    blocks += [("Table 2: compute and communication", of.gpus[1:], second)]
    if column == "bandwidth" or rng.random() < 0.6:
        blocks += [("Table 3: bandwidth", of.gpus[1:], {"Bandwidth (GB/s)": "bandwidth"})]
    word = rng.choice(["b = {}", "Batch size {}", "Batch-size {} per GPU"])
    parts = [f"{of.strategy.upper()}, ResNet-18 with {PARAMETERS:,} parameters on CIFAR-10"]
    for title, gpus, columns in blocks:
        pairs = [(word.format(b), head) for b in of.batches for head in columns]
        heads = [["GPUs", *map(": ".join, pairs)]]
        if merged:
            above = [size if i % len(columns) == 0 else "" for i, (size, _) in enumerate(pairs)]
            heads = [["", *above], ["", *(head for _, head in pairs)]]
        rows = [
            [f"{n}-GPU", *(printed(x, n, b) for b in of.batches for x in columns.values())]
            for n in gpus
        ]
        if tabs:
            parts += ["\n".join([title, *map("\t".join, [*heads, *rows])])]
        else:
            parts += [title, _markdown([heads[0], ["---"] * len(heads[0]), *heads[1:], *rows])]
    return ("table.tsv" if tabs else "report.md"), "\n\n".join(parts) + "\n"
