"""The figure of how weights and activations are distributed."""

from pathlib import Path

import pytest

import plot_quantization_histograms
from examples.quantized_digits import LAST, document, evaluate
from scaling.core.errors import UserError


@pytest.fixture(scope="module")
def study(quantized_digits: Path) -> Path:
    return quantized_digits


def test_histograms_need_int8_everywhere_and_the_figure_needs_histograms(
    study: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="weights has no int8 activations, logits and weights with"):
        evaluate(study, "never.json", "weights", {"activation_bits": None}, histograms=True)
    with pytest.raises(UserError, match=r"the record of weights\+activations has no histograms"):
        plot_quantization_histograms.draw(document(study, "weights+activations"))


def test_the_figure_shows_all_layers_and_is_the_same_bytes_each_time(
    study: Path, tmp_path: Path
) -> None:
    for name in ("one.svg", "again.svg"):
        plot_quantization_histograms.main(
            ["--record", str(study / f"{LAST}.json"), "--output", str(tmp_path / name)]
        )
    drawing = (tmp_path / "one.svg").read_text()
    assert drawing == (tmp_path / "again.svg").read_text()
    assert "<svg" in drawing and "<dc:date>" not in drawing
    figure = plot_quantization_histograms.draw(document(study))
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes[::3]] == [
        *("conv1", "conv2", "fc1", "fc2", "fc3")
    ]


def test_a_drawn_bin_holds_the_share_of_four_steps() -> None:
    # Steps -5 to 3 at 2 steps per unit; the bins begin at -8, -4, 0.
    edges = [(step - 0.5) / 2 for step in range(-5, 5)]
    histogram = plot_quantization_histograms.Histogram(
        bin_edges=edges, counts=[1, 0, 2, 0, 1, 10, 3, 2, 1]
    )
    shares, bounds = plot_quantization_histograms._shares(histogram, 2.0, 4)
    assert shares.tolist() == [0.05, 0.15, 0.8]
    assert bounds.tolist() == [-4.25, -2.25, -0.25, 1.75]


def test_fewer_bits_are_drawn_step_by_step_between_their_own_limits(study: Path) -> None:
    evaluate(study, "w4a4.json", "w4a4", {"weight_bits": 4, "activation_bits": 4}, histograms=True)
    figure = plot_quantization_histograms.draw(document(study, "w4a4"))
    found = document(study, "w4a4")["histograms"]
    entries = {(entry["layer"], entry["quantity"]): entry for entry in found}
    for axes, quantity, first in zip(
        figure.axes, ["weights", "before_relu"], [-7, -8], strict=False
    ):
        entry = entries["conv1", quantity]
        limits = [line.get_xdata()[0] * entry["scale"] for line in axes.lines]
        assert limits == pytest.approx([first - 0.5, 7.5])
        # One step a bin: as many as the record counts.
        assert len(axes.patches[0].get_data().values) == len(entry["int8"]["counts"])
