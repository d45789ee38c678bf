"""What a reader sees of the remedies: each panel's, and whether its title says so."""

import pandas as pd

from examples.drawn import titles
from scaling.figures.convergence import draw_remedies

OPTIONS = {
    "none": ("", 1),
    "naive": ("scaling linear", 1),
    "linear_warmup": ("scaling linear, warmup_epochs 1", 1),
    "rate_sweep": ("scaling sqrt", 6),
    "warmup": ("scaling sqrt, warmup_epochs 1", 6),
    "combined": ("scaling sqrt, warmup_epochs 1, zero_gamma", 6),
    **{f"decay {power}": (f"scaling sqrt, decay {power}", 6) for power in range(1, 5)},
}


def drawn(*names: str) -> dict[str, list[str]]:
    """The remedies of each panel, by its title."""
    rows = [
        {
            "remedy": name,
            "options": OPTIONS[name][0],
            "rates": OPTIONS[name][1],
            "global_batch": batch,
            "reference": False,
            "diverged_seeds": 0,
            **dict.fromkeys(["test_accuracy", "test_accuracy_min", "test_accuracy_max"], 0.5),
        }
        for name in names
        for batch in (128, 512)
    ]
    figure = draw_remedies(pd.DataFrame(rows))
    assert {axes.get_ylabel() for axes in figure.axes} == {"test accuracy, %"}
    legends = [axes.get_legend().get_texts() for axes in figure.axes]
    found = [[text.get_text() for text in legend] for legend in legends]
    return dict(zip(titles(figure), found, strict=True))


def test_each_panel_is_titled_by_the_kind_of_its_remedies():
    assert drawn(*OPTIONS) == {
        "rate by a rule": ["none", "naive", "linear_warmup"],
        "swept rate, up to one option (1 of 2)": [
            *("none", "rate_sweep", "warmup", "decay 1", "decay 2", "decay 3")
        ],
        "swept rate, up to one option (2 of 2)": ["none", "decay 4"],
        "swept rate, several options": ["none", "combined"],
    }


def test_a_lone_remedy_has_a_panel_of_its_own():
    assert drawn("none") == {"none": ["none"]}
