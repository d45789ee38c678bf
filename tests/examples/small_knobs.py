"""The knobs of DistributedDataParallel on a few images, by the real script."""

import json
import shlex

import knobs_measure
from scaling.core.command_line import options
from scaling.tables import schema
from scaling.tables.experiments.knobs import knobs as table

ASKED = {
    "iterations": 2,
    "repeats": 3,
    "variants": [
        {"bucket_cap_mb": 0.005, "gradient_as_bucket_view": True, "static_graph": True},
        {"bf16_compression": True},
        {"powersgd_rank": 1},
        {"powersgd_rank": 1, "bf16_compression": True},
        {"accumulated_batches": 2},
    ],
}


def measure(images, output, device="cpu", link_gb_per_s=1.0, batch_size=5, knobs=ASKED):
    """The rows of the table by knob, of a record that the script writes to `output`."""
    told = {"gpus": 2, "batch_size": batch_size, "model_width": 1, "device": device, "knobs": knobs}
    data = {"dataset": images / "images.npz", "manifest": images / "manifest.json"}
    told |= {"recipe_options": {"loader_workers": 0}, "output": output}
    knobs_measure.main(shlex.split(options(told | data)))
    fits = [{"gpus": 2, "asymptotic_busbw_gb_per_s": link_gb_per_s}]
    made = table([json.loads(output.read_text())], schema.frame("interconnect_fit", fits))
    return made.set_index("knob")
