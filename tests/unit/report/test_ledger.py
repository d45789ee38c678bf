"""What a pocket calculator makes of the ledger as it is printed, and an own pass through it."""

import re
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import tables_experiments
from examples import quantized_digits as examples
from scaling.core.paired_accuracy import decode
from scaling.report.table import tables
from scaling.report.views import PARTS
from scaling.tables import schema

ROOT = Path(__file__).parents[3]
STORED = ROOT / "tests/snapshots/expected/quantization-cifar10/report.txt"


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def holds(formula):
    """Whether a formula as it is printed gives its result, within the five digits of all in it."""
    left, right = formula.rsplit(" = ", 1)
    rounds, product = left.startswith("round("), 1.0
    for factor in re.findall(r"−?[\d,]+(?:\.\d+)?", left.removeprefix("127 / ")):
        product *= number(factor)
    found = 127 / product if left.startswith("127 / ") else product
    return abs(found - number(right)) <= 1.5e-4 * abs(found) + 0.5 * rounds


def test_every_identity_of_the_printed_page_holds_within_its_digits():
    parts = STORED.read_text(encoding="utf-8").split("# ")
    page = {part.partition("\n")[0]: part.splitlines()[1:] for part in parts}
    assert list(page)[1] == "Accuracy by stage"
    steps = {title[:2]: lines for title, lines in page.items() if re.match(r"[1-5]\. ", title)}
    assert list(steps) == ["1.", "2.", "3.", "4.", "5."]
    cells = [cell for lines in steps.values() for line in lines for cell in line.split(" | ")]
    shown = [cell for cell in cells if " = " in cell and "n_W" not in cell]
    # n_W of 5 layers; n_in, and S, o and S · o of 5; a bias of each.
    assert len(shown) == 5 + 1 + 3 * 5 + 5
    for formula in shown:
        assert holds(formula), formula
    # Each layer receives the scale that the one before passes on.
    images, *layers = [line.split(" | ") for line in steps["4."][1:]]
    passed = images[1].rsplit(" = ")[1]
    for _, _, received, _, passes, *_ in layers:
        assert received.split(" ")[2] == passed
        passed = passes.rsplit(" = ")[1]


def test_an_own_pass_through_the_printed_scales_gives_the_classes_of_the_record(
    quantized_digits, torch, tmp_path
):
    """In int64 by NumPy, from the weights, the images and the printed figures alone."""
    path = str(quantized_digits / examples.VARIANT_PATTERN.format(variant=examples.LAST))
    tables_experiments.main(["--variants", path, "--tables", str(tmp_path)])
    study = schema.read_study("digits", tmp_path.glob("*.csv"))
    (table,) = (one for one in tables(PARTS["B"], study, None) if one.name == "activation-scales")
    columns = [column for column, _ in table.columns]
    ledger = {
        row[0].text: dict(zip(columns, [cell.text for cell in row], strict=True))
        for row in table.rows
    }
    weights = torch.load(quantized_digits / "weights.pt", weights_only=True)
    arrays = np.load(quantized_digits / "images.npz")
    manifest = examples.document(quantized_digits, "manifest")
    pixels = arrays["test_images"] / 255
    images = ((pixels - manifest["mean"]) / manifest["std"]).transpose(0, 3, 1, 2)

    values = np.rint(number(ledger["images"]["n_in"].rsplit(" ")[-1]) * images)
    values = values.clip(-128, 127).astype(np.int64)
    for layer in ("conv1", "conv2", "fc1", "fc2", "fc3"):
        n_w, _, _, _, s = ledger[layer]["S"].split(" ")
        weight, bias = (weights[f"{layer}.{part}"].double().numpy() for part in ("weight", "bias"))
        weight = np.rint(number(n_w) * weight).clip(-127, 127).astype(np.int64)
        bias = np.rint(number(s) * bias).astype(np.int64)
        if weight.ndim == 4:
            windows = sliding_window_view(values, (5, 5), axis=(2, 3))
            sums = np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, None, None]
        else:
            sums = values.reshape(len(values), -1) @ weight.T + bias
        values = np.rint(number(ledger[layer]["o"].rsplit(" ")[-1]) * sums)
        # Where a ReLU follows nothing is below 0.
        values = values.clip(-128 if layer == "fc3" else 0, 127).astype(np.int64)
        if weight.ndim == 4:
            n, channels, side, _ = values.shape
            values = values.reshape(n, channels, side // 2, 2, side // 2, 2).max(axis=(3, 5))
    record = examples.record(quantized_digits)
    assert (values.argmax(axis=1) == decode(record["classes"]["variant"])).mean() >= 0.99
    assert len(np.unique(values)) > 100
