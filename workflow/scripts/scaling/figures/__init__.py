"""List the figures, and colours of configurations, without importing Matplotlib."""

FIGURES = {
    "epoch_time": ["timing"],
    "speedup": ["speedup"],
    "communication": ["communication"],
    "bandwidth": ["interconnect", "bandwidth", "costs"],
    "learning": ["accuracy"],
    "remedies": ["remedies"],
    "quantization_histograms": ["quantization_histograms"],
}
"""Input tables of each figure. The function `draw_{name}` draws the figure `name`."""
PALETTE = ["#1f2428", "#0063a8", "#c24f00", "#b0568f", "#008a50", "#5b4bb0", "#00808a", "#b3261e"]
"""Colours of configurations in figures: on the page, the CSS variables `colour-1` and so on."""
