"""Figures of int8 in docs/quantization.md equal those of the stored study."""

import re
from pathlib import Path

import pandas as pd

from examples.configurations import section
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import decode, mean_difference
from scaling.core.records.kind import VARIANT
from scaling.tables import ranks_int8
from scaling.tables.ranks_int8 import costs, difference, reach

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "studies/quantization-cifar10"
ROW = re.compile(r"^\| .* \| `([\w+-]+)` \| (.*) \|$", re.MULTILINE)
INT8 = "weights+activations+bias"
WORST = {"clipped_share_calibration": "max", "sqnr_after_relu_db": "min"}


def test_readme_figures_are_those_of_the_records():
    documents = [VARIANT.read(path) for path in STUDY.glob("quantization/*/*/*.json")]
    table, words = ranks_int8.quantization(documents), section("quantization-cifar10")
    compared = [one["exactness"] for one in documents if one["exactness"]]
    assert not any(one["differing"] for one in compared)
    assert f"All {sum(one['logits'] for one in compared):,} logits" in words
    found = {row.stage: row for row in costs(table).itertuples()}
    lines = dict(ROW.findall(words))
    assert {"weights", INT8, "per-channel", "w4a4-max_abs"} <= lines.keys()
    for name, shown in lines.items():
        row = found[name]
        shares = f"{row.agreement_percent:.1f} | {row.compression:.2f}×"
        assert shown == f"{difference(row)} | {reach(row)} | {shares}", name
    for readme in (ROOT / "README.md", STUDY / "README.md"):
        told = readme.read_text(encoding="utf-8")
        assert difference(found[INT8]) in told and reach(found[INT8]) in told
    for level, stage in ((127, INT8), (255, "mistake-255_for_127")):
        same = [one for one in documents if one["variant"] == stage]
        worst = pd.DataFrame(pd.DataFrame(one["layers"]).agg(WORST) for one in same).mean()
        share = f"{100 * worst['clipped_share_calibration']:.3g} %"
        mean = found[stage].accuracy_percent
        assert f"| {level} | {mean:.2f} | {share} | {worst['sqnr_after_relu_db']:.1f} |" in words
    mistaken, sound = (
        {one["seed"]: one["classes"] for one in documents if one["variant"] == stage}
        for stage in ("mistake-255_for_127", INT8)
    )
    classes = [[decode(of[seed]["variant"]) for seed in mistaken] for of in (sound, mistaken)]
    beside = mean_difference(decode(documents[0]["classes"]["labels"]), *classes)
    points, error = beside.values()
    assert f"by {fmt.points(points)} ± {2 * error:.2f} points" in words
