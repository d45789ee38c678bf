"""The printed ledger of int8, recomputed from its printed values alone."""

import re
from math import prod

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

import tables_make
from examples import quantized_digits as examples
from examples.configurations import changed
from scaling.core import files
from scaling.core.paired_accuracy import decode
from scaling.report.table import tables
from scaling.report.views import PARTS
from scaling.report.views.ranks_int8 import STEPS
from scaling.tables import schema

CONVOLUTIONS, LINEAR = ("conv1", "conv2"), ("fc1", "fc2", "fc3")


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def holds(formula):
    """Return whether a printed formula gives its result, within five digits."""
    left, right = formula.rsplit(" = ", 1)
    rounds = left.startswith("round(")
    found = prod(map(number, re.findall(r"−?[\d,]+(?:\.\d+)?", left.removeprefix("127 / "))))
    found = 127 / found if left.startswith("127 / ") else found
    return abs(found - number(right)) <= 1.5e-4 * abs(found) + 0.5 * rounds


def test_ledger_reproduces_the_classes_of_the_record(quantized_digits, tmp_path):
    """The ledger is recomputed with NumPy in int64, from weights, images and printed values."""
    path = str(quantized_digits / examples.VARIANT_PATTERN.format(variant=examples.LAST))
    records = {"quantization": [path]}
    tables_make.main(config=changed(), tables=tmp_path, records=records, runs=None)
    study = schema.read_study("demo", tmp_path.glob("*.csv"))
    ledger, formulas = {}, []
    steps = [table for table in tables(PARTS["B"], study, None) if table.name in STEPS]
    for table in steps:
        for row in table.rows:
            shown = dict(zip(table.columns, map(str, row), strict=True))
            ledger[row[0].text] = ledger.get(row[0].text, {}) | shown
            formulas += [text for text in shown.values() if " = " in text]
    # n_W of 5 layers; n_in, and S, o and S · o of 5; a bias of each.
    assert len(formulas) == 5 + 1 + 3 * 5 + 5
    for formula in formulas:
        assert holds(formula), formula

    weights = torch.load(quantized_digits / "weights.pt", weights_only=True)
    arrays = np.load(quantized_digits / "images.npz")
    manifest = files.read_json(quantized_digits / "manifest.json")
    pixels = arrays["test_images"] / 255
    images = ((pixels - manifest["mean"]) / manifest["std"]).transpose(0, 3, 1, 2)

    passed = ledger["images"]["n_in"].rsplit(" ")[-1]
    values = np.rint(number(passed) * images).clip(-128, 127).astype(np.int64)
    for layer in (*CONVOLUTIONS, *LINEAR):
        n_w, _, received, _, s = ledger[layer]["S"].split(" ")
        # Each layer receives the scale that the one before passes on.
        assert received == passed
        passed = ledger[layer]["next A"].rsplit(" ")[-1]
        weight, bias = (weights[f"{layer}.{part}"].double().numpy() for part in ("weight", "bias"))
        weight = np.rint(number(n_w) * weight).clip(-127, 127).astype(np.int64)
        bias = np.rint(number(s) * bias).astype(np.int64)
        if layer in CONVOLUTIONS:
            windows = sliding_window_view(values, (5, 5), axis=(2, 3))
            sums = np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, None, None]
        else:
            sums = values.reshape(len(values), -1) @ weight.T + bias
        values = np.rint(number(ledger[layer]["o"].rsplit(" ")[-1]) * sums)
        # Where a ReLU follows nothing is below 0.
        values = values.clip(-128 if layer == "fc3" else 0, 127).astype(np.int64)
        if layer in CONVOLUTIONS:
            n, channels, side, _ = values.shape
            values = values.reshape(n, channels, side // 2, 2, side // 2, 2).max(axis=(3, 5))
    record = examples.record(quantized_digits)
    assert (values.argmax(axis=1) == decode(record["classes"]["variant"])).mean() >= 0.99
    assert len(np.unique(values)) > 100
