"""Tables of the pages of studies that others printed."""

from operator import attrgetter, itemgetter

from scaling.core.numbers import percent, words
from scaling.report.quantities import whole
from scaling.report.table import Column, View

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
PRINTED_HEADS = {
    "epoch_seconds": "time, s",
    "epoch_seconds_without_loading": "without loading, s",
    "speedup": "speedup",
    "compute_seconds": "compute, s",
    "communication_seconds": "communication, s",
    "bandwidth_gb_per_s": "GB/s",
    "utilization_percent": "utilization, %",
    "images_per_second": "images/s",
}
CAUSE = Column("cause", words, name="cause")
WHAT = Column("what happened", name="sentence")
CELL = "{0.strategy}, {0.gpus} × {0.batch_size}".format


def _texts(names: str) -> list[Column]:
    """Return columns that are headed by their names."""
    return [Column(name, name=name) for name in names.split()]


OF_A_STUDY = [
    View(
        "causes",
        "Findings",
        itemgetter("causes"),
        [Column("no.", name="number"), Column("severity", name="name"), CAUSE],
        [
            WHAT,
            Column("cells (GPUs x b)", name="places", text="{0.strategy}: {0.places}".format),
            *_texts("explains found expected"),
        ],
    ),
    View(
        "figures",
        "As printed, with the findings that a figure is one of",
        itemgetter("figures"),
        [Column("GPUs × b", detail=attrgetter("cell_marks"), name="strategy", text=CELL)],
        [
            Column(head, detail=attrgetter(f"{name}_marks"), name=name)
            for name, head in PRINTED_HEADS.items()
        ],
    ),
    View(
        "quantization",
        "Int8 quantization as printed",
        itemgetter("printed_quantization"),
        _texts("stage"),
        [
            Column("accuracy", "{} %".format, name="accuracy_percent"),
            *_texts("where"),
            Column("our variants", lambda of: words(of).replace("+", " + "), name="variants"),
            Column("their range, %", name="ranges"),
            Column("points beyond", name="beyond"),
        ],
    ),
    View(
        "learning",
        "Learning as printed",
        itemgetter("printed_accuracy"),
        [Column("cell", name="strategy", text=CELL), Column("epoch", name="epoch")],
        [
            Column("training loss", name="train_loss"),
            Column("training accuracy", percent, name="train_accuracy"),
        ],
    ),
]
OF_ALL = [
    View(
        "overview",
        "All studies",
        itemgetter("overview"),
        [Column("study", name="study", link=attrgetter("link"))],
        [
            *_texts("folder"),
            Column("cells", whole, name="cells"),
            *(Column(f"{name}s", whole, name=key) for key, name in SEVERITIES.items()),
            *_texts("causes points"),
        ],
    ),
    View(
        "mistakes",
        "Causes, and where they occur",
        itemgetter("mistakes"),
        [CAUSE],
        [Column("gravity", name="severity"), WHAT, *_texts("studies where")],
    ),
]
