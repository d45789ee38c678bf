"""An engine: eager on a machine where rank 1 takes DELAY seconds longer to load and to compute."""

import time

from scaling.registry.eager import Options
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference

DELAY = 0.15


def delayed(spec, rank, model, dataset):
    from scaling.training.eager import Eager

    trainer = Eager(spec, rank, model, dataset)
    if rank.index == 1:
        trainer.model.register_forward_pre_hook(lambda *_: time.sleep(DELAY))
        trainer._loader = Slow(trainer._loader)
    return trainer


class Slow:
    """A loader whose every batch takes longer."""

    def __init__(self, loader):
        self._loader = loader

    def __iter__(self):
        for batch in self._loader:
            time.sleep(DELAY)
            yield batch


ENTRY = Engine(name="delayed", trainer=Reference("delayed:delayed"), options=Options)
