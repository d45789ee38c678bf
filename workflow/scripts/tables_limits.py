"""Tables of the machine's limits: all-reduces by message size, matrix products, copies."""

from pathlib import Path

from scaling.core import command_line, files
from scaling.core.records.machine import CHECK, PEAKS, SWEEP
from scaling.tables import limits, schema


@command_line.script
def main(
    sweeps: tuple[Path, ...], peaks: Path, tables: Path, machine: tuple[Path, ...] = ()
) -> None:
    """Write interconnect.csv, interconnect_fit.csv, peaks.csv, machine.csv and topology.txt."""
    swept = limits.interconnect([SWEEP.read(path) for path in sweeps])
    document = PEAKS.read(peaks)
    found = {"interconnect": swept, "interconnect_fit": limits.fit(swept)}
    found["peaks"] = limits.peaks(document)
    findings = [one for path in machine for one in CHECK.read(path)["findings"]]
    found["machine"] = schema.frame("machine", findings)
    schema.write_all(found, tables)
    # How the GPUs are connected, as nvidia-smi prints it.
    files.write_text(tables / "topology.txt", limits.topology(document))
