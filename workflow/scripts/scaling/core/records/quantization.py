"""The records of Part B: what they need, and how they are read.

Each has an `environment` as `scaling.core.environment` describes it, absent from records made
before it was kept, as all those of studies/quantization-cifar10 and studies/h200x2 were.
"""

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from scaling.core import files
from scaling.core.records.kind import Kind, Row

Document = Row
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""Where the record of a variant lies, from the folder of its seed."""

VARIANT = Kind[Row](
    "quantize_evaluate.py, of the tutorial CNN",
    {
        "": "seed variant scheme float32 accuracy_percent test_images classes layers",
        "classes": "labels float32 variant",
        "layers": "layer",
    },
)
REFUSED = Kind[Row]("a variant that cannot be made", {"": "seed variant scheme refused"})
"""By quantize_evaluate.py as well, in the place of a `VARIANT`: `refused` says why."""
STAGED = Kind[Row](
    "quantize_evaluate.py", {"": "seed stages layers", "stages": "stage accuracy_percent"}
)
"""Of a ResNet-18, and of all networks before there were variants: in stored studies."""
RANGES = Kind[Row]("quantize_evaluate.py, of a ResNet-18", {"": "ranges"})
BACKENDS = Kind[Row](
    "quantize_peers.py",
    {"": "seed threads ours peers environment", "peers": "peer status versions networks"},
)

_NETWORK = "file_bytes accuracy_percent differing_classes seconds"
_ABOUT = "seed model networks all_threads instructions versions environment"
_RUN = {f"networks.{name}": _NETWORK for name in ("float32", "int8", "uint8")}
EXPORT = Kind[Row]("quantize_export.py", {"": _ABOUT, "networks": "float32 int8 uint8", **_RUN})


def read(kind: Kind[Row], paths: Iterable[Path]) -> list[Document]:
    """Read records by seed, those of a seed as given; where they are older, as `STAGED`.

    Variants that were refused are left out.
    """
    made = [path for path in paths if "refused" not in files.read_json(path)]
    kinds = ((STAGED if path.name == "stages.json" else kind, path) for path in made)
    return sorted((one.read(path) for one, path in kinds), key=itemgetter("seed"))
