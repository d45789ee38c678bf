"""What follows from a study's times: speedup, communication, limits, an audit."""

from pathlib import Path

from scaling.audit.derive import MEASURED, tables_of_times
from scaling.audit.finding import Study
from scaling.audit.limits import audit
from scaling.core import command_line
from scaling.core.records.machine import KNOBS
from scaling.tables import schema
from scaling.tables.bandwidth import swept_gradient_bytes
from scaling.tables.experiments.knobs import knobs as table_of_knobs


@command_line.script
def main(
    study: str,
    tables: Path,
    knobs: tuple[Path, ...] = (),
) -> None:
    """Write the tables that follow from timing.csv and from what was measured beside it."""
    found = schema.read_all(["timing", *MEASURED], tables, study)
    timing = found.pop("timing")
    gradient_bytes = swept_gradient_bytes(found["interconnect"])
    derived = tables_of_times(timing, gradient_bytes, found)
    if knobs:
        measured = [KNOBS.read(path) for path in knobs]
        derived["knobs"] = table_of_knobs(measured, found["interconnect_fit"])
    checked = ("speedup", "communication", "bandwidth", "utilization")
    known = {name: derived[name] for name in checked} | {"ranks": found["ranks"]}
    schema.write_all(derived | {"audit": audit(Study(timing, **known))}, tables, study)
