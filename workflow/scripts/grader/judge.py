"""Judge a study: compare each printed figure with the formulas that are accepted."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from grader.formulas import FORMULAS, Cells, of_strategy
from grader.intervals import UNKNOWN, Interval
from grader.slips import LARGE, SEVERITIES, SLIPS, named
from grader.study import Study
from grader.verdicts import Verdict, verdicts

MEASURED = ["compute", "communication", "compute_percent", "communication_percent", "bandwidth"]
"""What follows from no other figure where a trace gave the parts of the epoch."""


@dataclass
class Finding:
    """One cause, and the cells in which it is: what stands there and what should."""

    names: tuple[str, ...]
    cells: Cells
    place: np.ndarray
    found: Interval = UNKNOWN
    expected: Interval = UNKNOWN
    quantity: str = ""
    rules: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def severity(self) -> str:
        return min((SLIPS[one].severity for one in self.names), key=SEVERITIES.index)

    @property
    def sentence(self) -> str:
        rules = self.rules or ("",) * len(self.names)
        said = (SLIPS[n].sentence.format(rule=r) for n, r in zip(self.names, rules, strict=True))
        word = FORMULAS["words"].get(self.quantity)
        return (f"the printed {word} " if word else "") + "; it ".join(said)

    @property
    def advice(self) -> str:
        return " ".join(filter(None, (SLIPS[one].advice for one in self.names)))


@dataclass
class Judgement:
    """The findings on a study, errors first, and the number of figures that are right."""

    findings: list[Finding] = field(default_factory=list)
    right: int = 0
    wrong: int = 0
    open: int = 0


def judge(study: Study, every: list[Study], images: int, ring: bool = False) -> Judgement:
    """Judge each figure and time of `study`, of a file with `every` study.

    DataParallel has a ring's bytes with `ring`. A batch size is that of each GPU unless its header
    says other, or says nothing and more figures follow where it is that of all GPUs.
    """
    made = _judged(study, every, images, ring)
    sizes = study.rows["batch_size"] / study.rows["gpus"]
    unsaid = not (study.batch_said or study.global_batch) and (sizes == sizes.round()).all()
    if made.wrong and unsaid:
        other = replace(study, rows=study.rows.assign(batch_size=sizes.astype(int)))
        again = _judged(other, every, images, ring)
        if again.wrong < made.wrong and again.right > made.right + 2:
            made = again
            cells = of_strategy(other, study.strategies[0], every, images)
            made.findings.append(Finding(("batch_of_all",), cells, cells.several))
    made.findings.sort(key=lambda one: SEVERITIES.index(one.severity))
    return made


def _judged(study: Study, every: list[Study], images: int, ring: bool) -> Judgement:
    said = study.description.definitions.model_dump(exclude_none=True)
    stated = {key.partition("_")[0]: value for key, value in said.items()}
    if study.peak:
        stated.setdefault("utilization", study.peak)
    made = Judgement()
    with np.errstate(all="ignore"):
        for strategy in study.strategies:
            cells = of_strategy(study, strategy, every, images)
            if ring and strategy == "dp":
                cells.names["sent"] = cells.names["ring"]
            found = verdicts(cells, stated)
            _of_strategy(made, study, cells, found)
            made.findings += _checks(study, cells)
            made.findings += _missing(cells)
    made.findings = [one for one in made.findings if one.place.any()]
    return made


def _of_strategy(made: Judgement, study: Study, cells: Cells, found: dict[str, Verdict]) -> None:
    """Add the findings on the figures of one strategy, and their numbers."""
    notes, left, slips = _opened(study, cells, found), dict[str, np.ndarray](), dict[str, Any]()

    def search(name: str) -> None:
        traced = study.measured and name in MEASURED
        slips[name] = [] if traced else named(cells, found[name], left[name], notes[name][1])

    for name, one in found.items():
        left[name] = one.wrong & ~notes[name][1]
        search(name)
    for finding, places in [] if study.measured else _contradicted(cells, found, left, slips):
        explained = sum(int(place.sum()) for place in places.values())
        rivals = [each for n, p in places.items() for each in slips[n] if (each.place & p).any()]
        if explained >= max((int(each.place.sum()) for each in rivals), default=0):
            made.findings.append(finding)
            for name, place in places.items():
                left[name] = left[name] & ~place
                search(name)
    for name, one in found.items():
        (note, opened), rest, wrong = notes[name], left[name], left[name]
        about: Any = {"found": one.said, "expected": one.right, "quantity": name}
        for each in slips[name]:
            made.findings.append(
                Finding(each.names, cells, each.place, rules=each.rules, also=each.also, **about)
            )
            rest, opened, wrong = rest & ~each.place, opened & ~each.place, wrong | each.place
        near = rest & one.said.near(one.right)
        unsure = one.said.known & (one.open | opened) & ~wrong
        blank = cells.names["T"].known & ~one.said.known & cells.names["own_row"]
        others = [("nearly", near), ("unexplained", rest & ~near), (note, opened)]
        others += [*one.remarks(), ("blank_figure", blank & cells.several & one.said.known.any())]
        made.findings += [Finding((x,), cells, place, **about) for x, place in others if x]
        made.findings += _unchecked(cells, one, one.open)
        made.wrong += int(wrong.sum())
        made.open += int(unsure.sum())
        made.right += int((one.said.known & ~wrong & ~unsure).sum())


def _unchecked(cells: Cells, one: Verdict, place: np.ndarray) -> Iterator[Finding]:
    """Yield why figures cannot be checked, the first reason for each."""
    names = cells.names
    no_bytes = one.quantity == "bandwidth" and not names["K"].known.any()
    reasons = {
        "no time stands beside it": ~names["T"].known & ~names["W"].known,
        "the study has no T(1,b) for this b": ~names["T1"].known & ~names["W1"].known,
        "the number of parameters, and so of bytes, is not stated": no_bytes,
        "no peak is stated, and its figures share none": one.quantity == "utilization",
        "a figure that it follows from is missing": True,
    }
    for reason, holds in reasons.items():
        there = place & holds
        place = place & ~there
        yield Finding(("unchecked",), cells, there, one.said, UNKNOWN, one.quantity, (reason,))


def _opened(
    study: Study, cells: Cells, found: dict[str, Verdict]
) -> dict[str, tuple[str, np.ndarray]]:
    """The figures of each quantity that need not follow from the times, and the remark on them.

    Compute may be of a training time on one GPU that no table has: it is the same for every N then.
    Parts that add up to the time are measured, unless most of them follow from T(1,b).
    """
    opened = dict.fromkeys(found, ("", np.zeros(len(cells.gpus), bool)))
    compute, comm, names = found["compute"], found["communication"], cells.names
    if study.measured:
        return opened | {name: ("measured", found[name].wrong) for name in MEASURED}
    either = compute.wrong | comm.wrong
    if not either.any():
        return opened
    single = compute.said.or_else(names["T"] - comm.said) * names["N"]
    short = (single.low <= names["T1"].high * 1.02) & (single.high > 0)
    likely = single.high > names["T1"].low / 2
    unknown, same = ~names["W1"].known & short & cells.several & either, either & False
    for size in np.unique(cells.batch):
        place = unknown & (cells.batch == size)
        if place.any():
            several = len(np.unique(cells.gpus[place])) > 1 or likely
            same |= place & several & bool(single.low[place].max() <= single.high[place].min())
    parts = compute.said + comm.said
    whole = parts.meets(names["T"])
    for name in ("compute", "communication"):
        opened[name] = "question_1", found[name].wrong & (same | unknown & whole)
    loaded = parts + names["loading"]
    adds = whole | parts.meets(names["W"]) | loaded.meets(names["T"])
    both = parts.known & (names["T"].known | names["W"].known) & cells.several
    if both.sum() > 1 and adds[both].all() and 2 * (compute.agrees & both).sum() <= both.sum():
        for name in ("compute", "communication"):
            if (found[name].wrong & ~opened[name][1]).any():
                opened[name] = "measured", found[name].wrong
    return opened


def _contradicted(
    cells: Cells, found: dict[str, Verdict], left: dict[str, np.ndarray], slips: dict[str, Any]
) -> Iterator[tuple[Finding, dict[str, np.ndarray]]]:
    """Yield times that figures beside them contradict, where two figures or more agree on another.

    With each are the wrong figures that are right then.
    """
    names, time, number = cells.names, cells.names["T"], np.arange(len(cells.gpus))
    said = {name: one.said for name, one in found.items()}
    for name, places in slips.items():
        for each in places:
            if each.place.sum() > 1:
                said[name] = UNKNOWN.where(each.place, said[name])
    parts = said["compute"] + said["communication"]
    of_row = {"speedup": names["T1"] / said["speedup"], "rate": names["images"] / said["rate"]}
    of_row["efficiency"] = names["T1"] * 100 / said["efficiency"] / names["N"]
    # Of an epoch without loading, which is hardly shorter.
    of_row["compute"] = Interval(parts.low, parts.high * 1.1)
    of_row["training"] = Interval(names["W"].low, names["W"].high * 1.1)
    of_single = {"speedup": said["speedup"] * time, "compute": said["compute"] * names["N"]}
    of_single["communication"] = (time - said["communication"]) * names["N"]
    for i in number if len(number) <= LARGE else ():
        single = not cells.several[i]
        column = cells.several & (cells.batch == cells.batch[i]) if single else number == i
        implied = [
            (name, j, value[j])
            for name, value in (of_single if single else of_row).items()
            for j in np.flatnonzero(column & value.known)
        ]
        if len(implied) < 2 or any(value.meets(time[i]) for _, _, value in implied):
            continue
        longer = any(name == "speedup" or value.low > time.high[i] for name, _, value in implied)
        ends = zip(*(value for _, _, value in implied), strict=True)
        low, high = (pick(end) for pick, end in zip((max, min), ends, strict=True))
        if low > high * (1 + 1e-9) or (single and not longer):
            continue  # A shorter one may be a training time on one GPU.
        places = {name: one & False for name, one in left.items()}
        for name, j, _ in implied:
            if name in places:
                places[name][j] = left[name][j]
        gross = not high / 3 < time.middle[i] < low * 3
        if gross or any(place.any() for place in places.values()):
            expected = Interval(*(np.where(number == i, end, np.nan) for end in (low, high)))
            yield Finding(("time_contradicted",), cells, number == i, time, expected), places


def _checks(study: Study, cells: Cells) -> Iterator[Finding]:
    """Yield what cannot be, whatever was printed beside it, by the checks of slips.yaml."""
    rows = study.rows[study.rows["strategy"] == cells.strategy]
    rest = np.zeros(len(cells.gpus) - len(rows), bool)
    # Only the template asks how often a time was measured.
    once = rows["count"].isin(["1", None]) & (study.template | rows["count"].notna())
    names: dict[str, Any] = {"Interval": Interval, "pasted": _pasted(cells)}
    names["once"] = np.concatenate([once, rest])
    names["failed"] = np.concatenate([~rows["status"].isin(["ok", "diverged"]), rest])
    for name, slip in SLIPS.items():
        if "when" in slip.check:
            place = np.broadcast_to(cells.evaluate(slip.check["when"], **names), len(cells.gpus))
            names[f"is_{name}"] = place
            ends = (slip.check.get(end, "unknown") for end in ("found", "expected"))
            seen, right = (cells.evaluate(end, **names) for end in ends)
            yield Finding((name,), cells, place, seen, right, rules=(cells.peak,))


def _missing(cells: Cells) -> Iterator[Finding]:
    """Yield the combinations of the strategy's numbers of GPUs and batch sizes without a row."""
    there = set(zip(cells.gpus[: cells.own].tolist(), cells.batch.tolist(), strict=False))
    gpus, batches = (sorted(set(each)) for each in zip(*there, strict=True))
    fitting = ((n, b) for n in gpus for b in batches if n * b <= cells.images)
    gaps = [cell for cell in fitting if cell not in there]
    if gaps and len(there) <= LARGE:
        number, batch = np.array(gaps).T
        gap = replace(cells, gpus=number, batch=batch)
        yield Finding(("missing_cell",), gap, np.ones(len(gaps), bool))


def _pasted(cells: Cells) -> np.ndarray:
    """Where the times of two numbers of GPUs are the same for all of two batch sizes or more."""
    place, time = np.zeros(len(cells.gpus), bool), cells.names["T"]
    for a, b in combinations(np.unique(cells.gpus).tolist()[:8], 2):
        same = cells.names["at"](time, a).middle == time.middle
        there = (cells.gpus == b) & time.known
        if there.sum() > 1 and same[there].all():
            place |= there
    return place
