"""Tables of the pages of studies that others printed."""

from operator import attrgetter, itemgetter

from scaling.core.numbers import percent, words
from scaling.report.quantities import whole
from scaling.report.table import Column, View

PRINTED_HEADS = {
    "epoch_seconds": "time, s",
    "epoch_seconds_without_loading": "without loading, s",
    "speedup": "speedup",
    "compute_seconds": "compute, s",
    "communication_seconds": "communication, s",
    "bandwidth_gb_per_s": "GB/s",
    "utilization_percent": "utilization, %",
}
CELL = "{0.strategy}, {0.gpus} × {0.batch_size}".format


def _variants(names: str) -> str:
    return words(names).replace("+", " + ")


OF_A_STUDY = [
    View(
        "causes",
        "Findings",
        itemgetter("causes"),
        [
            Column("no.", name="number"),
            Column("severity", name="name"),
            Column("cause", words, name="cause"),
        ],
        [
            Column("what happened", name="sentence"),
            Column("cells (GPUs x b)", name="places", text="{0.strategy}: {0.places}".format),
            Column("explains", name="explains"),
            Column("found", name="found"),
            Column("expected", name="expected"),
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
        [Column("stage", name="stage")],
        [
            Column("accuracy", "{} %".format, name="accuracy_percent"),
            Column("where", name="where"),
            Column("our variants", _variants, name="variants"),
            Column("their range, %", name="ranges"),
            Column("points beyond", name="beyond"),
        ],
    ),
    View(
        "learning",
        "Learning as printed",
        itemgetter("printed_accuracy"),
        [Column("cell", name="strategy", text=CELL)],
        [
            Column("epoch", name="epoch", apart=True),
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
            Column("folder", name="folder"),
            Column("cells", whole, name="cells"),
            Column("errors", whole, name="error"),
            Column("warnings", whole, name="warning"),
            Column("remarks", whole, name="info"),
            Column("causes", name="causes"),
            Column("points", name="points"),
        ],
    ),
    View(
        "mistakes",
        "Causes, and where they occur",
        itemgetter("mistakes"),
        [Column("cause", words, name="cause")],
        [
            Column("gravity", name="severity"),
            Column("what happened", name="sentence"),
            Column("studies", name="studies"),
            Column("where", name="where"),
        ],
    ),
]
