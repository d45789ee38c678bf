"""Tables of the machine's limits: all-reduces by message size, matrix products, copies."""

from pathlib import Path

from scaling.core import command_line, files
from scaling.tables import limits, schema


@command_line.script
def main(
    sweeps: tuple[Path, ...], peaks: Path, tables: Path, machine: tuple[Path, ...] = ()
) -> None:
    """Write interconnect.csv, interconnect_fit.csv, peaks.csv, machine.csv and topology.txt."""
    swept = limits.interconnect([files.read_json(path) for path in sweeps])
    document = files.read_json(peaks)
    found = {"interconnect": swept, "interconnect_fit": limits.fit(swept)}
    found["peaks"] = limits.peaks(document)
    findings = [one for path in machine for one in files.read_json(path)["findings"]]
    found["machine"] = schema.frame("machine", findings)
    schema.write_all(found, tables)
    # How the GPUs are connected, as nvidia-smi prints it.
    files.write_text(tables / "topology.txt", limits.topology(document))
