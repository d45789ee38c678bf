"""The records of what a machine can do, and of what its ranks share."""

from scaling.core.records.kind import Kind, Row

CHECK = Kind[Row]("the look at a machine", {"": "findings", "findings": "severity host message"})
SWEEP = Kind[Row](
    "an all-reduce sweep",
    {"": "gpus backend rows environment", "rows": "kind message_bytes seconds correct"},
)
PEAKS = Kind[Row](
    "a machine's limits",
    {"": "gpus rows environment", "environment": "topology?", "rows": "quantity seconds"},
)
KNOBS = Kind[Row](
    "what DistributedDataParallel was told",
    {
        "": "cell training dataset rows environment",
        "rows": "knob batches iterations messages plain own",
        "rows.plain": "seconds seconds_without_exchange",
        "rows.own": "seconds seconds_without_exchange",
    },
)
SYNCHRONIZATION = Kind[Row](
    "what ranks share",
    {
        "": "gpus backend parameters model permutations steps trainings environment",
        "model": "parameter_bytes buffer_bytes",
        "trainings": "buffers set_epoch seed epochs orders ranks",
    },
)
