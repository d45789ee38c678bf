"""The machine: its limits, its link, a training step, and start-up times."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.figures import style
from scaling.tables.communication import MOVING, preferred_estimates

PHASES = ["imports", "recipe", "warmup", "measured"]
ROW_INCHES = 0.24


def draw_limits(peaks: pd.DataFrame) -> Figure | None:
    """Draw the peak rate of each kind of work: matrix products in TFLOP/s, copies in TB/s."""
    best = peaks[peaks["peak"]]
    rates = {f"rate{end}": best[f"value{end}"] / 1e12 for end in ("", "_min", "_max")}
    names = best["precision"] + " " + best["quantity"].str.replace("_", " ")
    names += best["state"].map({"sustained": " sustained"}).fillna("")
    best = best.assign(name=names.str.strip(), place=range(len(best)), **rates)
    if best.empty:
        return None
    figure, (axes,) = style.panels(["Best rates, TFLOP/s or TB/s"])
    style.lines(axes, [best], "place", "rate", "peaks", linestyle="none")
    style.log2_axis(axes.yaxis, style.POWERS, (best["rate"].min() / 2, best["rate"].max() * 2))
    axes.set_xticks(range(len(best)), best["name"].str.replace(" ", "\n"))
    return figure


def draw_bandwidth(interconnect: pd.DataFrame, bandwidth: pd.DataFrame) -> Figure | None:
    """Draw bus bandwidth over message size, a panel for each N: the sweep, and training.

    Open markers are DistributedDataParallel's buckets. Dots are trainings, at the bytes of a step,
    by the estimate that the report prefers.
    """
    counts = sorted(interconnect["gpus"].unique())
    if not counts:
        return None
    bytes_of, seconds = interconnect["message_bytes"], interconnect["seconds"]
    swept = interconnect.assign(
        rate=interconnect["busbw_gb_per_s"],
        rate_min=interconnect["busbw_gb_per_s"] * seconds / interconnect["seconds_max"],
        rate_max=interconnect["busbw_gb_per_s"] * seconds / interconnect["seconds_min"],
        name=interconnect["kind"] + ", " + bytes_of.map(fmt.data),
        open=interconnect["kind"].str.endswith("bucket"),
    )
    reached = preferred_estimates(bandwidth, MOVING).rename(columns={"bandwidth_gb_per_s": "rate"})
    titles = [f"All-reduce on {fmt.gpus(gpus)}" for gpus in counts]
    figure, panels = style.panels(titles, "bytes of a message", "GB/s")
    for axes, gpus in zip(panels, counts, strict=True):
        rows = swept[swept["gpus"] == gpus].sort_values("message_bytes")
        style.lines(axes, [rows], "message_bytes", "rate", "interconnect")
        rows = reached[reached["gpus"] == gpus]
        look = {"linestyle": "none", **style.numbered(1), "markersize": 3}
        style.lines(axes, [rows], "bytes_per_iteration", "rate", "bandwidth", **look)
        style.log2_axis(axes.xaxis, [1000 * 16**power for power in range(6)])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: fmt.data(size)))
        values = pd.concat([swept["rate"], reached["rate"]])
        style.log2_axis(axes.yaxis, style.POWERS, (values.min() / 2, values.max() * 2))
    style.legend(figure, ["all-reduce alone", "in a step of training"], linestyle="none")
    return figure


def draw_step(device_time: pd.DataFrame, readings: pd.DataFrame) -> Figure | None:
    """Draw a traced step of each batch size on the most GPUs: lanes of compute and communication.

    Overlapped communication is drawn under the end of compute.
    """
    traced = readings[readings["estimate"] == "profiler"].drop(columns=["count", "note"])
    rows = device_time.merge(traced, on=CELL_KEYS)
    rows = rows.dropna(subset=["compute_seconds", "exposed_seconds"])
    rows = rows[rows["gpus"] == rows["gpus"].max()]
    if rows.empty:
        return None
    compute, hidden, alone = (
        100 * rows[f"{part}_seconds"] / rows["step_seconds"]
        for part in ("compute", "overlapped", "exposed")
    )
    milliseconds = (1000 * rows["step_seconds"]).map("{:.3g} ms".format)
    cells = rows["recipe"] + " · " + rows["strategy"] + ", " + rows["batch_size"].astype(str)
    computing = pd.DataFrame({"lane": cells + ": " + milliseconds, "computing": compute})
    sending = {"": compute - hidden, "sending behind it": hidden, "sending alone": alone}
    lanes = pd.concat([computing, pd.DataFrame({"lane": "", **sending})]).sort_index(kind="stable")
    colours = [style.BLUE, "none", style.SKY, style.VERMILLION]
    table = lanes.fillna(0).reset_index(drop=True)
    return _stacked(table, "% of a step", "device_time.csv", colours)


def draw_startup(startup: pd.DataFrame) -> Figure | None:
    """Draw the seconds of a run by phase, the median over the batch sizes."""
    runs = startup[startup["run_seconds"].notna()]
    medians = runs.groupby(CELL_KEYS[:3]).median(numeric_only=True).reset_index()
    if medians.empty:
        return None
    lanes = medians["recipe"] + " · " + medians["strategy"] + " · " + medians["gpus"].astype(str)
    seconds = pd.DataFrame({phase: medians[f"{phase}_seconds"] for phase in PHASES}).fillna(0)
    table = seconds.assign(rest=medians["run_seconds"] - seconds.sum(axis=1))
    table.insert(0, "lane", lanes)
    return _stacked(table, "Seconds of a run", "startup.csv", style.COLOURS)


def _stacked(table: pd.DataFrame, title: str, source: str, colours: Sequence[str]) -> Figure:
    """Draw stacked horizontal bars, a row for each `lane`; a column without a name is a gap."""
    figure, (axes,) = style.panels([title])
    figure.set_figheight(1.3 + ROW_INCHES * len(table))
    left = pd.Series(0.0, table.index)
    parts = dict(zip(table.columns[1:], colours, strict=False))
    for part, colour in parts.items():
        bars = axes.barh(table.index, table[part], 0.8, left, color=colour)
        for bar, lane, width in zip(bars, table["lane"], table[part], strict=True):
            bar.set_url(f"{lane} {part} {fmt.significant(width)} · {source}")
        left += table[part]
    axes.set_yticks(table.index[table["lane"] != ""], table["lane"][table["lane"] != ""])
    axes.invert_yaxis()
    patches = [Patch(color=colour, label=part) for part, colour in parts.items() if part]
    style.legend(figure, [], *patches)
    return figure
