"""The figure of accuracy against packed size."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import plot_quantization_sizes
from examples import quantization_example
from scaling.core.errors import UserError
from scaling.figures import style
from scaling.tables import io, schema


@pytest.fixture(autouse=True)
def common_style():
    with style.style("test"):
        yield


def drawn(folder: Path, *without: str) -> Figure:
    table = quantization_example.variants()
    io.write(table[~table["stage"].isin(without)], folder / "quantization.csv")
    return plot_quantization_sizes.draw(schema.read("quantization", folder / "quantization.csv"))


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_each_method_has_a_line_from_its_smallest_network_to_its_largest(tmp_path: Path) -> None:
    figure = drawn(tmp_path)
    # No variant has fewer bits of activations, so there is one panel.
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "Fewer bits of weights, activations of 8"
    lines = [line for line in axes.lines if line.get_marker() in style.MARKERS]
    found = [(list(line.get_xdata()), list(line.get_ydata())) for line in lines]
    assert [sizes for sizes, _ in found] == [[32.0, 62.738], [17.0, 32.4]]
    # Means of (-3, -3.5, -2.5), (-0.4, -0.6, -0.5), (-9, -8, -10) and (0.1, -0.3, -0.1).
    assert [pytest.approx(points) for _, points in found] == [[-3.0, -0.5], [-9.0, -0.1]]
    assert {"max-abs", "GPTQ, ranges by MSE", "W2\u00a0A8", "W8\u00a0A8"} <= set(words(figure))


def test_a_study_of_8_bits_only_says_so(tmp_path: Path) -> None:
    figure = drawn(tmp_path, "w4a8-max_abs", "w4a8-gptq", "w2a8-gptq")
    assert "No variant of this study has fewer than 8 bits." in words(figure)


def test_the_script_writes_the_same_bytes_each_time(tmp_path: Path) -> None:
    io.write(quantization_example.variants(), tmp_path / "quantization.csv")
    for name in ("first.svg", "second.svg"):
        plot_quantization_sizes.main(
            [
                *("--quantization", str(tmp_path / "quantization.csv")),
                *("--output", str(tmp_path / name)),
            ]
        )
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_table_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("seed,stage\n0,float32\n")
    with pytest.raises(UserError, match=r"other\.csv"):
        plot_quantization_sizes.main(
            [
                *("--quantization", str(tmp_path / "other.csv")),
                *("--output", str(tmp_path / "figure.svg")),
            ]
        )
