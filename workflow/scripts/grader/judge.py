"""Judge a study: compare each printed figure with the formulas that are accepted."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from grader.formulas import FORMULAS, Cells, of_strategy
from grader.intervals import UNKNOWN, Interval
from grader.slips import LARGE, SEVERITIES, SLIPS, Slips, named
from grader.study import Study
from grader.verdicts import TITLE, Verdict, verdicts

PARTS = ["compute", "communication"]
MEASURED = [*PARTS, "bandwidth"]
"""Quantities that do not follow from the times if a trace gave the parts of the epoch."""


@dataclass
class Finding:
    """One cause, with the cells it affects and their printed and expected values.

    `also` has other slips with as much evidence as `slips`.
    """

    slips: Slips
    cells: Cells
    place: np.ndarray
    printed: Interval = UNKNOWN
    expected: Interval = UNKNOWN
    quantity: str = ""
    also: Slips = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.slips)

    @property
    def severity(self) -> str:
        return min((SLIPS[one].severity for one in self.names), key=SEVERITIES.index)

    @property
    def sentence(self) -> str:
        text = "; it ".join(SLIPS[name].sentence.format(rule=rule) for name, rule in self.slips)
        if not self.quantity:
            return text
        return f"the printed {FORMULAS['quantities'][self.quantity][TITLE]} {text}"

    @property
    def advice(self) -> str:
        return " ".join(filter(None, (SLIPS[one].advice for one in self.names)))


@dataclass
class Judgement:
    """The findings on a study, errors first, and numbers of right, wrong and unchecked figures."""

    findings: list[Finding] = field(default_factory=list)
    right: int = 0
    wrong: int = 0
    open: int = 0


def judge(study: Study, every: list[Study], images: int) -> Judgement:
    """Return a judgement on each figure and time of `study`, whose file has `every` study.

    Batch sizes are per GPU unless their header says otherwise, or says nothing and more figures
    follow if batch sizes are of all GPUs together.
    """
    judgement = _judged(study, every, images)
    sizes = study.rows["batch_size"] / study.rows["gpus"]
    unsaid = not (study.batch_stated or study.global_batch) and (sizes == sizes.round()).all()
    if judgement.wrong and unsaid:
        other = replace(study, rows=study.rows.assign(batch_size=sizes.astype(int)))
        again = _judged(other, every, images)
        if again.wrong < judgement.wrong and again.right > judgement.right + 2:
            judgement = again
            cells = of_strategy(other, study.strategies[0], every, images)
            judgement.findings.append(Finding((("batch_of_all", ""),), cells, cells.several))
    judgement.findings.sort(key=lambda one: SEVERITIES.index(one.severity))
    return judgement


def _judged(study: Study, every: list[Study], images: int) -> Judgement:
    judgement = Judgement()
    with np.errstate(all="ignore"):
        for strategy in study.strategies:
            cells = of_strategy(study, strategy, every, images)
            _judge_figures(judgement, study, cells, verdicts(cells))
            judgement.findings += [*_checks(study, cells), *_missing(cells)]
    judgement.findings = [one for one in judgement.findings if one.place.any()]
    return judgement


def _judge_figures(
    judgement: Judgement, study: Study, cells: Cells, each: dict[str, Verdict]
) -> None:
    """Add the findings on the figures of one strategy, and the number of figures per verdict."""
    none = np.zeros(len(cells.gpus), bool)
    opened = dict.fromkeys(each, none) | _opened(study, cells, each)
    left = {name: one.wrong & ~opened[name] for name, one in each.items()}
    traced = MEASURED if study.measured else []
    causes = {
        name: [] if name in traced else named(cells, one, left[name], opened[name])
        for name, one in each.items()
    }
    explained = {
        name: np.logical_or.reduce([none, *(one.place for one in some)])
        for name, some in causes.items()
    }
    unexplained = {name: UNKNOWN.where(explained[name], x.printed) for name, x in each.items()}
    doubtful = np.logical_or.reduce([left[name] & ~explained[name] for name in each])
    time = (UNKNOWN + none) if traced else _other_time(cells, unexplained, doubtful)
    judgement.findings.append(
        Finding((("time_contradicted", ""),), cells, time.known, cells.names["T"], time)
    )
    beside = time.known | np.isin(cells.batch, cells.batch[time.known & ~cells.several])
    for name, one in each.items():
        about: Any = {"printed": one.printed, "expected": one.right, "quantity": name}
        for cause in causes[name]:
            judgement.findings.append(
                Finding(cause.slips, cells, cause.place, also=cause.also, **about)
            )
        rest, doubt = left[name] & ~explained[name] & ~beside, opened[name] & ~explained[name]
        wrong = rest | explained[name]
        near = rest & one.printed.near(one.right)
        unsure = one.printed.known & (one.open | doubt) & ~wrong
        blank = cells.names["T"].known & ~one.printed.known & cells.names["own_row"]
        blank = blank & cells.several & one.printed.known.any()
        others = {"nearly": near, "unexplained": rest & ~near, "open": doubt, "blank_figure": blank}
        remarks = [*others.items(), *one.remarks()]
        judgement.findings += [Finding(((x, ""),), cells, place, **about) for x, place in remarks]
        reason = {
            "bandwidth": "the number of parameters, and so of bytes, is not stated",
            "utilization": "no peak is stated",
        }.get(name, "no time, or no T(1,b), stands beside it")
        judgement.findings.append(
            Finding((("unchecked", reason),), cells, one.open, one.printed, UNKNOWN, name)
        )
        judgement.wrong += int(wrong.sum())
        judgement.open += int(unsure.sum())
        judgement.right += int((one.printed.known & ~wrong & ~unsure).sum())


def _opened(study: Study, cells: Cells, each: dict[str, Verdict]) -> dict[str, np.ndarray]:
    """Return where wrong figures of compute and communication may still be right.

    Both may derive from a training time on one GPU that no table has, if all N imply the same
    time. Or both were measured: they add up to the time, and most do not follow from T(1,b).
    """
    compute, comm, names = each["compute"], each["communication"], cells.names
    if study.measured:
        return {name: each[name].wrong for name in MEASURED}
    single = compute.printed.or_else(names["T"] - comm.printed) * names["N"]
    short = (single.low <= names["T1"].high * 1.02) & (single.high > 0) & ~names["W1"].known
    likely = single.high > names["T1"].low / 2
    place = short & cells.several & (compute.wrong | comm.wrong) & ~compute.agrees
    same = place & False
    for size in np.unique(cells.batch[place]):
        one = place & (cells.batch == size)
        several = (len(np.unique(cells.gpus[one])) > 1) | likely
        same |= one & several & (single.low[one].max() <= single.high[one].min())
    parts = compute.printed + comm.printed
    whole = parts.meets(names["T"])
    adds = whole | parts.meets(names["W"]) | (parts + names["loading"]).meets(names["T"])
    both = parts.known & (names["T"].known | names["W"].known) & cells.several
    measured = both.sum() > 1 and adds[both].all() and 2 * compute.agrees[both].sum() <= both.sum()
    return {name: each[name].wrong & (same | place & whole | measured) for name in PARTS}


def _other_time(cells: Cells, figures: dict[str, Interval], doubtful: np.ndarray) -> Interval:
    """Return times on which two or more figures agree, where none fits the printed time."""
    names, time, n = cells.names, cells.names["T"], cells.names["N"]
    parts = figures["compute"] + figures["communication"]
    of_row = [
        names["T1"] / figures["speedup"],
        names["T1"] * 100 / figures["efficiency"] / n,
        names["images"] / figures["rate"],
        # Of an epoch without loading, which is hardly shorter.
        Interval(parts.ends * np.array([[1.0], [1.1]])),
        Interval(names["W"].ends * np.array([[1.0], [1.1]])),
    ]
    of_single = [
        figures["speedup"] * time,
        figures["compute"] * n,
        (time - figures["communication"]) * n,
    ]
    ends = np.full((2, len(cells.gpus)), np.nan)
    for i in range(len(cells.gpus)) if len(cells.gpus) <= LARGE else ():
        single = not cells.several[i]
        column = cells.several & (cells.batch == cells.batch[i]) if single else [i]
        implied = np.concatenate([x.ends[:, column] for x in (of_single if single else of_row)], 1)
        implied = implied[:, ~np.isnan(implied[0])]
        low, high = implied[0].max(initial=-np.inf), implied[1].min(initial=np.inf)
        agree = implied.shape[1] > 1 and low <= high * (1 + 1e-9)
        agree &= bool(doubtful[column].any()) or not high / 3 < time.middle[i] < low * 3
        # A shorter one on one GPU may be a training time.
        if (
            agree
            and not Interval(implied).meets(Interval(time.ends[:, [i]])).any()
            and (not single or low > time.high[i])
        ):
            ends[:, i] = low, high
    return Interval(ends)


def _checks(study: Study, cells: Cells) -> Iterator[Finding]:
    """Yield findings by the checks (`when`) of slips.yaml, such as impossible times."""
    rows = study.rows[study.rows["strategy"] == cells.strategy]
    rest = np.zeros(len(cells.gpus) - len(rows), bool)
    # Only the template asks how often a time was measured.
    once = rows["count"].isin(["1", None]) & (study.template | rows["count"].notna())
    names: dict[str, Any] = {"pasted": _pasted(cells), "once": np.concatenate([once, rest])}
    names["failed"] = np.concatenate([~rows["status"].isin(["ok", "diverged"]), rest])
    for name, slip in SLIPS.items():
        if slip.when:
            place, *shown = (cells.evaluate(formula, **names) for formula in slip.when)
            names[f"is_{name}"] = place = np.broadcast_to(place, len(cells.gpus))
            yield Finding(((name, ""),), cells, place, *shown)


def _missing(cells: Cells) -> Iterator[Finding]:
    """Yield a finding on combinations of numbers of GPUs and batch sizes without a row."""
    there = set(zip(cells.gpus[: cells.count].tolist(), cells.batch.tolist(), strict=False))
    gpus, batches = (sorted(set(each)) for each in zip(*there, strict=True))
    fitting = ((n, b) for n in gpus for b in batches if n * b <= cells.images)
    gaps = [cell for cell in fitting if cell not in there]
    if gaps and len(there) <= LARGE:
        number, batch = np.array(gaps).T
        gap = replace(cells, gpus=number, batch=batch)
        yield Finding((("missing_cell", ""),), gap, np.ones(len(gaps), bool))


def _pasted(cells: Cells) -> np.ndarray:
    """Return where two numbers of GPUs have equal times at all, and at least two, batch sizes."""
    place, time = np.zeros(len(cells.gpus), bool), cells.names["T"]
    for a, b in combinations(np.unique(cells.gpus).tolist()[:8], 2):
        same = cells.names["at"](time, a).middle == time.middle
        there = (cells.gpus == b) & time.known
        if there.sum() > 1 and same[there].all():
            place |= there
    return place
