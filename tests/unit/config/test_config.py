"""Errors in a configuration name the key. Parts of a study can be left out."""

import pytest

from examples import configurations
from examples.configurations import changed, shipped
from scaling.config import config, stored
from scaling.config.keys import PARTS
from scaling.core.errors import UserError
from scaling.core.grid import of

CIRCLE = {"plain": {"base": "b"}, "b": {"base": "plain"}}


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("gird", {}, "the configuration has the unknown key gird, perhaps grid (allowed: study, "),
        ("recipes.mine", {"loader_workers": 2}, "recipes.mine needs an engine (eager, resident), "),
        ("recipes.mine", {"engine": "fast"}, "recipes.mine.engine is 'fast' (allowed: eager"),
        ("recipes", CIRCLE, "recipes.b.base names recipe 'pl"),
        ("grid.recipes", ["mine"], "grid.recipes names recipe 'mine' (allowed: plain, tuned)"),
        ("recipes.plain.gpus", [8], "recipes.plain.gpus has none of grid.gpus (allowed: 1, 2)"),
        ("recipes.plain.batch_sizes", [7], "batch_sizes has none of grid.batch_sizes (allowed: "),
        ("grid", {"recipes": ["plain"]}, "grid lacks batch_sizes"),
        ("recipes", {1: {"engine": "eager"}}, "recipes has the key 1: it should be text"),
        ("training", {1: 2}, "training has the unknown key 1 (allowed: learning_rate, "),
        ("recipes.a-b", {"engine": "eager"}, "recipes has the key 'a-b': it should be of the form"),
        ("study", "", "study is '': it should be of the form [A-Za-z0-9]"),
        ("study", "results", "study is results (allowed: no name of a file or folder in results/)"),
        ("study", "topology.txt", "study is topology.txt (allowed: no name of"),
        ("grid.gpus", "1-4", "grid.gpus is '1-4': it should be a list\n"),
        ("grid.gpus", 2, "grid.gpus is 2: it should be a list, as [2]"),
        ("parts", "scaling", "parts is 'scaling': it should be a list, as [scaling]"),
        ("grid.strategies", ["zero"], "grid.strategies[0] is 'zero': it should be one of ddp, dp"),
        ("synchronization.seeds", [0, 1], "it should have at least 3 items"),
        ("convergence.held_out_images", 600, "is 600 (allowed: fewer than its train_images, 600)"),
        ("convergence.global_batches", [32, 65], "global_batches has [65] (allowed: multiples"),
        ("convergence.recipes", ["tuned"] * 2, "duplicate value tuned"),
        ("training.weight_decay", "5e-4", "YAML reads 5e-4 as text, and 5.0e-4 as a number"),
        ("training.weight_decay", "-5E-4", "YAML reads 5e-4 as text, and 5.0e-4 as a number"),
        ("grid.strategies", ["dp"], "grid.strategies has dp, which needs GPUs for more"),
        ("dataset.source", "images", "dataset.path is null (allowed for images: a folder or tar"),
        ("dataset.source", "own", "dataset.source is own (allowed"),
        ("dataset.seed", 1, "dataset.seed is 1 (allowed for digits: leave it out)"),
        ("recipes.mine", {"command": "python {gpus} {gpu}"}, "it should have no {gpu}"),
        ("recipes.mine", {"command": "python 'train.py {gpus}"}, "No closing quotation"),
        ("recipes.mine", {"command": "x {gpus} {folder:d}"}, "it should have no {folder:}"),
        ("recipes.mine", {"command": "x {gpus} 2>&1"}, "so 2>&1 has no meaning: write bash -c "),
        ("recipes.mine", {"command": "~/x.sh {gpus}"}, "so ~/x.sh has no meaning"),
        ("recipes.mine", {"command": "A=1 x {gpus}"}, "it should begin with a program; env NAME="),
        ("recipes.mine", {"command": ""}, "it should begin with a program"),
        ("recipes.mine", {"comand": "x"}, "a base or a command (perhaps comand is command)"),
        ("grid.strategies", ["ddp", "own"], "is 'own': it should be one of ddp, dp, fsdp, zero1"),
        ("quantization.variants", [{"name": "a", "seeds": [77]}], "has no entry for quantization"),
        ("plugins", ["no/absent.py"], "no/absent.py does not exist from"),
        ("plugins", [configurations.__file__], "configurations.py, which has no ENTRY"),
    ],
)
def test_mistake_is_named_with_key_and_allowed_values(path, value, sentence):
    used = [("grid.recipes", ["plain", "mine"])] if path == "recipes.mine" else []
    with pytest.raises(UserError) as raised:
        config.check(changed(*used, (path, value)))
    assert sentence in f"{raised.value}\n"
    assert all(line.startswith("  ") for line in str(raised.value).splitlines()[1:])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("device", "tpu"), ("grid.batch_size", 32)),
        (("grid.recipes", ["plain", "fast"]), ("recipes.plain.bucket_cap_mb", "x")),
        (("study", "replay"), ("dataset.source", "images")),
    ],
)
def test_mistakes_of_one_kind_are_listed_together(first, second):
    """The mistakes are of keys and types, of recipes, or of options that exclude each other."""
    with pytest.raises(UserError) as raised:
        config.check(changed(first, second))
    start, *sentences = str(raised.value).split("\n")
    assert start == "invalid configuration:" and len(sentences) == 2


