"""What a printed figure was computed by, and which mistake it is."""

import math
from collections.abc import Callable, Sequence
from statistics import median

from scaling.published.definitions import (
    DEFINITIONS,
    OF_ANOTHER_ROW,
    Definition,
    Facts,
    compute,
    compute_without_loading,
)
from scaling.published.printed_figures import Figure, closeness, last_digit

FROM_SINGLE = {"speedup", "compute_seconds", "communication_seconds"}


def own_definition(figures: list[Figure], choices: list[Definition]) -> Definition | None:
    """Of `choices`, the one that gives most of a study's figures of one quantity, at least half.

    The first among equals; None when there is none.
    """
    # On one GPU the definitions agree, so that it tells nothing; without T(1,b) ours has no vote.
    several = [figure for figure in figures if figure.facts.gpus > 1]
    several = [figure for figure in several if _has_single(figure)] or several
    chosen = [definition for definition in choices if definition.chosen]
    if not several or not chosen:
        return None
    votes = [sum(_gives(definition, figure) for figure in several) for definition in chosen]
    best = max(votes)
    return chosen[votes.index(best)] if 2 * best >= len(several) else None


def giving(figure: Figure, own: Definition | None, choices: list[Definition]) -> Definition | None:
    """The first definition that gives the figure exactly: `own`, of `choices`, of another row.

    Where the study has no T(1,b), a speedup that agrees with a ratio of other times does so by
    chance, unless most of the study's do.
    """
    printed = float(figure.printed)
    other = OF_ANOTHER_ROW.get(figure.quantity)
    if unchecked(figure, own):
        choices = [] if figure.quantity == "speedup" else choices
    elif other:
        name, value = other
        choices = [*choices, Definition(name, lambda cell: value(cell, printed), ("another_row",))]
    first = [own] if own else []
    return next((choice for choice in [*first, *choices] if _gives(choice, figure)), None)


def without_definition(
    figure: Figure, own: Definition | None, others: Sequence[Figure]
) -> tuple[str, ...]:
    """The mistakes of a figure that no definition gives; `others` are all such of its strategy."""
    reason = unchecked(figure, own)
    if reason:
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
    if figure.quantity == "compute_seconds":
        return facts.gpus * printed, facts.gpus * digit
    if figure.quantity == "communication_seconds":
        return facts.gpus * (facts.seconds - printed), facts.gpus * digit
    if figure.quantity == "speedup":
        return facts.seconds * printed, facts.seconds * digit
    return math.nan, math.nan


def _of_another_single(figure: Figure, others: Sequence[Figure]) -> bool:
    """Whether another T(1,b) explains the figure better than chance.

    Any figure follows from some T(1,b). So a second figure must imply the same one; or it is a
    compute time, and the one it implies is nearly that of the study's table.
    """
    seconds, margin = implied_single(figure)
    same_batch = [
        other
        for other in others
        if other.facts.batch_size == figure.facts.batch_size and _independent(figure, other)
    ]
    if any(
        abs(seconds - again) <= margin + again_margin
        for again, again_margin in map(implied_single, same_batch)
    ):
        return True
    return figure.quantity == "compute_seconds" and any(
        closeness(rule(figure.facts), figure.printed) == "nearly"
        for rule in (compute, compute_without_loading)
    )


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

    def peak(shares: list[Figure]) -> tuple[float, list[Figure]]:
        """The number that gives most of `shares`, and those it gives; NaN for fewer than two."""
        numbers = [100 * rate(share.facts) / float(share.printed) for share in shares]
        numbers = [number for number in numbers if number > 0]
        best, given = math.nan, list[Figure]()
        for number in [*([median(numbers)] if numbers else []), *numbers]:
            gives = [share for share in shares if _gives(share_of(number), share)]
            if len(gives) > max(1, len(given)):
                best, given = number, gives
        return best, given

    number, given = peak(printed)
    of_each = {
        gpus: peak([share for share in printed if share.facts.gpus == gpus])[0]
        for gpus in {share.facts.gpus for share in printed}
    }
    each = Definition(
        "bandwidth / one peak for each N",
        lambda cell: 100 * rate(cell) / of_each.get(cell.gpus, math.nan),
    )
    several = len({share.facts.gpus for share in given}) > 1
    return [share_of(number), each] if several else [each]


def _has_single(figure: Figure) -> bool:
    return figure.quantity not in FROM_SINGLE or not math.isnan(figure.facts.single)


def _gives(definition: Definition, figure: Figure) -> bool:
    return closeness(definition.value(figure.facts), figure.printed) == "exactly"
