import copy
from pathlib import Path

import pytest
import yaml

from scaling.config import config, readme
from scaling.core.errors import UserError

ROOT = Path(__file__).parents[3]
SHIPPED = ["config.yaml", "demo.yaml"]


def shipped(name):
    return yaml.safe_load((ROOT / "config" / name).read_text())


def changed(path, value):
    """The demo's configuration with one value replaced."""
    document = copy.deepcopy(shipped("demo.yaml"))
    *parents, last = path.split(".")
    section = document
    for parent in parents:
        section = section[parent]
    section[last] = value
    return document


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_configuration_is_valid(name):
    config.check(shipped(name))


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("gird", {}, "the configuration has the unknown key gird, perhaps grid (allowed: study, "),
        ("grid.batch_size", [32], "grid has the unknown key batch_size, perhaps batch_sizes (all"),
        ("model", {"width": 4, 1: 2}, "model has the unknown key 1 (allowed: name, width)"),
        ("model", [4], "model is [4] (allowed: a section)"),
        ("machine.gpus_per_node", "two", "is 'two' (allowed: an integer or null)"),
        ("grid.gpus", 2, "grid.gpus is 2 (allowed: a list)"),
        ("grid.gpus", ["two"], "grid.gpus[0] is 'two' (allowed: an integer)"),
        ("grid.batch_sizes", [], "grid.batch_sizes is empty"),
        ("grid.gpus", [1, 0], "grid.gpus[1] is 0 (allowed: 1 or more)"),
        ("grid.batch_sizes", [32, 64, 32], "grid.batch_sizes has 32 more than once"),
        ("grid.recipes", ["fast"], "grid.recipes[0] is 'fast' (allowed: course, tuned)"),
        ("dataset.source", "mnist", "is 'mnist' (allowed: cifar10, digits, images, synthetic)"),
        ("grid.strategies", ["fsdp"], "grid.strategies[0] is 'fsdp' (allowed: ddp, dp)"),
        ("model.name", "vgg", "model.name is 'vgg' (allowed: resnet18-cifar)"),
        (
            "convergence.global_batches",
            [32, 65],
            "convergence.global_batches has 65 and convergence.gpus is 2 (allowed: multiples",
        ),
        (
            "convergence.remedies",
            [{"name": "warm"}, {"name": "warm", "warmup_epochs": 1}],
            "convergence.remedies has warm more than once (allowed: each name once)",
        ),
        (
            "convergence.remedies",
            [{"name": "fast", "speed": 2}],
            "convergence.remedies[0] has the unknown key speed (allowed: name, scaling, ",
        ),
        ("training.measured_epochs", 2, "training.measured_epochs is 2 (allowed: 3 or more)"),
        ("training.learning_rate", 0, "training.learning_rate is 0 (allowed: more than 0)"),
        ("training.weight_decay", "5e-4", "(allowed: 0.0005 without quotes and with a decimal"),
        ("training.momentum", 1, "training.momentum is 1 (allowed: less than 1)"),
        ("interconnect.message_bytes", [6], "is 6 (allowed: multiples of 4)"),
        ("device", "tpu", "device is 'tpu' (allowed: auto, cpu, cuda)"),
        ("partial", 1, "partial is 1 (allowed: true or false)"),
        ("grid.seeds", [True], "grid.seeds[0] is True (allowed: an integer)"),
        ("training.momentum", float("nan"), "training.momentum is nan (allowed: a number)"),
        ("study", "mine\n", "study is 'mine\\n' (allowed: what matches ^[A-Za-z0-9]["),
        ("synchronization.seeds", [0], "seeds is [0] (allowed: a list of at least 3)"),
        ("partial", "yes please", "partial is 'yes please' (allowed: true or false)"),
        ("grid.gpus", [1.0], "grid.gpus[0] is 1.0 (allowed: an integer)"),
        ("machine.time_limit_seconds", float("inf"), "is inf (allowed: a number)"),
        ("study", "../up", "study is '../up'"),
    ],
)
def test_a_mistake_is_named_with_its_key_and_what_is_allowed(path, value, sentence):
    with pytest.raises(UserError) as raised:
        config.check(changed(path, value))
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_key_is_named():
    document = shipped("demo.yaml")
    del document["grid"]["seeds"]
    with pytest.raises(UserError, match="grid lacks seeds"):
        config.check(document)