def test_check_that_yaml_reads_as_false_is_off():
    assert config.requested(changed(("machine.check", False))).machine.check == "off"


SHELL = [">{folder}/log.txt", "2>{folder}/e", "&>log", "|& tee x", "$(nproc)", "`nproc`", "a;"]
SHELL += ["--out $SCRATCH/x", "${{SCRATCH}}", ">'my log'", "&& y", "<{folder}/x", "--out ~/x"]


@pytest.mark.parametrize("words", SHELL)
def test_words_of_a_shell_are_refused_unless_quoted(words):
    quoted = rf"""x '{words.replace("'", "")};' "{words}"{{gpus}} {{batch_size}} \;"""
    used = ("grid.recipes", ["mine"])
    config.check(changed(used, ("recipes.mine", {"command": quoted})))
    with pytest.raises(UserError, match=r"so .* has no meaning: write bash -c '… "):
        config.check(changed(used, ("recipes.mine", {"command": f"{quoted} {words}"})))


def test_engine_command_is_not_run_once_per_strategy():
    """The first recipe is written as in a stored configuration; the second one has a base."""
    own = {"engine": "command", "command": "x {gpus} {batch_size}", "strategies": ["own"]}
    recipes = {"mine": own, "other": {"base": "mine", "strategies": ["ddp"]}}
    grid = ("grid.strategies", ["ddp", "fsdp"]), ("grid.recipes", ["mine", "other"])
    made = config.check(changed(("recipes", recipes), ("parts", ["scaling"]), *grid))
    cells = {(cell.recipe, cell.strategy) for cell in of(made) if cell.gpus > 1}
    assert cells == {("mine", "own"), ("other", "own")}


def test_unused_recipes_and_images_are_not_checked():
    unused = ("recipes.fast", {"base": "no"}), ("recipes.tuned", {"engine": "slow"})
    document = changed(*unused, ("parts", ["scaling"]))
    config.check(document)
    assert [*config.requested(document).recipes] == ["plain"]
    document = changed(("dataset.source", "images"), ("dataset.path", "no/such/images.tar"))
    with pytest.raises(UserError, match=r"dataset\.path is 'no/such/images\.tar', which does not"):
        config.check(document)
    config.check(document, reads_images=False)


@pytest.mark.parametrize(
    ("change", "images", "sentence"),
    [
        (("quantization.calibration_images", 2000), None, "calibration_images needs 2000 .* 1500"),
        (("quantization.calibration_images", 1501), 1500, "calibration_images needs 1501 .* 1500"),
        (("convergence.held_out_images", 1500), 1500, "held_out_images needs 1501 .* are 1500: lo"),
        (("synchronization.batch_size", 751), None, "batch_size needs 1502 .* are 384: lower"),
    ],
)
def test_more_images_than_there_are_is_refused(change, images, sentence):
    document, manifest = changed(change), {"train_images": images} if images else {}
    with pytest.raises(UserError, match=sentence):
        config.check_images(document, manifest)
    config.check_images(changed(), manifest)


def all_but(part):
    return "parts", [one for one in shipped("demo.yaml")["parts"] if one != part]


