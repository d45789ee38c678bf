# What a study has measured, and so which tables it has. No rules here.
def records_there(paths):
    """Those of `paths` that exist, for a replay or a partial report; all for any other study."""
    if REPLAY or config["partial"]:
        return [path for path in paths if Path(path).exists()]
    return paths


def records(wildcards):
    """The records of all runs of the grid."""
    folder = Path(RECORDS, "runs")
    return records_there([str(run.record_path(folder)) for run in RUNS])


def placed(paths):
    """Where records of the study lie, by their paths in its folder."""
    return [str(Path(RECORDS, path)) for path in paths]


# A stored study need not have all.
BACKENDS = [
    path
    for path in stored.backend_records(config)
    if not REPLAY or (REPLAY / path).exists()
]
# What not every study measures; without any of a kind there are none of its tables.
RECORDS_OF = {
    "runs": placed(stored.run_records(config)),
    "knobs": records_there(placed(stored.knobs_records(config))),
    "convergence": records_there(placed(stored.convergence_records(config))),
    "full_trainings": records_there(placed(stored.full_training_records(config))),
    "synchronization": records_there(placed(stored.synchronization_records(config))),
    "quantization": placed(stored.quantization_records(config)),
    "peers": placed(path for path in BACKENDS if path.stem == "peers"),
    "resnet18": placed(path for path in BACKENDS if path.stem == "resnet18"),
    "export": placed(path for path in BACKENDS if "export" in path.stem),
}


def is_made(table):
    """Whether the study has a table of the schema: there are records that it is made from."""
    return table.records is None or bool(RECORDS_OF[table.records])


def paths_of(tables):
    """Where those of these tables lie that the study has."""
    folder = Path("<results>/tables")
    return [str(table.path(folder, STUDY)) for table in tables if is_made(table)]


def tables_by(*rules):
    """The tables of the study that these rules make, as the schema names them."""
    return paths_of(schema.made_by(*rules))
