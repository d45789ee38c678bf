import fcntl
import json
import os
import shlex
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.launch import own_trainer, printed
from scaling.launch.run_spec import RunSpec

FOLDER = Path("results/files")
EPOCHS = """
import time
from scaling_client import epoch
for number in range({count}):
    time.sleep(0.3)
    epoch(number, samples=64, loss=1 / (1 + number), test_accuracy=0.5)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def of(source, **options):
    """Run a Python program as the command of a run on two devices."""
    command = shlex.join([sys.executable, "-c", source.replace("{", "{{").replace("}", "}}")])
    words = f"{command} {{gpus}} {{batch_size}} {{epochs}}"
    return own_trainer.run(spec_of(words, **options), FOLDER)


def spec_of(command, **options):
    cell, recipe = Cell("mine", "own", 2, 16, 0), {"command": command}
    given = {"measured_epochs": 3, "recipe_options": recipe, "device": "cpu"} | options
    return RunSpec(cell=cell, engine="command", **given)


def test_epochs_are_recorded(tmp_path):
    record = of(EPOCHS.replace("{count}", "4"))
    RUN.write(tmp_path / "run.json", record)
    assert record["status"] == "ok" and record["message"] is None
    assert [row["role"] for row in record["epochs"]] == ["warmup"] + 3 * ["measured"]
    assert all(row["seconds"] >= 0.3 for row in record["epochs"])
    assert [row["iterations"] for row in record["epochs"]] == [0] * 4
    assert record["evaluation"]["test_accuracy"] == 0.5
    assert 0 <= record["startup"]["total"] < record["run_seconds"]


def test_command_has_the_values_of_its_cell(capsys):
    record = of("import sys; print('given', *sys.argv[1:]); print({'epoch': 0.5})", nodes=2)
    assert "given 2 16" in capsys.readouterr().out
    assert record["memory"]["peak_bytes"] == record["device_time"] == []
    assert "the whole run counts as one" in record["message"]
    (only,) = record["epochs"]
    assert (only["role"], only["seconds"]) == ("measured", record["run_seconds"])


def printed_epochs(*numbers, seconds=1e-4, **more):
    lines = [json.dumps({"epoch": number, "seconds": seconds, **more}) for number in numbers]
    return f"print({chr(10).join(lines)!r})"


FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


@pytest.mark.parametrize(
    ("source", "status", "message"),
    [
        (f"import sys; print({FULL!r}, file=sys.stderr); sys.exit(1)", "oom", "out of memory"),
        ("import time; time.sleep(60)", "timeout", "time limit of 0.5 s"),
        (printed_epochs(*range(4), loss=1e308), "diverged", "a loss was not finite"),
    ],
)
def test_no_memory_no_time_and_no_finite_loss_are_results(source, status, message):
    record = of(source, time_limit_seconds=0.5 if status == "timeout" else 60)
    assert record["status"] == status and message in record["message"]
    assert status == "diverged" or record["epochs"] == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys; print('no such file'); sys.exit(3)", "exit status 3: 'no such file'"),
        ("print({'epoch': 0})", "it is not JSON: print"),
        (printed_epochs(0, 1), "printed 2 epochs, of which the first 1 warm up"),
        (printed_epochs(3, 4, 5, 6), r"printed epoch 3 first, not 0 or 1.*\{folder\}"),
        (printed_epochs(*range(4), seconds=9), "an epoch's own"),
    ],
)
def test_unrecordable_command_is_one_sentence(source, said):
    with pytest.raises(UserError, match=said):
        of(source)


def test_missing_program_is_named():
    with pytest.raises(UserError, match="starts no-such-program, which is not found"):
        own_trainer.run(spec_of("no-such-program {gpus}"), Path("files"))


def test_line_has_the_time_it_came(monkeypatch):
    output, (source, target) = printed.Output(), os.pipe()
    released, keep = threading.Event(), output._line
    monkeypatch.setattr(output, "_line", lambda *line: released.wait() and keep(*line))
    with os.fdopen(source, "rb") as stream:
        reader = threading.Thread(target=output.read, args=[stream])
        reader.start()
        for line in ["x" * 60_000, '{"epoch": 0}', '{"epoch": 1}', "the end"]:
            os.write(target, f"{line}\n".encode())
            while fcntl.ioctl(source, termios.FIONREAD, bytes(4)) != bytes(4):
                time.sleep(0.001)
        taken = output.seconds()
        released.set()
        os.close(target)
        reader.join()
    assert [line for _, line in output.lines] == ['{"epoch": 0}', '{"epoch": 1}']
    assert all(now <= taken for now, _ in output.lines)


def epochs_of(*lines, ranks=1):
    told = enumerate(map(json.dumps, lines), start=1)
    return printed.epochs_of(printed.read_lines([*told], ranks))


def test_line_without_seconds_is_timed_since_the_last():
    first, second, third = epochs_of(
        {"epoch": 0, "seconds": 0.5, "samples": 100, "loss": 2.0, "other": [1]},
        {"epoch": 1, "seconds": 0.25, "samples": 100, "loss": 1.0, "test_accuracy": 0.5},
        {"epoch": 3},
    ).itertuples()
    assert (first.seconds, first.samples, first.loss, first.end) == (0.5, 100, 2.0, 1.0)
    assert (second.seconds, second.test_accuracy, second.end) == (0.25, 0.5, 2.0)
    assert third.seconds == 1.0


def test_steps_of_an_epoch_are_added_up_by_slowest_rank():
    places = [(1, 0), (1, 1), (1, 0), (2, 0), (1, 1), (2, 1), (2, 0), (2, 1)]
    lines = [
        {"epoch": epoch, "step": step, "seconds": 0.1 * count, "samples": 4, "loss": step + count}
        for count, (epoch, step) in enumerate(places, start=1)
    ]
    first, second = epochs_of(*lines, ranks=2).itertuples()
    assert (round(first.seconds, 6), first.samples, first.loss, first.steps) == (0.8, 8, 3.25, 2)
    assert (round(second.seconds, 6), second.steps) == (1.5, 2)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"epoch": 2}, {"epoch": 1}], "it comes after 2"),
        ([{"epoch": 1}] * 3, "each process has printed that before: print one line an epoch"),
        ([{"epoch": 1, "seconds": 1}, {"epoch": 1}], "not all lines of that epoch have seconds"),
        ([{"epoch": 1}, {"epoch": 1, "seconds": 1}], "not all lines of that epoch have seconds"),
        ([{"epoch": 1, "seconds": 1e-9}], "seconds is 1e-09: it should be greater than or equal"),
        ([{"epoch": 1, "test_accuracy": 87}], "is 87: it should be less than or equal"),
    ],
)
def test_impossible_line_is_refused_and_quoted(lines, said):
    with pytest.raises(UserError, match=said):
        epochs_of(*lines, ranks=2)


STEPS = """
import os, time
os.environ["RANK"] = "{rank}"
from scaling_client import data_wait, epoch, step
def batches():
    for number in range(5):
        time.sleep(0.01)
        yield number
