"""A published study without a mistake, as CSV text, and ways to break it.

50,000 images, K = 44,695,848 bytes. An iteration communicates for 4 ms, for all N and b, so
T(N,b) = T(1,b) / N + iterations · 4 ms, both with and without loading:

    b=128: T(1) 18.0 (17.8 without loading), 196 and 98 iterations on 2 and 4 GPUs
    b=512: T(1) 17.0 (16.8 without loading), 49 and 25 iterations

A ring of 2 GPUs sends K per iteration: 44,695,848 B / 4 ms = 11.173962 GB/s. One of 4 sends 1.5 K.
"""

from io import StringIO
from pathlib import Path

import pandas as pd

from grader.judge import Finding, judge
from grader.study import read_folder

TRAIN_IMAGES = 50_000
TEMPLATE = Path(__file__).parents[3] / "studies/template.csv"
HEADER = TEMPLATE.read_text(encoding="utf-8").splitlines()[0]
CLEAN = f"""{HEADER}
clean,ddp,resnet18-cifar,11173962,1,128,ok,18.000,17.800,1,,,,5,17.9,18.1
clean,ddp,resnet18-cifar,11173962,1,512,ok,17.000,16.800,1,,,,5,16.9,17.1
clean,ddp,resnet18-cifar,11173962,2,128,ok,9.784,9.684,1.840,8.900,0.784,11.17,5,9.7,9.9
clean,ddp,resnet18-cifar,11173962,2,512,ok,8.696,8.596,1.955,8.400,0.196,11.17,5,8.6,8.8
clean,ddp,resnet18-cifar,11173962,4,128,ok,4.892,4.842,3.679,4.450,0.392,16.76,5,4.8,5.0
clean,ddp,resnet18-cifar,11173962,4,512,ok,4.350,4.300,3.908,4.200,0.100,16.76,5,4.3,4.4
clean,ddp,resnet18-cifar,11173962,4,65536,infeasible,,,,,,,,,
"""
CELLS = [(2, 128), (2, 512), (4, 128), (4, 512)]


def edited(values: dict[tuple[int, int], dict[str, str]], text: str = CLEAN) -> str:
    """Return `text` with other fields in the rows of (gpus, batch_size), which are the keys."""
    table = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
    for (n, b), fields in values.items():
        place = (table["gpus"] == str(n)) & (table["batch_size"] == str(b))
        table.loc[place, [*fields]] = [*fields.values()]
    return table.to_csv(index=False)


def column(name: str, *values: str) -> dict[tuple[int, int], dict[str, str]]:
    """Return `values` of column `name` in the rows with several GPUs, in the form for `edited`."""
    return {cell: {name: value} for cell, value in zip(CELLS, values, strict=True)}


def write(folder: Path, text: str = CLEAN) -> Path:
    """Write the study to timings.csv in `folder`."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "timings.csv").write_text(text, encoding="utf-8")
    return folder


def study(folder: Path, text: str = CLEAN) -> list[Finding]:
    """Return the findings on the study with this text."""
    each = read_folder(write(folder, text))
    return judge(each[0], TRAIN_IMAGES).findings


def causes_of(findings: list[Finding], *severities: str) -> dict[str, list[tuple[int, int]]]:
    """Return the rows (gpus, batch_size) of each cause. Default: errors and warnings."""
    causes = dict[str, list[tuple[int, int]]]()
    for one in findings:
        if one.severity in (severities or ("error", "warning")):
            cells = zip(one.cells.gpus[one.place], one.cells.batch[one.place], strict=True)
            causes.setdefault(one.cause, []).extend((int(n), int(b)) for n, b in cells)
    return causes
