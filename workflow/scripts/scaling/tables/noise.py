"""Estimate times as on an average machine, ratios of times with intervals, and verdicts.

The logarithm of a run's median time is the sum of effects of its configuration and its machine.
Least squares fit these effects for each recipe and version of the measuring code. All runs of one
recipe, strategy and number of GPUs have the same variance. The average machine has the weighted
mean effect of all machines. A machine's weight is its number of runs on the fewest GPUs.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.core.statistics import CONFIDENCE
from scaling.tables.schema import configuration, rows_of

SAME = 0.01
"""Two times are the same if the 90 % interval of their ratio lies within 1 ± this fraction."""
MOST_RUNS = 10**6
NO_TIME = "no ratio: one of the two has no time"
OTHER_CODE = "no ratio: other code measured the two"
NO_CHAIN = "no ratio: no chain of machines connects the two"
ENDS = ["low", "high"]
RATIO = ["ratio", *ENDS, "verdict", "more_runs", "scope", "note"]
"""Columns of a ratio: value, 95 % interval, verdict, runs to add, scope, and why it is NaN."""
Array = NDArray[np.float64]


def name_machines(records: Sequence[Mapping[str, Any]]) -> None:
    """Set `machine` in the environment of each record. Records of one machine get equal names.

    Nodes that one job or a chain of jobs connects are one machine, named `node+node`.
    """
    environments = [record["environment"] for record in records]
    named = [(one.get("machine") or "").split("+") for one in environments]
    part = pd.Series(named, dtype=object).explode()
    chains = _chains(part.index.to_numpy(), pd.factorize(part)[0])
    joined = part.groupby(chains[part.index]).agg(lambda own: sorted(set(own)))
    for environment, names in zip(environments, joined.loc[chains], strict=True):
        environment["machine"] = "+".join(names)


def _chains(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the connected component of each left node. Edge i joins `left[i]` and `right[i]`."""
    first = int(left.max()) + 1
    size = first + int(right.max()) + 1
    graph = coo_array((np.ones(len(left)), (left, first + right)), shape=(size, size))
    return connected_components(graph, directed=False)[1][:first]


def of_one_code(runs: pd.DataFrame, keys: Any = CELL_KEYS) -> pd.DataFrame:
    """Return, for each configuration, the runs of one `code` (version of the measuring code).

    Of the codes that a configuration ran with, this is the one with the most configurations of the
    recipe. The columns `keys` identify a configuration.
    """
    ran = runs.drop_duplicates([*keys, "code"]).groupby(["recipe", "code"]).size()
    shared = runs.join(ran.rename("shared"), on=["recipe", "code"])
    most = shared.sort_values(["shared", "code"]).groupby(list(keys))["code"].last()
    return runs[runs["code"] == runs.join(most.rename("most"), on=list(keys))["most"]]


