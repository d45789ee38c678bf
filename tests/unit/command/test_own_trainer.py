import shlex
import sys

import pytest

from scaling.command import own_trainer
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.launch.run_spec import RunSpec

EPOCHS = """
import time
from scaling_client import epoch
for number in range({count}):
    time.sleep(0.3)
    epoch(number, samples=64, loss=1 / (1 + number), test_accuracy=0.5)
"""


def of(source, **options):
    """Run a Python program as the command of a cell on two devices."""
    command = shlex.join([sys.executable, "-c", source.replace("{", "{{").replace("}", "}}")])
    return own_trainer.run(spec_of(f"{command} {{gpus}} {{batch_size}}", **options))


def spec_of(command, **options):
    cell, recipe = Cell("mine", "own", 2, 16, 0), {"command": command}
    return RunSpec(cell=cell, engine="command", recipe_options=recipe, device="cpu", **options)


def test_epochs_are_recorded(tmp_path):
    record = of(EPOCHS.replace("{count}", "4"))
    RUN.write(tmp_path / "run.json", record)
    assert record["status"] == "ok" and record["message"] is None
    assert [row["role"] for row in record["epochs"]] == ["warmup"] + 3 * ["measured"]
    assert all(row["seconds"] >= 0.3 for row in record["epochs"])
    assert [row["iterations"] for row in record["epochs"]] == [2] * 4
    assert record["evaluation"]["test_accuracy"] == 0.5
    assert record["memory"]["peak_bytes"][0] > 1e6
    assert 0 <= record["startup"]["total"] < record["run_seconds"]


def test_of_several_nodes_nothing_is_read_from_outside():
    record = of(EPOCHS.replace("{count}", "4"), nodes=2)
    assert record["memory"]["peak_bytes"] == record["device_time"] == []
    assert not any(row["gpu_readings"] for row in record["epochs"])


def test_values_of_the_cell_are_in_the_command(capsys):
    record = of("import sys; print('given', *sys.argv[1:])")
    assert "given 2 16" in capsys.readouterr().out
    assert "the whole run counts as one" in record["message"]
    (only,) = record["epochs"]
    assert (only["role"], only["seconds"]) == ("measured", record["run_seconds"])


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "oom"),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", "oom_host"),
    ],
)
def test_out_of_memory_is_a_result(words, status):
    record = of(f"import sys; print({words!r}, file=sys.stderr); sys.exit(1)")
    assert record["status"] == status
    assert record["epochs"] == []


def test_a_time_limit_is_a_result():
    record = of("import time; time.sleep(60)", time_limit_seconds=0.5)
    assert record["status"] == "timeout"
    assert "time limit of 0.5 s" in record["message"]


def test_a_loss_that_is_not_finite_is_divergence():
    lines = "\\n".join(f'{{"epoch": {n}, "seconds": 0.001, "loss": NaN}}' for n in range(4))
    record = of(f"print('{lines}')")
    assert record["status"] == "diverged"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "import sys; print('no such file'); sys.exit(3)",
            "exit status 3, its last line being 'no",
        ),
        (EPOCHS.replace("{count}", "1"), "printed 1 epochs, of which the first 1 warm up"),
        ('[print(f\'{{"epoch": {n}, "seconds": 9}}\') for n in range(4)]', "an epoch's own"),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(source, said):
    with pytest.raises(UserError, match=said):
        of(source)


def test_a_program_that_is_missing_is_named():
    with pytest.raises(UserError, match="starts no-such-program, which is not found"):
        own_trainer.run(spec_of("no-such-program {gpus}"))
