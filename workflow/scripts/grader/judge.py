"""Judge a study: compare each printed figure with the formulas that are accepted."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from grader.formulas import FORMULAS, Cells, Verdict, of_strategy, verdicts
from grader.intervals import UNKNOWN, Interval
from grader.slips import SEVERITIES, SLIPS, Finding, named
from grader.study import Study

PARTS = ["compute", "communication"]
MEASURED = [*PARTS, "bandwidth"]
"""Quantities that do not follow from the times if a trace gave the parts of the epoch."""
LARGE = 500
"""The most cells of which gaps in the grid are listed."""


@dataclass
class Judgement:
    """The findings on a study, errors first, and numbers of right, wrong and unchecked figures."""

    findings: list[Finding] = field(default_factory=list)
    right: int = 0
    wrong: int = 0
    open: int = 0


@np.errstate(all="ignore")
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
            judgement.findings.append(Finding("batch_of_all", cells, cells.several))
    judgement.findings.sort(key=lambda one: SEVERITIES.index(one.severity))
    return judgement


def _judged(study: Study, every: list[Study], images: int) -> Judgement:
    judgement = Judgement()
    for strategy in study.strategies:
        cells = of_strategy(study, strategy, every, images)
        _judge_figures(judgement, study, cells)
        for name, slip in SLIPS.items():
            if "when" in slip:
                place, *shown = map(cells.evaluate, slip["when"])
                cells.names[f"is_{name}"] = place = np.broadcast_to(place, len(cells.gpus))
                judgement.findings.append(Finding(name, cells, place, *shown))
        judgement.findings += _missing(cells)
    judgement.findings = [one for one in judgement.findings if one.place.any()]
    return judgement


def _judge_figures(judgement: Judgement, study: Study, cells: Cells) -> None:
    """Add the findings on the figures of one strategy, and the number of figures per verdict."""
    each, none, causes = verdicts(cells), np.zeros(len(cells.gpus), bool), list[Finding]()
    opened = dict.fromkeys(each, none) | _opened(study, cells, each)
    rest = {name: one.wrong & ~opened[name] for name, one in each.items()}
    explained = dict.fromkeys(each, none)
    for name, one in each.items():
        if not (study.measured and name in MEASURED):
            for cause in named(cells, one, rest[name], opened[name]):
                causes.append(cause)
                explained[name] = explained[name] | cause.place
        rest[name] = rest[name] & ~explained[name]
    time = UNKNOWN + none
    if not study.measured:
        doubtful = np.logical_or.reduce([*rest.values()])
        figures = {name: UNKNOWN.where(explained[name], x.printed) for name, x in each.items()}
        time = _other_time(cells, figures, doubtful)
    contradicted = Finding("time_contradicted", cells, time.known, cells.names["T"], time)
    judgement.findings.append(contradicted)
    beside = time.known | np.isin(cells.batch, cells.batch[time.known & ~cells.several])
    for name, one in each.items():
        judgement.findings += [cause for cause in causes if cause.quantity == name]
        left, doubt = rest[name] & ~beside, opened[name] & ~explained[name]
        wrong, near = left | explained[name], left & one.printed.near(one.right)
        unsure = one.printed.known & (one.open | doubt) & ~wrong
        blank = (
            cells.names["T"].known & ~one.printed.known & cells.several & one.printed.known.any()
        )
        remarks = [("nearly", near), ("unexplained", left & ~near), ("open", doubt)]
        remarks += [("blank_figure", blank & cells.names["own_row"]), *one.remarks()]
        for remark, place in remarks:
            judgement.findings.append(Finding(remark, cells, place, one.printed, one.right, name))
        reason = FORMULAS["unchecked"].get(name, "no time, or no T(1,b), stands beside it")
        about = (one.printed, UNKNOWN, name, reason)
        judgement.findings.append(Finding("unchecked", cells, one.open, *about))
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
    time, ends = cells.names["T"], np.full((2, len(cells.gpus)), np.nan)
    implied_by = [
        np.stack([cells.evaluate(one, **figures).ends for one in FORMULAS["times"][of]], axis=1)
        for of in ("one", "several")
    ]
    for i, several in enumerate(cells.several):
        column = [i] if several else cells.several & (cells.batch == cells.batch[i])
        implied = implied_by[int(several)][:, :, column].reshape(2, -1)
        implied = implied[:, ~np.isnan(implied[0])]
        low, high = implied[0].max(initial=-np.inf), implied[1].min(initial=np.inf)
        agree = implied.shape[1] > 1 and low <= high * (1 + 1e-9)
        agree &= bool(doubtful[column].any()) or not high / 3 < time.middle[i] < low * 3
        fits = Interval(implied).meets(Interval(time.ends[:, [i]])).any()
        # A shorter one on one GPU may be a training time.
        if agree and not fits and (several or low > time.high[i]):
            ends[:, i] = low, high
    return Interval(ends)


def _missing(cells: Cells) -> Iterator[Finding]:
    """Yield a finding on combinations of numbers of GPUs and batch sizes without a row."""
    there = set(zip(cells.gpus[: cells.count].tolist(), cells.batch.tolist(), strict=False))
    gpus, batches = (sorted(set(each)) for each in zip(*there, strict=True))
    fitting = ((n, b) for n in gpus for b in batches if n * b <= cells.images)
    gaps = [cell for cell in fitting if cell not in there]
    if gaps and len(there) <= LARGE:
        number, batch = np.array(gaps).T
        gap: Any = replace(cells, gpus=number, batch=batch)
        yield Finding("missing_cell", gap, np.ones(len(gaps), bool))
