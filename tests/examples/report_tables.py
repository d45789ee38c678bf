"""The made-up study of `report_cells`, as the tables the figures and the report read.

What is derived from its times comes from the study's own functions.
"""

from pathlib import Path

import pandas as pd

from examples import manifests, quantization_example
from examples.records import sweep
from examples.report_cells import STUDY, TRAIN_IMAGES, accuracy, cells, costs, in_memory, provenance
from scaling.audit.derive import tables_of_times
from scaling.audit.limits import audit
from scaling.tables import limits, schema

GRADIENT_BYTES = 44_695_848
SIZES = [("sweep", 4096), ("sweep", 1 << 20), ("sweep", 1 << 30), ("gradients", GRADIENT_BYTES)]


def sweeps() -> list[dict[str, object]]:
    """All-reduces that take 28 µs and the ring's bytes at 329 or 352 GB/s."""
    return [
        sweep(*((*one, 28e-6 + one[1] * 2 * (gpus - 1) / gpus / peak) for one in SIZES), gpus=gpus)
        for gpus, peak in ((2, 329e9), (4, 352e9))
    ]


def peaks() -> pd.DataFrame:
    """peaks.csv: 417 TFLOP/s in tf32 and 797 in bf16."""
    rows = []
    for precision, teraflops in (("tf32", 417), ("bf16", 797)):
        kind = {"quantity": "matrix_product", "precision": precision, "matrix_size": 8192}
        rows.append({**kind, "state": "sprint", "seconds": [2 * 8192**3 / teraflops / 1e12] * 3})
    return limits.peaks({"rows": rows})


def make(
    device: str = "cuda", missing: bool = False, host: str = "node01"
) -> dict[str, pd.DataFrame]:
    """All tables by name; those that nobody filled are without rows."""
    timing = cells(missing)
    sweep = limits.interconnect(sweeps())
    measured = {
        "interconnect": sweep,
        "interconnect_fit": limits.fit(sweep),
        "peaks": peaks(),
        "in_memory": in_memory(timing),
        "costs": costs(timing).assign(peak_memory_bytes=2_000_000_000),
    }
    derived = tables_of_times(timing, GRADIENT_BYTES, measured)
    empty = {name: schema.frame(name) for name in schema.TABLES}
    return {
        **empty,
        **measured,
        **derived,
        "timing": timing,
        "audit": audit(schema.StudyTables(STUDY, {**derived, "timing": timing}, "", {})),
        "accuracy": accuracy(timing),
        "provenance": provenance(timing, device, host),
        "quantization": quantization_example.variants(),
    }


def write(folder: Path, study: dict[str, pd.DataFrame]) -> None:
    """Lay the tables and the manifest out as the pipeline does, below `folder`.

    A column that a table does not have is empty.
    """
    for name, table in study.items():
        whole = table.reindex(columns=schema.columns(name))
        schema.write(name, whole, schema.TABLES[name].path(folder / "tables", STUDY))
    (folder / "tables" / "topology.txt").write_text("GPU0\tGPU1")
    manifests.write(folder, train_images=TRAIN_IMAGES)


def study(folder: Path, tables: dict[str, pd.DataFrame]) -> schema.StudyTables:
    """The study of these tables, through their files below `folder`."""
    write(folder, tables)
    places = (schema.TABLES[name].path(folder / "tables", STUDY) for name in tables)
    topology, manifest = folder / "tables/topology.txt", folder / "manifest.json"
    return schema.read_study(STUDY, places, topology, manifest)
