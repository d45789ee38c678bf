"""What a printed figure was computed by, and which mistake it is."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from scaling.published.definitions import DEFINITIONS, OF_ANOTHER_ROW, Definition, Facts
from scaling.published.printed_figures import Figure, closeness, last_digit

FROM_SINGLE = {"speedup", "compute_seconds", "communication_seconds"}


def own_definition(figures: list[Figure], choices: list[Definition]) -> Definition | None:
    """Of `choices`, the one that gives most of a study's figures of one quantity, at least half.

    The first among equals; None when there is none.
    """
    # On one GPU the definitions agree, so that it tells nothing; without T(1,b) ours has no vote.
    several = [figure for figure in figures if figure.facts.gpus > 1]
    several = [figure for figure in several if _has_single(figure)] or several

    def votes(definition: Definition) -> int:
        return sum(_gives(definition, figure) for figure in several)

    best = max((choice for choice in choices if choice.chosen), key=votes, default=None)
    return best if several and best and 2 * votes(best) >= len(several) else None


def giving(figure: Figure, own: Definition | None, choices: list[Definition]) -> Definition | None:
    """The first definition that gives the figure exactly: `own`, of `choices`, of another row.

    Where the study has no T(1,b), a speedup that agrees with a ratio of other times does so by
    chance, unless most of the study's do.
    """
    if unchecked(figure, own):
        choices = [] if figure.quantity == "speedup" else choices
    elif figure.quantity in OF_ANOTHER_ROW:
        name, divisor = OF_ANOTHER_ROW[figure.quantity]
        values = [single / divisor(figure.facts) for single in figure.facts.other_singles]
        value = min(values, key=lambda value: abs(value - float(figure.printed)), default=math.nan)
        choices = [*choices, Definition(name, lambda _: value, ("another_row",))]
    first = [own] if own else []
    return next((choice for choice in [*first, *choices] if _gives(choice, figure)), None)


def without_definition(
    figure: Figure, own: Definition | None, others: Sequence[Figure]
) -> tuple[str, ...]:
    """The mistakes of a figure that no definition gives; `others` are all such of its strategy."""
    if reason := unchecked(figure, own):
        return (reason,)
    if _of_another_single(figure, others):
        return ("other_single_time",)
    if closeness(figure.derived, figure.printed) == "nearly":
        return ()
    if own and closeness(own.value(figure.facts), figure.printed) == "nearly":
        return own.mistakes
    return ("unexplained",)


def unchecked(figure: Figure, own: Definition | None) -> str:
    """The name of the mistake that says why nothing could give the figure; "" if something can."""
    facts = figure.facts
    if math.isnan(facts.seconds):
        return "no_time"
    if figure.quantity == "utilization_percent":
        return "no_peak" if own is None or math.isnan(own.value(facts)) else ""
    if figure.quantity in FROM_SINGLE:
        return "" if _has_single(figure) else "no_single_time"
    if math.isnan(facts.gradient_bytes):
        return "no_parameters"
    return "no_single_time" if math.isnan(facts.moving_seconds) else ""


def implied_single(figure: Figure) -> tuple[float, float]:
    """The T(1,b) from which the figure would follow, and how far its last digit moves it."""
    facts, printed, digit = figure.facts, float(figure.printed), last_digit(figure.printed)
    return {
        "compute_seconds": (facts.gpus * printed, facts.gpus * digit),
        "communication_seconds": (facts.gpus * (facts.seconds - printed), facts.gpus * digit),
        "speedup": (facts.seconds * printed, facts.seconds * digit),
    }.get(figure.quantity, (math.nan, math.nan))


def _of_another_single(figure: Figure, others: Sequence[Figure]) -> bool:
    """Whether another T(1,b) explains the figure better than chance.

    Any figure follows from some T(1,b). So a second figure must imply the same one; or it is a
    compute time, and the one it implies is nearly that of the study's table.
    """
    facts, (seconds, margin) = figure.facts, implied_single(figure)
    for other in others:
        again, again_margin = implied_single(other)
        same_batch = other.facts.batch_size == facts.batch_size and _independent(figure, other)
        if same_batch and abs(seconds - again) <= margin + again_margin:
            return True
    computes = [
        closeness(c, figure.printed) for c in (facts.compute, facts.compute_without_loading)
    ]
    return figure.quantity == "compute_seconds" and "nearly" in computes


def _independent(one: Figure, other: Figure) -> bool:
    """Compute and communication of one cell are not: one is the rest of the other."""
    if one.facts.gpus != other.facts.gpus:
        return True
    return one.quantity != other.quantity and "speedup" in (one.quantity, other.quantity)


def shares(figures: list[Figure]) -> list[Definition]:
    """The definitions of a printed utilization: its bandwidth over one number, or one for each N.

    `figures` are all of a strategy. The number is the one that gives most of the shares; where it
    gives some on several N, the document may have typed it in. One for each N needs two batch
    sizes that agree. The bandwidth is the study's own, by its own definition before it was rounded,
    or ours.
    """
    rates = [figure for figure in figures if figure.quantity == "bandwidth_gb_per_s"]
    printed = [f for f in figures if f.quantity == "utilization_percent" and f.printed]
    own = own_definition(rates, DEFINITIONS["bandwidth_gb_per_s"])
    ours = {figure.facts: figure.derived for figure in rates}
    rules = [*([own.value] if own else []), lambda cell: ours.get(cell, math.nan)]
    return [found for rule in rules for found in _shares_of(rule, printed)]


def _shares_of(rate: Callable[[Facts], float], printed: list[Figure]) -> list[Definition]:
    def share_of(number: float) -> Definition:
        name = f"bandwidth / {number:.3g} GB/s"
        return Definition(name, lambda cell: 100 * rate(cell) / number, ("one_peak",))

    def peak(shares: list[Figure]) -> tuple[float, set[int]]:
        """The number that gives most of `shares`, NaN for fewer than two, and the N of those."""
        numbers = [100 * rate(share.facts) / float(share.printed) for share in shares]
        numbers = [number for number in numbers if number > 0]
        best, given = math.nan, list[Figure]()
        for number in [*([median(numbers)] if numbers else []), *numbers]:
            gives = [share for share in shares if _gives(share_of(number), share)]
            if len(gives) > max(1, len(given)):
                best, given = number, gives
        return best, {share.facts.gpus for share in given}

    number, on = peak(printed)
    of_each = {
        gpus: peak([share for share in printed if share.facts.gpus == gpus])[0]
        for gpus in {share.facts.gpus for share in printed}
    }
    each = Definition(
        "bandwidth / one peak for each N",
        lambda cell: 100 * rate(cell) / of_each.get(cell.gpus, math.nan),
    )
    return [share_of(number), each] if len(on) > 1 else [each]


def _has_single(figure: Figure) -> bool:
    return figure.quantity not in FROM_SINGLE or not math.isnan(figure.facts.single)


def _gives(definition: Definition, figure: Figure) -> bool:
    return closeness(definition.value(figure.facts), figure.printed) == "exactly"
