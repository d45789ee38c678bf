"""The claims of tables made by hand, by their ids."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from examples import report_tables
from scaling.claims import claim_tables, registry
from scaling.claims.claim import Claim
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema

Tables = dict[str, pd.DataFrame]


def claims(folder: Path, made: Tables) -> dict[str, Claim]:
    """What a study with these tables claims."""
    report_tables.write(folder, made)
    paths = sorted((folder / "tables").rglob("*.csv"))
    evaluated = registry.evaluate(claim_tables.read(report_tables.STUDY, paths))
    return {claim.id: claim for claim in evaluated}


def with_times(change: Callable[[pd.DataFrame], None]) -> Tables:
    """The made-up study with its timing table changed and everything derived from it again."""
    timing = report_tables.cells(missing=False)
    change(timing)
    return report_tables.make() | report_tables.derive(timing)


def set_time(timing: pd.DataFrame, cell: tuple, seconds: float, loader: float = 0.0) -> None:
    """Give a cell (recipe, strategy, gpus, batch_size) a time of ± 2 %."""
    row = (timing[CELL_KEYS] == list(cell)).all(axis=1)
    timing.loc[row, "epoch_seconds"] = seconds
    timing.loc[row, "epoch_seconds_min"] = 0.98 * seconds
    timing.loc[row, "epoch_seconds_max"] = 1.02 * seconds
    timing.loc[row, "loader_seconds"] = loader
    for end, factor in (("", 1), ("_min", 0.99), ("_max", 1.01)):
        timing.loc[row, f"epoch_seconds_without_loading{end}"] = factor * (seconds - loader)


def device_time(cells: dict[int, tuple[float, float]]) -> pd.DataFrame:
    """device_time.csv of course/dp on 1 GPU: (step, busy) seconds by batch size, ± 1 % of gap."""
    rows = [
        {
            **dict(zip(CELL_KEYS, ["course", "dp", 1, batch], strict=True)),
            **{"step_seconds": step, "busy_seconds": busy, "compute_seconds": busy},
            "gap_seconds": step - busy,
            **{"gap_seconds_min": 0.99 * (step - busy), "gap_seconds_max": 1.01 * (step - busy)},
            **{"kernels": 300, "count": 3, "note": ""},
        }
        for batch, (step, busy) in cells.items()
    ]
    return pd.DataFrame(rows)


def instrumented(
    made: Tables,
    seconds: dict[int, float],
    estimate: str = "without_communication",
    spread: float | None = None,
) -> Tables:
    """The study with exposed communication read by an instrument on course/ddp, 4 GPUs, by batch.

    `seconds` are those of an epoch, `spread` the range of what was read.
    """
    timing = made["timing"]
    of_line = (timing["recipe"] == "course") & (timing["strategy"] == "ddp")
    rows = timing[of_line & (timing["gpus"] == 4) & timing["batch_size"].isin(seconds)]
    read = rows.assign(estimate=estimate, note="")
    read["communication_seconds"] = read["batch_size"].map(seconds)
    read["exposed_seconds"] = read["communication_seconds"]
    read["total_seconds"] = read["epoch_seconds_without_loading"]
    read["compute_seconds"] = read["total_seconds"] - read["communication_seconds"]
    read = read.assign(overlapped_seconds=None, moving_seconds=None, spread_seconds=spread)[
        schema.columns("communication")
    ]
    both = pd.concat([made["communication"], read], ignore_index=True)
    return made | {"communication": both}
