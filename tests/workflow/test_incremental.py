"""Only what depends on a change runs again."""

import os
import shutil

import pytest

from scaling.core.records.run import RUN

MEASURING = {"train_run", "convergence_train", "interconnect_sweep", "synchronization_measure"}
MEASURING |= {"peaks_measure", "quantize_train", "quantize_evaluate"}
CONVERGENCE = {"convergence_train", "tables_experiments", "figures_draw"}
PAGE = {"claims_evaluate", "report_render"}
# Planned for the tables that theirs follow from; not made again where those stay as they were.
AFTER_RUNS = {"tables_scaling", "figures_draw"} | PAGE


@pytest.mark.parametrize(
    ("key", "value", "trained", "others"),
    [
        ("grid.batch_sizes", [10, 20, 30], 1, set()),
        ("grid.repeats", 2, 2, set()),
        ("training.learning_rate", 0.05, 2, CONVERGENCE),
    ],
)
def test_a_key_of_cells_runs_those_it_concerns_and_what_follows(study, key, value, trained, others):
    study.configure({key: value})
    planned = study.planned()
    assert planned["train_run"] == trained
    assert set(planned) == AFTER_RUNS | others | {"train_run", "study_config"}


def test_a_strategy_shares_the_runs_on_one_gpu_and_other_images_are_trained_on_again(study):
    study.configure({"grid.strategies": ["ddp", "zero1"], "grid.repeats": 2})
    assert study.planned()["train_single"] == 4
    study.configure({"dataset.seed": 1})
    assert {"dataset_prepare", "train_run", "quantize_train"} <= set(study.planned())


def test_another_look_at_the_machine_makes_no_measurement_old(study):
    study.edit("workflow/scripts/scaling/instruments/machine.py", "\nEDITED = True\n")
    study.configure({"machine.check": "warn"})
    assert study.planned() == {"study_config": 1}


def test_what_counts_is_the_checksum_that_a_record_names_and_no_date(study):
    folder = next((study.folder / "resources/dataset").iterdir())
    shutil.rmtree(study.folder / ".snakemake")
    for path in (*folder.iterdir(), *study.folder.glob("results/quantization/*/*.pt")):
        os.utime(path)
    assert not study.planned().keys() & MEASURING
    # A clock set back, and a record of other images that is newer than they are.
    first, second = (study.record(batch_size=size) for size in (10, 20))
    os.utime(first, (1e9, 1e9))
    record = RUN.read(second)
    record["dataset"]["checksum"] = "other"
    RUN.write(second, record)
    planned = study.planned()
    assert planned["train_run"] == 1 and not planned.keys() & (MEASURING - {"train_run"})


def test_images_and_a_look_at_the_machine_that_are_lost_are_made_again_alone(study):
    folder = next((study.folder / "resources/dataset").iterdir())
    lost = ["results/machine/check.json", str(folder.relative_to(study.folder) / "images.npz")]
    shutil.rmtree(folder)
    (study.folder / lost[0]).unlink()
    study.configure({"grid.batch_sizes": [10, 20, 30]})
    refused = study.snakemake("--dry-run")
    assert refused.returncode == 1 and f"(snakemake {' '.join(lost)})" in refused.stdout
    assert study.snakemake(*lost).returncode == 0
    planned = study.planned()
    assert planned["train_run"] == 1
    assert not planned.keys() & {"convergence_train", "peaks_measure"}


def test_editing_a_claim_makes_the_claims_and_the_report_again(study):
    study.edit("workflow/scripts/scaling/claims/q3.py", "\nEDITED = True\n")
    assert study.planned() == {"claims_evaluate": 1, "report_render": 1}
    document = study.folder / "results/tables/claims.json"
    page = study.folder / "results/report.html"
    before = document.stat().st_mtime_ns, page.stat().st_mtime_ns
    made = study.snakemake("claims")
    assert made.returncode == 0, made.stdout
    assert document.stat().st_mtime_ns > before[0]
    assert page.stat().st_mtime_ns == before[1]


@pytest.mark.parametrize(
    ("module", "jobs"),
    [
        ("tables/timing.py", {"tables_experiments"} | AFTER_RUNS),
        ("figures/style.py", {"figures_draw", "report_render"}),
    ],
)
def test_editing_a_module_reruns_the_jobs_that_run_it_and_what_follows(study, module, jobs):
    study.edit(f"workflow/scripts/scaling/{module}", "\nEDITED = True\n")
    assert study.planned() == dict.fromkeys(jobs, 1)


def test_touching_files_reruns_nothing_and_editing_the_template_the_report_alone(study):
    study.touch_everything()
    report = study.folder / "results/report.html"
    before = report.stat().st_mtime_ns
    again = study.snakemake()
    assert again.returncode == 0 and "Nothing to be done" in again.stdout
    assert report.stat().st_mtime_ns == before
    study.edit("report/style.css")
    assert study.planned() == {"report_render": 1}


TRIED, W4 = {"name": "longer", "recipe": "tuned", "factors": [3]}, {"name": "w4", "weight_bits": 4}
QUANTIZED = {"tables_experiments", "claims_evaluate", "figures_draw"}


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        # Of two experiments at a time, whose jobs differ.
        (
            {"quantization.calibration_images": 30, "convergence.recipes": [TRIED]},
            {"quantize_evaluate": 1} | dict.fromkeys(CONVERGENCE, 1),
        ),
        (
            {"quantization.variants": [W4], "convergence.accuracy_margin": 0.05},
            {"quantize_evaluate": 1} | dict.fromkeys(CONVERGENCE - {"convergence_train"}, 1),
        ),
        (
            {"quantization.resnet18": True},
            {f"quantize_{job}_resnet": 1 for job in ("train", "evaluate")},
        ),
    ],
)
def test_a_change_of_an_experiment_runs_it_alone(study, changes, jobs):
    for path, change in changes.items():
        section, key = path.split(".")
        added = change in ([TRIED], [W4])
        study.configure({path: [*study.config[section][key], *change] if added else change})
    always = dict.fromkeys([*QUANTIZED, "report_render", "study_config"], 1)
    assert study.planned() == jobs | always
