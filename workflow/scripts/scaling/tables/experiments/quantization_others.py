"""What the report reads of the tables of other quantizers and of ResNet-18 (see their writers)."""

PEERS = [
    *("seed", "engine", "version", "precision", "status", "note", "accuracy_percent"),
    *("difference_points", "standard_error_points", "agreement_percent"),
    *("agreement_ours_percent", "file_bytes", "times_smaller", "batch_1_seconds"),
    *("batch_1_ratio", "batch_1_ratio_min", "batch_1_ratio_max", "batch_256_seconds"),
    *("batch_256_ratio", "batch_256_ratio_min", "batch_256_ratio_max"),
]
RESNET = [
    *("seed", "stage", "weight_scales", "accuracy_percent", "difference_points"),
    *("standard_error_points", "agreement_percent", "float32_bytes", "packed_bytes"),
    *("logits", "differing_logits", "accumulator_bound"),
]
