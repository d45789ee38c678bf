"""How much slower a training is for being measured as a recipe that is a command.

    python tests/bench/overhead.py --seconds 30 --pairs 5 -- --width 2048 --batch-size 1024

`small_steps.py`, which gets the last words, trains in short steps, tells of each epoch or of each
step, and times them itself. It is run once for `--seconds` as a recipe by Snakemake, whose
processes, but not the training, are stopped (SIGSTOP) and go on in turns. Then it is run `--pairs`
times alone and as a recipe in turns, on one GPU: processes differ by more than what is sought.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import fmean, median, stdev

import psutil
import yaml

ROOT = Path(__file__).parents[2]
STEPS = ROOT / "tests/bench/small_steps.py"
TURN_SECONDS, EPOCH_SECONDS, EPOCHS = 1.0, 0.1, 22
LEFT_OUT = (".git", ".venv*", "studies", "results*", "resources", ".snakemake", "docs")


def laps_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def per_step(laps, by):
    """Mean milliseconds of a step of the epochs that tell `by` epoch or step."""
    own = [lap for lap in laps if lap["by"] == by]
    return 1e3 * fmean((lap["end"] - lap["start"]) / lap["steps"] for lap in own)


def show(name, by, pairs):
    """Print how steps differ between the laps of each pair: without and with what is measured."""
    times = [
        (per_step(without, by), per_step(measured, by))
        for without, measured in pairs
        if {lap["by"] for lap in without} == {lap["by"] for lap in measured} == {"epoch", "step"}
    ]
    more = [100 * (measured / without - 1) for without, measured in times]
    error = stdev(more) / len(more) ** 0.5 if len(more) > 1 else float("nan")
    print(
        f"{name}: {fmean(without for without, _ in times):.4f} ms a step without, "
        f"{fmean(measured for _, measured in times):.4f} with: {fmean(more):+.2f} %, standard "
        f"error of {error:.2f} %, median {median(more):+.2f} %, {len(more)} pairs",
        flush=True,
    )


def pair(folder, number, options):
    """The laps of a run alone and of one as a recipe; every other pair is in the other order."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT}/workflow/scripts:{os.environ.get('PYTHONPATH', '')}"
    found = {}
    for way in ("alone", "recipe")[:: -1 if number % 2 else 1]:
        laps = folder / f"{way}{number}.jsonl"
        words = [sys.executable, str(STEPS), "--epochs", str(EPOCHS), "--laps", str(laps), *options]
        if way == "recipe":
            recipe = json.dumps({"command": shlex.join([*words, "--gpus"]) + " {gpus}"})
            words = [sys.executable, str(ROOT / "workflow/scripts/train_run.py"), "--strategy=own"]
            words += ["--engine=command", "--recipe-options", recipe]
            words += ["--output", str(folder / f"{way}{number}.json")]
        with (folder / f"{way}{number}.log").open("w") as log:
            subprocess.run(words, env=environment, stdout=log, stderr=log, check=True)
        found[way] = laps_of(laps)[2:]
    return found["alone"], found["recipe"]


def turns(folder, gpus, seconds, options):
    """The laps of a run by Snakemake, and when its processes were stopped, as pairs of times."""
    copy, laps, said = folder / "copy", folder / "laps.jsonl", folder / "snakemake.log"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    launcher = f"{sys.executable} -m torch.distributed.run --nproc-per-node {{gpus}}"
    length = f"--gpus {{gpus}} --epochs {round(seconds / EPOCH_SECONDS)} --laps {laps}"
    command = f"{launcher} --master-port {{port}} {STEPS} {length} {shlex.join(options)}"
    config = {
        "grid": {"recipes": ["steps"], "gpus": [gpus], "batch_sizes": [32]},
        "recipes": {"steps": {"command": command}},
        "machine": {"check": "off"},
    }
    (copy / "steps.yaml").write_text(yaml.safe_dump(config))
    record = f"results/runs/recipe~steps/strategy~own/gpus~{gpus}/batch_size~32/seed~0/run.json"
    files = ["--configfile", "config/scaling.yaml", "steps.yaml", "--", record]
    words = [sys.executable, "-m", "snakemake", "--show-failed-logs", "--cores", "all", *files]
    stopped = []
    with said.open("w") as log, subprocess.Popen(words, cwd=copy, stdout=log, stderr=log) as run:
        while run.poll() is None and not laps_of(laps):
            time.sleep(0.1)
        while run.poll() is None:
            processes = measuring(run.pid)
            for process in processes:
                process.suspend()
            begin = time.monotonic()
            time.sleep(TURN_SECONDS)
            stopped.append((begin, time.monotonic()))
            for process in processes:
                process.resume()
            with suppress(subprocess.TimeoutExpired):
                run.wait(TURN_SECONDS)
    if run.returncode:
        sys.exit(said.read_text())
    shutil.copy(copy / record, folder)
    return laps_of(laps)[2:], stopped


def measuring(snakemake):
    """Snakemake and what it has started, but the training and what that has."""
    family = [psutil.Process(snakemake), *psutil.Process(snakemake).children(recursive=True)]
    training = {
        process
        for own in family
        if any(word.endswith("train_run.py") for word in own.cmdline()[:2])
        for process in own.children(recursive=True)
    }
    return [process for process in family if process not in training]


def within(laps, begin, end):
    return [lap for lap in laps if begin <= lap["start"] and lap["end"] <= end]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1, help="of the last run")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0, help="of the last run's training")
    parser.add_argument("--output", type=Path, help="a folder to keep laps, logs and record in")
    parser.add_argument("options", nargs="*", help="of small_steps.py")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        laps, stopped = turns(folder, args.gpus, args.seconds, args.options)
        after = [begin for begin, _ in stopped[1:]] + [float("inf")]
        halves = [
            (within(laps, *pair), within(laps, pair[1], end))
            for pair, end in zip(stopped, after, strict=True)
        ]
        for by in ("epoch", "step"):
            show(f"stopped or not, a line each {by}", by, halves)
        pairs = []
        for number in range(args.pairs):
            pairs.append(pair(folder, number, args.options))
            for by in ("epoch", "step"):
                show(f"alone or not, a line each {by}", by, pairs)
        if args.output:
            args.output.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.*"):
                shutil.copy(path, args.output)


if __name__ == "__main__":
    main()
