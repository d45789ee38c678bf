"""What docs/quantization.md says int8 costs on CIFAR-10, held to the stored study of it."""

import math
import re
from pathlib import Path

import pandas as pd

from examples.findings import section
from scaling.core import numbers as fmt
from scaling.core.records.quantization import EXPORT, STAGED, VARIANT, read
from scaling.tables.experiments import quantization
from scaling.tables.experiments.quantization_cost import cost, difference, reach

ROOT = Path(__file__).parents[3]
STUDY = ROOT / "studies/quantization-cifar10"
ROW = re.compile(r"^\| .* \| `([\w+-]+)` \| (.*) \|$", re.MULTILINE)
MISTAKE = re.compile(r"^\| `?([\w+]+)`? \| (.*) \| (.*) \|$", re.MULTILINE)
INT8 = "weights+activations+bias"


def test_every_figure_of_the_readme_is_that_of_the_records():
    documents = read(VARIANT, sorted(STUDY.glob("quantization/*/*/*.json")))
    table = quantization.variants(documents)
    compared = table["logits_compared"].sum()
    assert f"Each of the {compared:,.0f} logits" in section("quantization-cifar10")
    lines = ROW.findall(section("quantization-cifar10"))
    assert {"weights", INT8, "best-float-logits", "w4a4-gptq"} <= {name for name, _ in lines}
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
        mean = table[table["stage"] == stage].mean(numeric_only=True)
        share = f"{100 * mean['clipped_share_calibration']:.3g} %"
        shown = f"| {level} | {mean['accuracy_percent']:.2f} | {share} |"
        assert f"{shown} {mean['sqnr_after_relu_db']:.1f} |" in section("quantization-cifar10")
    exports = quantization.exports(read(EXPORT, STUDY.glob("quantization/*/export.json")))
    exports = exports[exports["network"] != "float32"]
    assert (exports[["differing_classes", "differing_logits"]] == 0).all(axis=None)
    for batch in (1, 16):
        shown = "{:.2f} and {:.2f} times".format(*exports[f"batch_{batch}_ratio"])
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


def test_what_resnet_loses_and_how_fast_it_is_are_of_the_records():
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
    files = quantization.exports(read(EXPORT, study.glob("quantization/*/*_export.json")))
    for row in files.itertuples():
        assert f"{row.file_bytes / 1e6:.1f} MB | {row.accuracy_percent:.2f} |" in words
        assert row.network == "float32" or row.times_smaller > 1 / 0.27
        for batch in (1, 16):
            name = f"batch_{batch}"
            assert f"| {fmt.significant(1e3 * getattr(row, f'{name}_seconds'))} |" in words
            fast = [1 / getattr(row, f"{name}_ratio{end}") for end in ("", "_max", "_min")]
            wanted = "{:.2f} ({:.2f} to {:.2f})".format(*fast)
            assert row.network == "float32" or wanted in words, wanted
    elsewhere = quantization.exports(read(EXPORT, [study / "export-epyc.json"]))
    for row in elsewhere[elsewhere["network"] != "float32"].itertuples():
        ratios = 1 / row.batch_1_ratio, 1 / row.batch_16_ratio
        assert "{:.2f} and {:.2f}".format(*ratios) in " ".join(words.split())