TUNED, GPU = ("grid.recipes", ["tuned"]), ("device", "cuda")
FUSED, LAST = ("recipes.tuned.fused_norms", True), ("recipes.tuned.channels_last", True)
MINE = ("recipes.mine", {"command": "train {gpus}"})
TIMED = [("time_to_accuracy.recipe", "mine"), ("parts", ["time_to_accuracy"])]
VIT, BF16 = ("model.name", "vit_b_16"), ("recipes.plain.bf16_compression", True)
GAMMA, TIMING = ("recipes.tuned.zero_gamma", True), ("parts", ["scaling"])
SHARDED, MUON = ("grid.strategies", ["fsdp"]), ("recipes.tuned.muon", 0.1)
ZERO1 = ("grid.strategies", ["ddp", "zero1"])
DP, EAGER = ("recipes.plain.strategies", ["dp"]), ("convergence.recipes", ["plain"])
ONE = [("recipes.mine", {"command": "train {batch_size}"}), ("grid.recipes", ["mine"])]
UNEVEN = [("machine.gpus_per_node", 4), ("grid.gpus", [6])]
FLOAT32 = ("quantization.variants", [{"name": "float32"}])
UNFIT = [
    ([TUNED, FUSED, LAST], "fused_norms is true, which needs a GPU: this is a CPU", GPU),
    ([TUNED, FUSED, GPU], "fused_norms is true and channels_last is false", LAST),
    ([TUNED, GAMMA, VIT, TIMING], "zero_gamma is true for vit_b_16", (GAMMA[0], False)),
    ([VIT], "parts has accuracy, of resnet18-cifar alone", TIMING),
    ([("dataset.image_size", 64)], "parts has int8, of images of 32 × 32 pixels", TIMING),
    (UNEVEN, r"grid.gpus has \[6\]", ("grid.gpus", [8])),
    ([MINE, *TIMED], r"time_to_accuracy\.recipe is mine, a command", (TIMED[0][0], "plain")),
    ([ZERO1, BF16], "which strategy zero1 cannot have", ("recipes.plain.strategies", ["ddp"])),
    ([ZERO1, BF16], "which strategy zero1 cannot have", ("recipes.plain.gpus", [1])),
    ([TUNED, SHARDED, MUON], "which strategy fsdp cannot have", ("grid.strategies", ["ddp"])),
    (ONE, r"recipes\.mine\.command takes no {gpus}", ("grid.gpus", [1])),
    # A part that is off makes no mistake.
    ([DP], "recipes.plain.strategies has none of grid.strate", all_but("scaling")),
    ([EAGER], r"convergence.recipes has plain, of engine eager \(allow", all_but("accuracy")),
    ([FLOAT32], r"has float32 \(allowed: other names", all_but("int8")),
]


@pytest.mark.parametrize(("changes", "sentence", "remedy"), UNFIT)
def test_keys_that_do_not_fit_are_refused_until_changed(changes, sentence, remedy):
    with pytest.raises(UserError, match=sentence):
        config.check(changed(*changes))
    config.check(changed(*changes, remedy))


def test_recipe_inherits_from_its_base():
    document = changed(
        ("recipes.bucket100", {"base": "bf16", "bucket_cap_mb": 100.0}),
        ("recipes.bf16", {"base": "plain", "bf16_compression": True}),
        ("grid.recipes", ["plain", "bucket100"]),
    )
    made = config.requested(document).recipes
    assert made["bucket100"] == made["plain"] | {"bf16_compression": True, "bucket_cap_mb": 100.0}


def test_technique_has_its_recipes_update_and_own_options():
    own = {"base": "tuned", "muon": 0.12, "warmup_share": 0.2}
    tried = ["muon", {"recipe": "tuned", "name": "naive", "scaling": "linear", "factors": [1]}]
    document = changed(("recipes.muon", own), ("convergence.recipes", tried))
    config.check(document)
    assert config.techniques(config.check(document)) == {
        "muon": {"muon": 0.12, "warmup_share": 0.2},
        "naive": {"scaling": "linear", "factors": [1]},
    }
    document["recipes"]["muon"]["precision"] = "bf16"
    with pytest.raises(UserError, match=r"has recipes of precision bf16 and float32 \(allo"):
        config.check(document)
    document["convergence"]["recipes"] = [{"recipe": "muon", "warmup_epochs": 1}]
    with pytest.raises(UserError, match=r"recipes has muon: warmup_epochs starts at the base rate"):
        config.check(document)


ALONE = {
    "scaling": ["runs", "interconnect", "peaks", "machine"],
    "accuracy": ["convergence"],
    "time_to_accuracy": ["full_trainings"],
    "proofs": ["synchronization"],
    "int8": ["quantization"],
}


@pytest.mark.parametrize("part", PARTS)
def test_part_alone_has_no_other_records(part):
    document = changed(("parts", [part]), ("time_to_accuracy.recipe", "tuned"))
    found = stored.records(document)
    assert [kind for kind in found if found[kind]] == ALONE[part]
    config.check(document)
