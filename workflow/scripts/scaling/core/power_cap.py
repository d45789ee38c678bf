"""How long GPUs were held back because they drew all the power they may."""

from collections.abc import Sequence

import pynvml

from scaling.core import environment


class PowerCap:
    """The driver's counters of GPUs, given as CUDA_VISIBLE_DEVICES names them.

    At the limit the driver lowers the clocks: the same work takes longer than on a GPU that has
    only begun to work.
    """

    def __init__(self, gpus: Sequence[str]) -> None:
        self._handles = [environment.gpu_handle(gpu) for gpu in gpus]

    def seconds(self) -> list[float]:
        """Seconds that each GPU has been held back so far; empty where no driver counts them."""
        read = [_nanoseconds(handle) for handle in self._handles if handle is not None]
        known = [value / 1e9 for value in read if value is not None]
        return known if len(known) == len(self._handles) else []


def held_back(before: list[float], after: list[float]) -> float | None:
    """Seconds between two readings of the GPU that was held back longest; None without readings."""
    return max((late - early for early, late in zip(before, after, strict=True)), default=None)


def _nanoseconds(handle: object) -> int | None:
    (field,) = pynvml.nvmlDeviceGetFieldValues(
        handle, [pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP]
    )
    return int(field.value.ullVal) if field.nvmlReturn == pynvml.NVML_SUCCESS else None
