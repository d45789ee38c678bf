"""Judge a study: compare printed numbers with formulas, and find the mistakes of slips.yaml."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from grader.formulas import UNKNOWN, Cells, Interval, Verdict, cells_of, times, verdicts
from grader.study import FORMULAS, TIMES, TITLES, Study
from grader.words import Figure
from scaling.config.stored import read_config

SLIPS, CAUSES = read_config(Path(__file__).with_name("slips.yaml")).values()
SEVERITIES = {"error": 2.0, "warning": 0.5, "remark": 0.0}
"""Points that a question loses for a cause, by severity, worst first; once per cause and study."""
CHANCE, SPREAD = -math.log(0.05), 4.0
"""CHANCE: a mistake is reported if its evidence, -ln(probability of coincidence), exceeds this.
SPREAD: ln(largest / smallest) of wrong numbers, which are assumed to be log-uniform."""
LEAST = 3
"""A mistake is reported only if it explains this many printed numbers, not all of them equal."""
FACTORS = np.array([2, 3, 5, 10, 60, 1e3, 3600, 1e6]) ** [[1.0], [-1.0]]
TRIED, LARGE = 40, 500
"""TRIED: maximum number of GPU counts or batch sizes that are tried for one mistake.
LARGE: maximum number of rows of a table in which missing configurations are searched for."""


@dataclass
class Finding:
    """A mistake or remark (`cause`, a key of `CAUSES`), with printed and expected values.

    `place` is a mask of the affected configurations. `rule` describes the mistake, such as
    "N twice". `also` names other mistakes that explain the printed values as well.
    """

    cause: str
    cells: Cells
    place: np.ndarray
    printed: Interval = UNKNOWN
    expected: Interval = UNKNOWN
    quantity: str = ""
    rule: str = ""
    also: str = ""

    @property
    def severity(self) -> str:
        return next(one for one in SEVERITIES if one in CAUSES[self.cause])

    @property
    def words(self) -> tuple[str, str]:
        """Return a sentence that describes the finding, and a sentence of advice."""
        text, _, advice = CAUSES[self.cause][self.severity].partition(". ")
        sentence = " ".join(text.format(rule=self.rule).split())
        if self.quantity:
            sentence = f"the printed {TITLES[self.quantity]} {sentence}"
        return sentence + f"; also fits: {self.also}" * bool(self.also), advice


@dataclass
class Judgement:
    """Findings, errors first. `figures` counts printed numbers by verdict, such as "right"."""

    findings: list[Finding] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


@np.errstate(all="ignore")
def judge(study: Study, images: int) -> Judgement:
    """Return the findings on a study. `images` is the size of the training set.

    If no header says whether batch sizes are per GPU or of all GPUs together, both meanings are
    tried. The meaning that makes more printed numbers right is used.
    """
    judgement, sizes = _judged(study, images), study.rows["batch_size"] / study.rows["gpus"]
    unsaid = not (study.batch_stated or study.global_batch) and (sizes == sizes.round()).all()
    if judgement.figures["wrong"] and unsaid:
        other = replace(study, rows=study.rows.assign(batch_size=sizes.astype(int)))
        again = _judged(other, images)
        if again.figures["right"] > judgement.figures["right"] + 2:
            cells = cells_of(other, study.strategies[0], images)
            again.findings.append(Finding("batch_of_all", cells, cells.several))
            judgement = again
    judgement = _rescaled(judgement, study, images)
    judgement.findings = [one for one in judgement.findings if one.place.any()]
    judgement.findings.sort(key=lambda one: -SEVERITIES[one.severity])
    return judgement


def _rescaled(judgement: Judgement, study: Study, images: int) -> Judgement:
    """Return `judgement`, or one with times in another unit if that halves the wrong numbers."""
    causes = [one for one in judgement.findings if one.cause == "wrong_by_a_factor"]
    ratios = [np.nanmedian((x.printed.middle / x.expected.middle)[x.place]) for x in causes]
    factors = Counter(FACTORS.flat[np.abs(np.log(FACTORS / ratio)).argmin()] for ratio in ratios)
    (factor, columns), *_ = [*factors.most_common(1), (1.0, 0)]
    tried = [judgement]
    for most in (1, math.inf) if columns > 1 else ():
        rows, place = study.rows.copy(), study.rows["gpus"] <= most
        scaled = rows.loc[place, TIMES].map(lambda x: x and Figure(*np.multiply(x, factor)))
        rows.loc[place, TIMES] = scaled
        tried.append(_judged(replace(study, rows=rows), images))
        for cells in (cells_of(study, strategy, images) for strategy in study.strategies):
            time = cells.names["T"]
            about = (cells, time.known & (cells.gpus <= most), time, time * factor)
            tried[-1].findings.append(Finding("time_unit", *about))
    best = min(tried, key=lambda one: one.figures["wrong"])
    return best if best.figures["wrong"] < judgement.figures["wrong"] / 2 else judgement


def _judged(study: Study, images: int) -> Judgement:
    judgement = Judgement()
    for strategy in study.strategies:
        cells = cells_of(study, strategy, images)
        _judge_figures(judgement, cells)
        for name in (name for name, cause in CAUSES.items() if "when" in cause):
            place, *shown = map(cells.evaluate, CAUSES[name]["when"])
            cells.names[f"is_{name}"] = place = np.broadcast_to(place, len(cells.gpus))
            judgement.findings.append(Finding(name, cells, place, *shown))
        judgement.findings += _missing(cells)
    return judgement


def _judge_figures(judgement: Judgement, cells: Cells) -> None:
    """Add one strategy's findings to `judgement`, and count its printed numbers by verdict."""
    each = verdicts(cells)
    measured = _open_parts(cells, each)
    causes = {name: list(named(cells, one)) for name, one in each.items()}
    time, beside = _other_time(cells, each)
    for one in (each["compute"], each["communication"]):
        one.opened = one.opened | (one.wrong & ~beside & measured)
    judgement.findings += [Finding("time_contradicted", cells, time.known, cells.names["T"], time)]
    for name, one in each.items():
        there, left, near = one.printed.known, one.wrong & ~beside, one.printed.near(one.right)
        due = cells.names["T"].known & cells.several
        due = due & ~(cells.names["of_throughput"].known & (name in ("speedup", "efficiency")))
        wrong, counted = left | one.explained, name != "bandwidth" or cells.names["K"].known.all()
        places = {
            "nearly": left & near,
            "unexplained": left & ~near,
            "measured_or_unknown": one.opened & ~one.explained,
            "blank_figure": due & ~there & there.any(),
            "unchecked" if counted else "bytes_unknown": one.open & ~one.explained,
            **one.remarks,
        }
        about = (one.printed, one.right, name)
        judgement.findings += causes[name]
        judgement.findings += [Finding(x, cells, place, *about) for x, place in places.items()]
        unsure = (one.open | one.opened) & ~wrong
        counts = {"right": there & ~wrong & ~unsure, "wrong": wrong, "not checked": unsure}
        judgement.figures.update({word: int(place.sum()) for word, place in counts.items()})