class Noise:
    """A model of how the column `quantity` of `runs` depends on configuration, machine and noise.

    The columns `keys` of `runs` identify a configuration. For each configuration, the model uses
    only the runs `of_one_code`. If `apart`, each batch size has its own fit and variance.
    """

    def __init__(
        self, runs: pd.DataFrame, quantity: str, keys: Any = CELL_KEYS, apart: bool = False
    ) -> None:
        known = of_one_code(runs[runs[quantity] > 0].reset_index(drop=True), keys)

        def number(*columns: str) -> Any:
            return known.groupby(list(columns), sort=False, dropna=False).ngroup().to_numpy()

        first = known.drop_duplicates(list(keys))
        self._cells, cell = pd.MultiIndex.from_frame(first[list(keys)]), number(*keys)
        self._codes = first["code"].tolist()
        self._machines = known.groupby(cell)["machine"].agg(set).tolist()
        model = ["recipe", "code", *["batch_size"] * apart]
        self._runs, machine = np.bincount(cell), number(*model, "machine")
        self._logs = np.log(known[quantity].to_numpy(float))
        if known.empty:
            return
        kind = number(*model) if apart else number(*model, "strategy", "gpus")
        self._kinds = known.iloc[np.unique(kind, return_index=True)[1]]
        self._kind_of = kind[np.unique(cell, return_index=True)[1]]
        self._chain = _chains(cell, machine)
        effects = np.hstack([np.eye(len(first))[cell], np.eye(machine.max() + 1)[machine]])
        inverse = np.linalg.pinv(effects)
        # The average machine is that of the runs on the fewest GPUs, of each chain.
        of_machine = self._chain[cell[np.unique(machine, return_index=True)[1]]]
        alike = (self._chain[:, None] == of_machine).astype(float)
        fewest = known["gpus"].groupby(self._chain[cell]).transform("min")
        alike *= np.bincount(machine, known["gpus"] == fewest)
        average = alike / alike.sum(axis=1, keepdims=True)
        self._weights = inverse[: len(first)] + average @ inverse[len(first) :]
        fitted = effects @ inverse
        self._kind = np.eye(kind.max() + 1)[kind]
        squares = (self._logs - fitted @ self._logs) ** 2
        freedom = (1 - np.diag(fitted)) @ self._kind
        self._freedom = np.where(freedom > 1e-9, freedom, math.nan)
        self._variance = squares @ self._kind / self._freedom

    def _of(self, weights: Array) -> tuple[Array, Array, Array]:
        """Return `weights` [sum, run] @ log times, their standard errors and degrees of freedom."""
        parts = weights**2 @ self._kind
        parts = np.where(parts > 1e-12, parts * self._variance, 0)
        whole = parts.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = whole**2 / np.nansum(parts**2 / self._freedom, axis=1)
        return weights @ self._logs, np.sqrt(whole), np.where(whole > 0, freedom, math.inf)

    def times(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return the time (`value`) of each row's configuration, as on an average machine.

        `low` and `high` are the ends of its 95 % interval. `runs` and `machines` are counts.
        """
        table = pd.DataFrame(index=self._cells, columns=["value", *ENDS, "runs", "machines"])
        if len(table):
            log, error, freedom = self._of(self._weights)
            off = _reach(freedom) * error
            table[["value", *ENDS]] = np.exp(np.stack([log, log - off, log + off], axis=1))
            table["runs"], table["machines"] = self._runs, [*map(len, self._machines)]
        wanted = pd.MultiIndex.from_frame(cells[self._cells.names])
        return table.astype(float).reindex(wanted).set_axis(cells.index)

    def spreads(self) -> pd.DataFrame:
        """Return the noise of each recipe, strategy and number of GPUs, the smallest first.

        Runs that were not repeated have no row. `deviation` is the standard deviation of one run's
        time, as a fraction. `shows` is the smallest significant difference between the times of two
        configurations with `runs` runs each, as a fraction.
        """
        rows: list[Any] = []
        for kind, row in enumerate(rows_of(self._kinds) if len(self._logs) else ()):
            runs = int(np.median(self._runs[self._kind_of == kind]))
            deviation = math.sqrt(self._variance[kind])
            shows = math.expm1(_reach(self._freedom[kind]) * deviation * math.sqrt(2 / runs))
            name = f"{configuration(row.recipe, row.strategy)}, {fmt.gpus(row.gpus)}"
            rows.append((name, deviation, runs, shows))
        table = pd.DataFrame(rows, columns=["name", "deviation", "runs", "shows"]).dropna()
        return table.sort_values("deviation", kind="stable")

    def ratios(
        self, one: pd.DataFrame, other: pd.DataFrame, factor: pd.Series | float = 1.0
    ) -> pd.DataFrame:
        """Return `factor` · time of `one` / time of `other` row by row, with columns `RATIO`."""
        more = np.log(np.broadcast_to(np.asarray(factor, float), len(one)))
        wanted = (pd.MultiIndex.from_frame(own[self._cells.names]) for own in (one, other))
        rows = map(self._ratio, *map(self._cells.get_indexer, wanted), more)
        return pd.DataFrame(rows, one.index, RATIO)

    def _ratio(self, one: int, other: int, more: float) -> list[Any]:
        """Return a row of `ratios`; exp(`more`) multiplies its ratio.

        `one` and `other` are positions in `self._cells`, -1 for a configuration without a time.
        """
        unknown = [math.nan, math.nan, math.nan, "", math.nan, ""]
        if min(one, other) < 0:
            return [*unknown, NO_TIME]
        if self._codes[one] != self._codes[other]:
            return [*unknown, OTHER_CODE]
        if self._chain[one] != self._chain[other]:
            return [*unknown, NO_CHAIN]
        figures = self._of((self._weights[one] - self._weights[other])[None])
        log, error, freedom = (float(value[0]) for value in figures)
        off, log = float(_reach(freedom)) * error, log + more
        runs = min(self._runs[one], self._runs[other])
        shared = self._machines[one] & self._machines[other]
        ends = [math.exp(log + end) for end in (0, -off, off)]
        holds_for = scope(runs, shared, math.isnan(error))
        return [*ends, *verdict(log, error, freedom, runs), holds_for, ""]


def _reach(freedom: Any, confidence: float = CONFIDENCE) -> Any:
    """Return half the width of Student's t interval, in standard errors, for `freedom` degrees."""
    return stdtrit(freedom, (1 + confidence) / 2)


def most_nodes(machines: Iterable[str]) -> int:
    """Return the largest number of nodes of one of `machines`, 0 if there are none."""
    return max((name.count("+") + 1 for name in machines), default=0)


def scope(runs: int, machines: Set[str], unknown: bool) -> str:
    """Return the basis of a ratio as text: `3 machines`, or for one machine `5 runs, 1 machine`.

    All `machines` timed both sides. A machine of several nodes is `2 nodes`. If the ratio's
    interval is `unknown`, the text is `5 runs: no interval`.
    """
    if len(machines) > 1 and not unknown:
        return fmt.plural(len(machines), "machine")
    nodes = most_nodes(machines)
    on = [fmt.plural(nodes, "node")] * (nodes > 1)
    if not unknown:
        on = on or ["1 machine" if machines else "by way of other machines"]
    return ", ".join([fmt.plural(runs, "run"), *on]) + ": no interval" * unknown


def verdict(log: float, error: float, freedom: float, runs: int) -> tuple[str, float]:
    """Return the verdict on a ratio, and how many runs to add if it is `unclear` (else NaN).

    The ratio is a baseline's time / a configuration's time. `log` is its logarithm, with standard
    error `error` and degrees of `freedom`. The verdict is `faster` (ratio above 1) or `slower` if
    the 95 % interval excludes 1, `same` if the 90 % interval is within 1 ± `SAME`, and otherwise
    `unclear`. It is "" if the error is NaN. More runs than `runs` shorten the interval.
    """
    if math.isnan(error):
        return "", math.nan
    if (found := _judged(log, error, freedom)) != "unclear":
        return found, math.nan

    def decides(count: int) -> bool:
        freer = freedom * (count - 1) / max(runs - 1, 1)
        return _judged(log, error * math.sqrt(runs / count), freer) != "unclear"

    enough = bisect_left(range(MOST_RUNS), True, lo=runs + 1, key=decides)
    return found, enough - runs if enough < MOST_RUNS else math.nan


def _judged(log: float, error: float, freedom: float) -> str:
    if abs(log) > _reach(freedom) * error:
        return "faster" if log > 0 else "slower"
    same = _reach(freedom, 2 * CONFIDENCE - 1) * error < math.log1p(SAME) - abs(log)
    return "same" if same else "unclear"
