"""The known ways to derive a wrong figure from right times, each in one sentence."""

from dataclasses import dataclass

from scaling.audit.finding import Severity


@dataclass(frozen=True)
class Mistake:
    """How grave it is, and what happened, to follow "the printed speedup …".

    `{rule}` in the sentence stands for the definition that gives the figure.
    """

    severity: Severity
    sentence: str


MISTAKES = {
    "times_gpus": Mistake(
        "error",
        "is N times T(1,b) / T(N,b); an epoch on N GPUs already has N times fewer steps, so it "
        "counts the GPUs twice",
    ),
    "two_gpu_baseline": Mistake(
        "error", "is measured against 2 GPUs, T(2,b) / T(N,b), and not against 1"
    ),
    "one_baseline": Mistake(
        "error", "is measured against the time of the smallest batch, not of its own"
    ),
    "another_row": Mistake("error", "is that of another row: it uses T(1,b) of another batch size"),
    "other_single_time": Mistake(
        "error", "uses a T(1,b) that the study's own table does not have for this b"
    ),
    "repeated_single_time": Mistake(
        "warning", "is a second T(1,b) of the same study, and differs from the one it derives from"
    ),
    "second_single_time": Mistake(
        "info",
        "is a second T(1,b) of the same study, and differs from the one it derives from beyond "
        "its last digit",
    ),
    "wrong_column": Mistake(
        "error", "stands in the wrong column: compute and communication are exchanged"
    ),
    "total_as_compute": Mistake("error", "is the whole epoch, communication included"),
    "loading_counted": Mistake(
        "warning", "counts the wait for data, which the study itself has measured apart"
    ),
    "loading_left_out": Mistake(
        "info",
        "leaves out the wait for data; the times given for N GPUs include it, so ours does too",
    ),
    "follows_from_compute": Mistake(
        "info", "follows from the compute time printed beside it, and is no more certain than that"
    ),
    "one_iteration": Mistake(
        "error", "divides the bytes of one iteration by the seconds of one epoch"
    ),
    "over_total": Mistake(
        "error", "divides by the time in the column called compute, not by that of communication"
    ),
    "ring_for_dp": Mistake(
        "warning",
        "takes DataParallel for a ring; GPU 0 passes on 2(N-1)·K bytes per iteration, N times more",
    ),
    "gib": Mistake("warning", "is in GiB (2³⁰ bytes) where GB (10⁹ bytes) is written"),
    "batch_as_bandwidth": Mistake(
        "error", "is the batch size times 2(N-1)/N: no bytes and no seconds are in it"
    ),
    "one_peak": Mistake(
        "info",
        "is a share of one number for every N ({rule}); the document should say how it was "
        "measured",
    ),
    "no_time": Mistake("info", "cannot be checked: the cell has no time"),
    "no_single_time": Mistake("info", "cannot be checked: the study has no T(1,b) for this b"),
    "no_parameters": Mistake(
        "info", "cannot be checked: the number of parameters, and so of bytes, is not stated"
    ),
    "no_peak": Mistake("info", "cannot be checked: the study does not say of what peak it is"),
    "unexplained": Mistake("error", "is reproduced neither by its own definition nor by ours"),
}
