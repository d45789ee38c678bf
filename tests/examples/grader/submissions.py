"""Submissions made for tests: honest ones as students print them, and single mistakes."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from examples.grader.published_study import HEADER

IMAGES, PARAMETERS = 50_000, 11_173_962
Key = tuple[int, int]


@dataclass(frozen=True)
class Study:
    """Times of one study by (GPUs, batch size), in seconds, and what is derived from them."""

    gpus: tuple[int, ...]
    batches: tuple[int, ...]
    epoch: dict[Key, float]
    training: dict[Key, float]
    strategy: str
    peak: float
    hint: bool  # compute from the training time on one GPU, the lab's hint

    def first(self, b: int) -> float:
        return (self.training if self.hint else self.epoch)[1, b]

    def steps(self, n: int, b: int) -> int:
        return math.ceil(IMAGES / (n * b))

    def compute(self, n: int, b: int) -> float:
        return self.first(b) / n

    def communication(self, n: int, b: int) -> float:
        return self.epoch[n, b] - self.compute(n, b)

    def bytes(self, n: int) -> float:
        return (2 * (n - 1) / n if self.strategy == "ddp" else 2) * 4 * PARAMETERS

    def bandwidth(self, n: int, b: int) -> float:
        seconds = self.communication(n, b)
        return self.bytes(n) * self.steps(n, b) / seconds / 1e9 if seconds else math.inf


Formula = Callable[[Study, int, int], float]
RIGHT: dict[str, Formula] = {
    "speedup": lambda s, n, b: s.epoch[1, b] / s.epoch[n, b],
    "efficiency": lambda s, n, b: 100 * s.epoch[1, b] / s.epoch[n, b] / n,
    "rate": lambda s, n, b: IMAGES / s.epoch[n, b],
    "compute": lambda s, n, b: s.compute(n, b),
    "communication": lambda s, n, b: s.communication(n, b),
    "bandwidth": lambda s, n, b: s.bandwidth(n, b),
    "utilization": lambda s, n, b: 100 * s.bandwidth(n, b) / s.peak,
}


def _mean(s: Study) -> float:
    return sum(s.epoch[1, b] for b in s.batches) / len(s.batches)


def _scaled(column: str, factor: Callable[[Study, int, int], float]) -> tuple[str, Formula]:
    return column, lambda s, n, b: RIGHT[column](s, n, b) * factor(s, n, b)


MISTAKES: dict[str, tuple[str, Formula]] = {
    "speedup upside down": ("speedup", lambda s, n, b: s.epoch[n, b] / s.epoch[1, b]),
    "speedup of the first batch": (
        "speedup",
        lambda s, n, b: s.epoch[1, s.batches[0]] / s.epoch[n, b],
    ),
    "speedup of the largest batch": (
        "speedup",
        lambda s, n, b: s.epoch[1, s.batches[-1]] / s.epoch[n, b],
    ),
    "speedup of the mean": ("speedup", lambda s, n, b: _mean(s) / s.epoch[n, b]),
    "speedup of the GPUs before": (
        "speedup",
        lambda s, n, b: s.epoch[s.gpus[max(s.gpus.index(n) - 1, 0)], b] / s.epoch[n, b],
    ),
    "speedup times N": _scaled("speedup", lambda s, n, b: n),
    "speedup divided by N": _scaled("speedup", lambda s, n, b: 1 / n),
    "speedup saved": ("speedup", lambda s, n, b: 1 - s.epoch[n, b] / s.epoch[1, b]),
    "efficiency not divided": _scaled("efficiency", lambda s, n, b: n),
    "efficiency by N squared": _scaled("efficiency", lambda s, n, b: 1 / n),
    "efficiency upside down": (
        "efficiency",
        lambda s, n, b: 100 * s.epoch[n, b] / s.epoch[1, b] / n,
    ),
    "rate times N": _scaled("rate", lambda s, n, b: n),
    "rate divided by N": _scaled("rate", lambda s, n, b: 1 / n),
    "rate of 60,000": _scaled("rate", lambda s, n, b: 1.2),
    "rate in batches": _scaled("rate", lambda s, n, b: s.steps(n, b) / IMAGES),
    "compute not divided": _scaled("compute", lambda s, n, b: n),
    "compute divided twice": _scaled("compute", lambda s, n, b: 1 / n),
    "compute of N GPUs divided": ("compute", lambda s, n, b: s.epoch[n, b] / n),
    "compute of the first batch": ("compute", lambda s, n, b: s.epoch[1, s.batches[0]] / n),
    "compute a third": _scaled("compute", lambda s, n, b: 1 / 3),
    "compute is the epoch": ("compute", lambda s, n, b: s.epoch[n, b]),
    "communication of T1 not divided": (
        "communication",
        lambda s, n, b: s.epoch[n, b] - s.first(b),
    ),
    "communication cut off at 0": (
        "communication",
        lambda s, n, b: max(0.0, s.epoch[n, b] - s.first(b)),
    ),
    "communication is a gain": ("communication", lambda s, n, b: s.first(b) - s.epoch[n, b]),
    "communication upside down": _scaled("communication", lambda s, n, b: -1),
    "communication a step": _scaled("communication", lambda s, n, b: 1 / s.steps(n, b)),
    "communication is the epoch": ("communication", lambda s, n, b: s.epoch[n, b]),
    "communication times N": _scaled("communication", lambda s, n, b: n),
    "bandwidth of one step": _scaled("bandwidth", lambda s, n, b: 1 / s.steps(n, b)),
    "bandwidth 2(N-1)": _scaled(
        "bandwidth", lambda s, n, b: 2 * (n - 1) * 4 * PARAMETERS / s.bytes(n)
    ),
    "bandwidth (N-1)/N": _scaled(
        "bandwidth", lambda s, n, b: (n - 1) / n * 4 * PARAMETERS / s.bytes(n)
    ),
    "bandwidth N K": _scaled("bandwidth", lambda s, n, b: n * 4 * PARAMETERS / s.bytes(n)),
    "bandwidth of the epoch": _scaled(
        "bandwidth", lambda s, n, b: s.communication(n, b) / s.epoch[n, b]
    ),
    "bandwidth of compute": _scaled(
        "bandwidth", lambda s, n, b: s.communication(n, b) / s.compute(n, b)
    ),
    "bandwidth in Gbit": _scaled("bandwidth", lambda s, n, b: 8),
    "bandwidth in GiB": _scaled("bandwidth", lambda s, n, b: 1e9 / 2**30),
    "bandwidth in MB": _scaled("bandwidth", lambda s, n, b: 1e3),
    "bandwidth of parameters": _scaled("bandwidth", lambda s, n, b: 1 / 4),
    "bandwidth of 8 bytes": _scaled("bandwidth", lambda s, n, b: 2),
    "bandwidth, steps of one GPU": _scaled(
        "bandwidth", lambda s, n, b: s.steps(1, b) / s.steps(n, b)
    ),
    "utilization a share": _scaled("utilization", lambda s, n, b: 1 / 100),
    "utilization in bits": _scaled("utilization", lambda s, n, b: 8),
    "utilization divided by N": _scaled("utilization", lambda s, n, b: 1 / n),
}


def study(rng: random.Random, most_noise: float = 0.03) -> Study:
    """A study with times as of training: a cost a step and an image, exchange, loading, noise."""
    gpus = rng.choice([(1, 2, 4), (1, 2, 4), (1, 2, 4), (1, 2), (1, 2, 4, 8)])
    batches = rng.choice(
        [(32, 128, 512), (32, 128, 512), (32, 128, 512, 2048), (64, 256, 1024), (16, 64, 256)]
    )
    batches += (8192,) * (gpus[-1] < 8 and 2048 in batches)
    step, image = rng.uniform(2e-3, 15e-3), rng.uniform(5e-5, 8e-4)
    exchange, loading = rng.uniform(1e-4, 1.2e-2), rng.choice([0.0, 0.02, 0.1, 0.5])
    noise, strategy = rng.uniform(0, most_noise), rng.choice(["ddp", "ddp", "dp"])
    training, epoch = {}, {}
    for n in gpus:
        for b in batches:
            steps = math.ceil(IMAGES / (n * b))
            pure = (
                steps * (step + exchange * (n > 1) * (1 + 0.3 * math.log2(n))) + IMAGES / n * image
            )
            training[n, b] = pure * rng.lognormvariate(0, noise)
            epoch[n, b] = training[n, b] * (1 + loading * rng.uniform(0.9, 1.1))
    return Study(
        gpus,
        batches,
        epoch,
        training,
        strategy,
        rng.choice([300.0, 450.0, 900.0]),
        rng.random() < 0.4,
    )


def _rounded(value: float, digits: int, cut: bool = False) -> str:
    if not math.isfinite(value):
        return "-"
    if cut:
        value = math.trunc(value * 10**digits) / 10**digits
    return f"{value:.{digits}f}"


@dataclass(frozen=True)
class Submission:
    """A file as a student hands it in: its name and text, and the planted mistake, if any."""

    name: str
    text: str
    column: str = ""
    wrong: int = 0  # printed figures that differ from the right ones


COLUMNS = {
    "speedup": ["Speedup", "speedup", "Speed-up (x)"],
    "efficiency": ["Efficiency (%)", "parallel efficiency (%)"],
    "rate": ["images/s", "Throughput (images/s)"],
    "compute": ["Compute (s)", "compute_s", "Computation time (sec)"],
    "communication": ["Communication (s)", "comm_s", "Comm. time (s)"],
    "bandwidth": ["Bandwidth (GB/s)", "bandwidth_GB_s"],
    "utilization": ["Utilization (%)"],
}


def submission(seed: int, mistake: str = "") -> Submission:
    """A submission by its seed, honest or with one mistake; layout, digits, headers by chance."""
    rng = random.Random(f"{seed} {mistake}")
    of = study(rng)
    digits = {"time": rng.choice([2, 2, 3, 4]), "rate": rng.choice([0, 1])}
    digits["efficiency"] = rng.choice([0, 1, 1, 2])
    for name in ("speedup", "compute", "communication", "utilization"):
        digits[name] = rng.choice([2, 2, 3])
    digits["bandwidth"] = rng.choice([2, 3, 3])
    if rng.random() < 0.5:  # derived from the printed times
        near = {
            name: {k: round(v, digits["time"]) for k, v in getattr(of, name).items()}
            for name in ("epoch", "training")
        }
        of = replace(of, **near)
    formulas, column, wrong = dict(RIGHT), "", 0
    if mistake:
        column, formulas[column] = MISTAKES[mistake]
        digits[column] = max(digits[column], 3 if column in ("speedup", "bandwidth") else 2)
    cut = rng.random() < 0.1

    def printed(name: str, n: int, b: int) -> str:
        if name == "time":
            return _rounded(of.epoch[n, b], digits["time"])
        return _rounded(formulas[name](of, n, b), digits[name], cut)

    if mistake:
        # Bytes of one step in an epoch's seconds have few digits else.
        few = 6 if column == "bandwidth" else 5 if mistake == "communication a step" else 0
        digits[column] = few or digits[column]
        wrong = sum(
            abs(formulas[column](of, n, b) - RIGHT[column](of, n, b))
            > 3 * 10.0 ** -digits[column] + 0.02 * abs(RIGHT[column](of, n, b))
            for n in of.gpus[1:]
            for b in of.batches
        )
    layout = rng.choice(["template", "tidy", "tidy", "lab", "lab", "merged", "tsv"])
    apart = column in ("efficiency", "rate", "utilization")
    if apart or (column == "bandwidth" and layout == "tsv"):
        layout = "tidy"
    write = {"template": _template, "tidy": _tidy}.get(layout, _lab)
    return Submission(*write(rng, of, digits, printed, column, layout), column, wrong)


def _template(rng, of, digits, printed, column, layout) -> tuple[str, str]:
    with_training = of.hint or rng.random() < 0.3
    names = ("compute", "communication", "bandwidth", "utilization")
    lines = [HEADER.partition(",count")[0]]
    for n in of.gpus:
        for b in of.batches:
            stated = with_training and (n == 1 or not of.hint)
            row = [
                "s",
                of.strategy,
                "resnet18-cifar",
                PARAMETERS,
                n,
                b,
                "ok",
                printed("time", n, b),
            ]
            row += [_rounded(of.training[n, b], digits["time"]) if stated else ""]
            row += [printed("speedup", n, b)]
            row += [printed(name, n, b) if n > 1 else "" for name in names]
            lines.append(",".join(map(str, row)))
    return "timings.csv", "\n".join(lines) + "\n"


def _tidy(rng, of, digits, printed, column, layout) -> tuple[str, str]:
    names = [name for name in COLUMNS if rng.random() < 0.5 or name == column]
    if column in ("bandwidth", "utilization"):
        names = [name for name in COLUMNS if name in (*names, "communication", "bandwidth")]
    names = [name for name in names if name != "utilization" or "bandwidth" in names]
    if "bandwidth" in names and "communication" not in names:
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
    rows = []
    for n in of.gpus:
        for b in of.batches:
            row = [of.strategy, str(PARAMETERS), str(n), str(b), printed("time", n, b)]
            row += [_rounded(of.training[n, b], digits["time"]) if n == 1 else ""] * first
            everywhere = ("speedup", "efficiency", "rate")
            row += [printed(x, n, b) if n > 1 or x in everywhere else "" for x in names]
            rows.append(row)
    if rng.random() < 0.5:
        return "table.csv", "\n".join(",".join(row) for row in [heads, *rows]) + "\n"
    return "table.md", _markdown([heads, ["---"] * len(heads), *rows]) + "\n"


def _markdown(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lab(rng, of, digits, printed, column, layout) -> tuple[str, str]:
    """The lab's three tables; in layouts other than `lab` with two merged header rows."""
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
        if layout != "lab":
            above = [size if i % len(columns) == 0 else "" for i, (size, _) in enumerate(pairs)]
            heads = [["", *above], ["", *(head for _, head in pairs)]]
        rows = [
            [f"{n}-GPU", *(printed(x, n, b) for b in of.batches for x in columns.values())]
            for n in gpus
        ]
        if layout == "tsv":
            parts += ["\n".join([title, *("\t".join(line) for line in [*heads, *rows])])]
        else:
            rule = ["---"] * len(heads[0])
            parts += [title, _markdown([heads[0], rule, *heads[1:], *rows])]
    return ("table.tsv" if layout == "tsv" else "report.md"), "\n\n".join(parts) + "\n"