def _open_parts(cells: Cells, each: dict[str, Verdict]) -> bool:
    """Mark (in `opened`) compute and communication times that may be right without a formula.

    They may follow from W1, an epoch time on one GPU without data loading, that is not printed.
    The implied W1 must be at most T1 (with data loading), and either the same for all N or above
    T1 / 2. Or both parts were measured: their sums are then epoch times. Return whether they were.
    """
    compute, comm, names = each["compute"], each["communication"], cells.names
    single = compute.printed.or_else(names["T"] - comm.printed) * names["N"]
    short = (single.low <= names["T1"].high * 1.02) & (single.high > 0) & ~names["W1"].known
    doubt = (compute.wrong | comm.wrong) & ~compute.agrees
    same = doubt & False
    for size in np.unique(cells.batch[doubt]):
        one = doubt & (cells.batch == size)
        same[one] = (one.sum() > 1) & (single.low[one].max() <= single.high[one].min())
    parts = compute.printed + comm.printed
    adds = parts.meets(names["T"]) | parts.meets(names["W"])
    adds |= (parts + names["loading"]).meets(names["T"])
    both = parts.known & (names["T"].known | names["W"].known) & cells.several
    measured = both.any() and (adds & (comm.printed.high >= 0))[both].all()
    alone = cells.several & doubt & short & (single.high > names["T1"].low / 2)
    for one in (compute, comm):
        one.opened = one.wrong & np.where(same, short, measured | alone)
    return bool(measured)


def _other_time(cells: Cells, each: dict[str, Verdict]) -> tuple[Interval, np.ndarray]:
    """Return epoch times that contradict the printed epoch times, and a mask.

    A time is NaN unless at least two other printed numbers imply it. The mask marks the
    configurations of these numbers.
    """
    time, ends = cells.names["T"], np.full((2, len(cells.gpus)), np.nan)
    doubtful = np.logical_or.reduce([one.wrong for one in each.values()])
    figures = {x: UNKNOWN.where(y.explained | y.opened, y.printed) for x, y in each.items()}
    implied_by = [
        np.stack([cells.evaluate(text, "T", **figures).ends for text in texts], axis=1)
        for texts in FORMULAS["times"].values()
    ]
    beside = doubtful & False
    for i, several in enumerate(cells.several):
        column = [i] if several else cells.several & (cells.batch == cells.batch[i])
        implied = implied_by[int(several)][:, :, column].reshape(2, -1)
        implied = implied[:, ~np.isnan(implied[0])]
        low, high = implied[0].max(initial=-np.inf), implied[1].min(initial=np.inf)
        agree = implied.shape[1] > 1 and low <= high * (1 + 1e-9)
        agree &= bool(doubtful[column].any()) or not high / 3 < time.middle[i] < low * 3
        fits = Interval(implied).meets(Interval(time.ends[:, [i]])).any()
        # A shorter one on one GPU may be a training time.
        if agree and not fits and time.known[i] and (several or low > time.high[i]):
            ends[:, i], beside[column] = (low, high), True
    return Interval(ends), beside


