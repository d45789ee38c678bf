"""Digests of the code behind rules: parameters that change when that code does."""

from functools import cache
from pathlib import Path

from scaling.core import code_digest
from scaling.registry import model as models
from scaling.registry.engine import ENGINES
from scaling.registry.model import QUANTIZED_MODELS
from scaling.registry.strategy import STRATEGIES

SCRIPTS = Path(__file__).parents[2]


def digest(script: str, *modules: str | Path) -> str:
    """The digest of a script and of `modules` besides; see `code_digest.digest`."""
    return code_digest.digest(SCRIPTS / f"{script}.py", *modules)


def measuring(script: str, *modules: str | Path) -> str:
    """The digest of what decides what a script measures; see `code_digest.digest`."""
    return code_digest.digest(SCRIPTS / f"{script}.py", *modules, measuring=True)


@cache
def of_cell(engine: str, strategy: str, model: str) -> str:
    """The digest of the code that trains a cell: with its engine, its strategy and the model."""
    modules = [*ENGINES.modules(engine), *STRATEGIES.modules(strategy)]
    return measuring("train_run", *modules, *models.code(model))


def of_quantized(script: str, model: str, part: str, *modules: str | Path) -> str:
    """The digest of a script with the module of a quantized model's `training` or `evaluation`."""
    return measuring(script, getattr(QUANTIZED_MODELS.find(model), part).module, *modules)
