"""The parts of a study, and what is empty in its configuration where one is off."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

Part = Literal["scaling", "accuracy", "proofs", "int8"]
PARTS: tuple[Part, ...] = get_args(Part)
EMPTY: dict[Part, dict[str, dict[str, Any]]] = {
    "scaling": {"grid": {"seeds": []}},
    "accuracy": {"convergence": {"remedies": []}, "time_to_accuracy": {"gpus": []}},
    "proofs": {"synchronization": {"seeds": []}},
    "int8": {"quantization": {"seeds": [], "peers": [], "resnet18": False}},
}


def without_those_off(config: dict[str, Any], on: Iterable[Part]) -> dict[str, Any]:
    """Return the configuration with the sections of all parts that are not `on` emptied.

    The proofs take place on the most GPUs of the grid; the grid of a study without both has no more
    than trainings to an accuracy ask for.
    """
    off = [part for part in PARTS if part not in on]
    for part in off:
        config = _changed(config, EMPTY[part])
    if {"scaling", "proofs"} <= set(off):
        config = _changed(config, {"grid": {"gpus": _gpus_of_trainings(config) or [1]}})
    return config


def _changed(config: dict[str, Any], sections: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return config | {name: config.get(name, {}) | keys for name, keys in sections.items()}


def _gpus_of_trainings(config: dict[str, Any]) -> list[int]:
    return list(config["time_to_accuracy"]["gpus"])