for number in range(4):
    for _ in data_wait(batches()):
        with step():
            time.sleep(0.02)
    epoch(number, samples=320)
"""


def test_client_tells_steps_and_waits_of_each_rank(tmp_path):
    both = "\n".join(
        f"import subprocess, sys; rank{rank} = subprocess.Popen([sys.executable, '-c', "
        f"{STEPS.replace('{rank}', str(rank))!r}])"
        for rank in range(2)
    )
    record = of(f"{both}\nsys.exit(rank0.wait() or rank1.wait())")
    RUN.write(tmp_path / "run.json", record)
    measured = [row for row in record["epochs"] if row["role"] == "measured"]
    assert [row["rank"] for row in measured] == [0, 1] * 3
    assert all(row["loader_seconds"] >= 0.05 and row["iterations"] == 5 for row in measured)
    assert sum(row["samples"] for row in measured) == 3 * 320
    assert all(seconds >= 0.02 for seconds in record["training"]["step_seconds"])
    assert record["environment"]["python"] and record["environment"]["torch"] is None


def test_steps_of_the_warmup_do_not_count():
    steps = (9.0, 9.0, 0.5, 0.7, 0.5)
    lines = [printed_epochs(n, rank=0, step_seconds=one) for n, one in enumerate(steps)]
    assert of("\n".join(lines), warmup_epochs=2)["training"]["step_seconds"] == [0.5]


def test_threads_of_a_command_are_those_of_the_study(monkeypatch, capsys):
    monkeypatch.setenv("MKL_NUM_THREADS", "16")
    of("import os; print(*(os.environ[f'{name}_NUM_THREADS'] for name in ('OMP', 'MKL')))")
    assert "1 1" in capsys.readouterr().out


def test_objects_are_found_behind_bars_and_prefixes(tmp_path):
    line = '\\r 25%%|##| 1/4 [00:00]INFO:root:{"epoch": %d, "seconds": 0.001}'
    record = of(
        "print('INFO the \"epoch\": of nothing'); print({'loss': 1.5, 'epoch': 0})\n"
        f"for n in range(4): print('{line}' % n, flush=True)"
    )
    assert [row["seconds"] for row in record["epochs"]] == [0.001] * 4
    assert record["message"].startswith("2 lines with an epoch were not read")


def test_folder_of_a_run_is_empty_and_named(tmp_path):
    source = "import os, sys; open(os.environ['SCALING_FOLDER'] + '/last', 'x'); open('here', 'w')"
    assert of(source)["training"]["written"] == ["here"]
    assert of(source)["training"]["written"] == ["here"] and (tmp_path / FOLDER / "last").exists()
