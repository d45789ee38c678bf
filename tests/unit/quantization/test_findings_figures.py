"""What docs/quantization.md says int8 costs on CIFAR-10, held to the stored study of it."""

import math
import re
from pathlib import Path

import pandas as pd

from examples.findings import section
from scaling.core.records.quantization import STAGED, VARIANT, read
from scaling.tables.experiments import quantization
from scaling.tables.experiments.quantization import cost, difference, reach

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "studies/quantization-cifar10"
ROW = re.compile(r"^\| .* \| `([\w+-]+)` \| (.*) \|$", re.MULTILINE)
MISTAKE = re.compile(r"^\| `?([\w+]+)`? \| (.*) \| (.*) \|$", re.MULTILINE)
INT8 = "weights+activations+bias"
WORST = {"clipped_share_calibration": "max", "sqnr_after_relu_db": "min"}


def test_every_figure_of_the_readme_is_that_of_the_records():
    documents = read(VARIANT, sorted(STUDY.glob("quantization/*/*/*.json")))
    table = quantization.variants(documents)
    compared = table["logits_compared"].sum()
    assert f"Each of the {compared:,.0f} logits" in section("quantization-cifar10")
    lines = ROW.findall(section("quantization-cifar10"))
    assert {"weights", INT8, "per-channel", "w4a4-max_abs"} <= {name for name, _ in lines}
    for name, shown in lines:
        rows = table[table["stage"] == name]
        found, smaller = cost(rows), rows["compression"].mean()
        assert shown.split(" | ") == [
            *(difference(found), reach(found)),
            *(f"{found.agreement_percent:.1f}", f"{smaller:.2f}×"),
        ], name
    found = cost(table[table["stage"] == INT8])
    for readme in (ROOT / "README.md", STUDY / "README.md"):
        words = readme.read_text(encoding="utf-8")
        assert difference(found) in words and reach(found) in words
    for level, stage in ((127, INT8), (255, "mistake-255_for_127")):
        same = [one for one in documents if one["variant"] == stage]
        worst = pd.DataFrame(pd.DataFrame(one["layers"]).agg(WORST) for one in same).mean()
        share = f"{100 * worst['clipped_share_calibration']:.3g} %"
        mean = table[table["stage"] == stage]["accuracy_percent"].mean()
        shown = f"| {level} | {mean:.2f} | {share} | {worst['sqnr_after_relu_db']:.1f} |"
        assert shown in section("quantization-cifar10")
    beside = quantization.paired(documents).set_index("stage").loc["mistake-255_for_127"]
    assert f"by {difference(beside)} points" in section("quantization-cifar10")


def test_the_readme_says_what_mistakes_make_of_the_networks_of_the_lab():
    ours = pd.read_csv(STUDY.parent / "published/lab_networks.csv")
    _, *lines = MISTAKE.findall(section("published"))
    assert len(lines) == 7
    last_stage = {"none": "weights+activations", "last": INT8}
    for place, (biases, stage) in enumerate(last_stage.items()):
        networks = ours[(ours["biases"] == biases) & (ours["stage"] == stage)]
        last = networks.groupby("mistake")["accuracy_percent"]
        assert (last.count() == 8).all()
        for mistake, *shown in lines:
            name = mistake.replace("none", "no mistake")
            found = last.agg(["mean", "min", "max"]).reindex([name])
            ((mean, low, high),) = found.itertuples(index=False)
            wanted = "–" if math.isnan(mean) else f"{mean:.2f} ({low:.2f} to {high:.2f})"
            assert shown[place] == wanted, (biases, mistake)


def test_what_resnet_loses_is_of_the_records():
    study, words = STUDY.parent / "quantization-resnet18", section("quantization-resnet18")
    documents = read(STAGED, study.glob("quantization/*/resnet18.json"))
    table = quantization.resnet(documents)
    assert f"None of {table['logits'].sum():,.0f} logits" in words
    assert table["differing_logits"].sum() == 0
    for (_, stage), rows in table.groupby(["weight_scales", "stage"]):
        if stage == INT8:
            found = cost(rows)
            shown = f"{difference(found)} | {reach(found)} | {found.agreement_percent:.1f} |"
            assert shown in words
            assert (rows["difference_points"] > -0.3).all() and (
                rows["agreement_percent"] > 97
            ).all()