def _missing(cells: Cells) -> Iterator[Finding]:
    """Yield a finding on the combinations of GPUs and batch size that have no row."""
    there = pd.MultiIndex.from_arrays([cells.gpus, cells.batch])
    if len(there) <= LARGE:
        gaps = pd.MultiIndex.from_product(there.levels).difference(there).to_frame().to_numpy()
        number, batch = gaps[gaps.prod(axis=1) <= cells.images].T
        gap = replace(cells, gpus=number, batch=batch)
        yield Finding("missing_cell", gap, np.ones(len(number), bool))


def named(cells: Cells, one: Verdict) -> Iterator[Finding]:
    """Yield up to three known mistakes of students that explain suspect numbers of a quantity.

    A number is suspect if it is wrong or cannot be checked. The evidence for a mistake is the sum
    of -ln(chance that distinct random numbers agree with it), -ln(number of mistakes tried) and
    -ln(number of ways to choose the explained numbers). `one.explained` then marks these numbers.
    """
    unsure = one.opened | one.open
    suspects = one.wrong & ~one.printed.near(one.right) | unsure
    every = list(_readings(cells, one, suspects))
    if not every:
        return
    values = Interval(np.stack([value.ends for _, _, value in every], axis=1))
    meets, tried = one.printed.meets(values), len({reading[:2] for reading in every})
    width = (one.printed.high - one.printed.low) + (values.high - values.low)
    size = np.fmax(np.abs(one.printed.middle), np.abs(one.right.middle))
    luck = np.clip(np.nan_to_num(width / size / SPREAD, nan=1.0), 1e-6, 1.0)
    # Equal figures are one piece of evidence.
    once, places = np.zeros(len(cells.gpus), bool), np.flatnonzero(suspects)
    once[places[np.unique(one.printed.middle[places], return_index=True)[1]]] = True
    log_factorial = np.append(0.0, np.log(np.arange(1, len(places) + 1)).cumsum())
    for _ in range(3):
        there = meets & suspects
        count, total = there.sum(-1), suspects.sum()
        ways = log_factorial[total] - log_factorial[count] - log_factorial[total - count]
        score = (-np.log(luck) * (there & once)).sum(-1) - math.log(tried) - ways
        most = (unsure & suspects & there).sum(-1) * 2 > (unsure & suspects).sum()
        most |= ~(unsure & suspects).any()
        enough = (count >= LEAST) & ((there & once).sum(-1) > 1) & most
        score[~enough | (one.opened & suspects & ~there).any(-1)] = -np.inf
        best = int(score.argmax())
        if score[best] <= CHANCE:
            return
        cause, rule, value = every[best]
        place = there[best] | (one.wrong & one.printed.near(value))
        alike = np.flatnonzero((score > score[best] - 1) & (count == count[best]))
        equal = (every[i][:2] for i in alike if every[i][0] != cause)
        also = dict.fromkeys(f"{name.replace('_', ' ')} {of}" for name, of in equal)
        about = (one.printed, one.right, one.quantity, rule, ", ".join([*also][:2]))
        yield Finding(cause, cells, place, *about)
        one.explained = one.explained | place
        suspects = suspects & ~place & ~unsure


def _readings(
    cells: Cells, one: Verdict, suspects: np.ndarray
) -> Iterator[tuple[str, str, Interval]]:
    """Yield each known mistake of students that leads to a printed number in the mask `suspects`.

    A mistake is a tuple: key of `CAUSES`, description, and the wrong values to which it leads.
    """
    every = {"M": cells.gpus[cells.several], "B": cells.batch[~cells.several]}
    texts = FORMULAS["quantities"][one.quantity][3] if suspects.any() else []
    there = ((cells.names["T1"].known | cells.names["W1"].known) & suspects).any()
    slips = [slip for slip in SLIPS if there or slip[0] != "wrong_reference_time"]
    for (cause, parts, rule, *changes), text in product(slips, texts):
        names = set(re.findall(r"[A-Za-z]\w*", text))
        for part, change in product({*parts.split()} & {one.quantity, "any", *names}, changes):
            whole = part in (one.quantity, "any")
            letter = next((x for x in every if re.search(rf"\b{x}\b", str(change))), "")
            for number in np.unique(every[letter])[:TRIED] if letter else [0]:
                for time in times(f"{text} {change}"):
                    right = cells.evaluate(text if whole else part, time)
                    value = cells.evaluate(str(change), time, value=right, **{letter: number})
                    if not whole:
                        value = cells.evaluate(text, time, **{part: value})
                    if (one.printed.meets(value) & suspects).any():
                        yield cause, f"{rule} ({number})" if letter else rule, value
