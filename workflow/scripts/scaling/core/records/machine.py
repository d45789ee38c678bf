"""The records of what a machine can do, and of what its ranks share."""

from scaling.core.records.kind import Kind, Row

CHECK = Kind[Row]("the look at a machine", {"": "findings", "findings": "severity host message"})
SWEEP = Kind[Row](
    "a sweep", {"": "gpus backend rows environment", "rows": "kind message_bytes seconds correct"}
)
PEAKS = Kind[Row](
    "peaks", {"": "gpus rows environment", "environment": "topology?", "rows": "quantity seconds"}
)
KNOBS = Kind[Row](
    "what DistributedDataParallel was told",
    {"": "cell rows environment", "rows": "knob batches iterations messages plain own"},
)
SYNCHRONIZATION = Kind[Row](
    "what ranks share",
    {"": "gpus backend model permutations steps trainings", "trainings": "buffers epochs ranks"},
)
