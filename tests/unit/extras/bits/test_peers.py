"""Reference backends: timing in turns, and backends that are not installed."""

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import tables_experiments
from examples.made_here import assert_made_here
from extras.bits import engines, quantize_peers
from scaling.core import environment
from scaling.models.tutorial_cnn import load_weights, save_weights
from scaling.tables.experiments import quantization

ABSENT = "a-package-that-nobody-has"


def run_script(folder, *names):
    quantize_peers.main(
        [
            *("--dataset", str(folder / "images.npz"), "--manifest", str(folder / "manifest.json")),
            *("--weights", str(folder / "weights.pt"), "--seed", "0"),
            *("--calibration-images", "300", "--peers", *names),
            *("--output", str(folder / "peers.json")),
        ]
    )
    found: dict[str, Any] = json.loads((folder / "peers.json").read_text())
    return found


def written_table(folder):
    tables_experiments.main(["--peers", str(folder / "peers.json"), "--tables", str(folder)])
    return pd.read_csv(folder / "quantization_peers.csv")


def test_precisions_are_timed_in_turns_and_the_first_calls_are_left_out(monkeypatch):
    clock = [0.0]
    order = []

    def taking(name, seconds):
        times = itertools.chain(seconds, itertools.repeat(seconds[-1]))

        def run(batch):
            clock[0] += next(times)
            order.append(name)
            return batch

        return run

    monkeypatch.setattr(engines.time, "perf_counter", lambda: clock[0])
    # The first call compiles for 9 s, the others take 0.05 and 0.02 s: 2 and 5 fill a round.
    runs = {"float32": taking("float32", [9, 0.05]), "int8": taking("int8", [9, 0.02])}
    found = engines.interleaved_seconds(runs, torch.zeros(1))
    assert found["float32"] == pytest.approx([0.05] * engines.ROUNDS)
    assert found["int8"] == pytest.approx([0.02] * engines.ROUNDS)
    one_round = ["float32"] * 3 + ["int8"] * 6
    assert order == ["float32"] * 2 + ["int8"] * 2 + one_round * engines.ROUNDS


def test_backends_that_are_not_installed_or_break_are_noted_and_ours_is_measured(
    quantized_digits, monkeypatch
):
    def broken(_network, _batches, _threads):
        raise RuntimeError("needs another torch\nand more")

    there = {"onnxruntime": "1.0", "torchao": "1.0"}
    monkeypatch.setattr(environment, "installed", there.get)
    for name, packages in {"onnxruntime": ("onnxruntime", ABSENT), "torchao": ("torchao",)}.items():
        own = quantize_peers.Backend(packages, "", broken)
        monkeypatch.setitem(quantize_peers.PEERS, name, own)
    found = run_script(quantized_digits, "onnxruntime", "torchao")
    assert_made_here(found["environment"])
    table = written_table(quantized_digits)
    assert list(table["engine"]) == ["this study", "this study", "onnxruntime", "torchao"]
    assert list(table["status"]) == ["measured", "measured", "not installed", "failed"]
    ours, missing, failed = table.iloc[1], table.iloc[2], table.iloc[3]
    assert missing["note"].endswith(f"{ABSENT} not installed")
    assert failed["note"] == "RuntimeError: needs another torch"
    assert np.isnan(missing["accuracy_percent"]) and np.isnan(ours["batch_1_ratio"])
    assert ours["precision"] == "int8" and ours["accuracy_percent"] > 80
    assert ours["agreement_percent"] > 95 and ours["times_smaller"] > 3.9


def test_where_there_is_no_int8_network_of_ours_the_reason_is_told_and_float32_compared(
    quantized_digits, tmp_path, monkeypatch
):
    network = load_weights(quantized_digits / "weights.pt")
    network.fc3.bias.data[0] = 1e9
    for name in ("images.npz", "manifest.json"):
        (tmp_path / name).symlink_to(quantized_digits / name)
    save_weights(network, tmp_path / "weights.pt")
    absent = quantize_peers.Backend(("torchao", ABSENT), "", engines.torchao)
    monkeypatch.setitem(quantize_peers.PEERS, "torchao", absent)
    found = run_script(tmp_path, "torchao")
    assert list(found["ours"]) == ["float32"]
    assert list(written_table(tmp_path)["engine"]) == ["this study", "torchao"]
    (told,) = quantization.refused([found]).itertuples()
    assert (told.network, told.stage) == ("tutorial CNN", "int8")
    assert "more than an int32 holds" in told.reason


@pytest.mark.parametrize("name", list(quantize_peers.PEERS))
def test_a_peer_quantizes_the_same_network_about_as_well(name, quantized_digits):
    for package in quantize_peers.PEERS[name].packages:
        if environment.installed(package) is None:
            pytest.skip(f"{package} is not installed; see requirements-peers.txt")
    (peer,) = run_script(quantized_digits, name)["peers"]
    assert (peer["status"], peer["note"]) == ("measured", None)
    table = written_table(quantized_digits).set_index(["engine", "precision"])
    float32, int8 = table.loc[(name, "float32")], table.loc[(name, "int8")]
    assert float32["agreement_percent"] == 100
    assert float32["batch_1_ratio"] == float32["batch_256_ratio_max"] == 1
    assert int8["agreement_percent"] > 95
    # A float network given back as int8 would be as large.
    assert int8["times_smaller"] > 1.5
    for batch in (1, 256):
        low, ratio, high = (int8[f"batch_{batch}_ratio{end}"] for end in ("_min", "", "_max"))
        assert 0 < low <= ratio <= high