def test_all_mistakes_are_told_at_once():
    document = changed("grid.gpus", [0])
    document["device"] = "tpu"
    with pytest.raises(UserError, match=r"device is .*; grid\.gpus\[0\] is 0"):
        config.check(document)


def test_a_dataset_path_that_does_not_exist_is_named():
    document = changed("dataset.source", "images")
    document["dataset"]["path"] = "no/such/images.tar"
    with pytest.raises(UserError, match=r"dataset\.path is 'no/such/images\.tar', which does not"):
        config.check(document)


def test_images_need_a_path():
    with pytest.raises(UserError, match=r"dataset\.path is null"):
        config.check(changed("dataset.source", "images"))


def test_embedded_digits_take_no_path(tmp_path):
    with pytest.raises(UserError, match=r"allowed for digits: null"):
        config.check(changed("dataset.path", str(tmp_path)))


def test_data_parallel_over_cpu_processes_is_refused():
    with pytest.raises(UserError, match=r"grid\.strategies has dp, which needs GPUs"):
        config.check(changed("grid.strategies", ["dp"]))


@pytest.mark.parametrize("switch", ["cuda_graph", "fused_norms"])
def test_what_needs_a_gpu_is_refused_on_a_cpu(switch):
    document = changed("grid.recipes", ["tuned"])
    document["recipes"]["tuned"] |= {switch: True, "channels_last": True}
    with pytest.raises(UserError, match=rf"{switch} is true \(allowed with device cpu: false\)"):
        config.check(document)


def test_fused_norms_want_channels_last_order():
    document = changed("grid.recipes", ["tuned"])
    document["recipes"]["tuned"] |= {"fused_norms": True, "channels_last": False}
    document["device"] = "cuda"
    with pytest.raises(
        UserError, match=r"fused_norms is true and channels_last is false \(allowed"
    ):
        config.check(document)


@pytest.mark.parametrize(
    ("variants", "sentence"),
    [
        ([{"name": "a"}, {"name": "a"}], "quantization.variants[1] is called a (allowed: a name"),
        ([{"name": "float32"}], "quantization.variants[0] is called float32 (allowed: a name"),
        ([{"weight_bits": 4}], "quantization.variants[0] lacks name"),
        ([{"name": "a/b"}], "quantization.variants[0].name is 'a/b'"),
        ([{"name": "a", "weight_bits": 9}], "variants[0] (a): weight_bits of a quantized network"),
        ([{"name": "a", "seeds": [0, 9]}], "quantization.variants[0].seeds has 9 (allowed: those"),
        ([{"name": "a"}], "quantization.histograms is 'weights+activations+bias' (allowed: a "),
        ([], "quantization.variants is empty"),
    ],
)
def test_a_variant_that_cannot_be_is_named(variants, sentence):
    with pytest.raises(UserError) as raised:
        config.check(changed("quantization.variants", variants))
    assert sentence in str(raised.value)


def test_a_study_may_do_without_part_b():
    document = changed("quantization.seeds", [])
    config.check(document)
    document["quantization"]["peers"] = ["onnxruntime"]
    with pytest.raises(UserError, match=r"seeds is empty, but quantization\.peers asks for more"):
        config.check(document)


def test_only_a_replay_may_have_no_variants():
    document = changed("quantization.variants", [])
    config.check(document, reads_images=False)


def keys(section, prefix=""):
    """The dotted names of all values in a configuration; the recipes' options too."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_configuration_has_exactly_the_keys_that_are_described(name):
    described = [key for key, _ in readme.rows() if "[]" not in key]
    assert list(keys(shipped(name))) == described


def test_the_readme_has_what_the_keys_say():
    page = (ROOT / "config/README.md").read_text()
    assert readme.updated(page) == page
