"""A script of the user's own on two nodes, as docs/own_trainer.md starts it."""

import json
import re
from collections import Counter

from examples.own_page import FILES, PAGE

(COMMAND,) = re.findall(r"^command: (srun .*) train\.py$", PAGE, re.MULTILINE)

SAYS = "print('ran on', os.environ['SLURMD_NODENAME'], flush=True)\n"


def test_a_command_is_started_once_and_trains_on_both_nodes(new_slurm_study):
    options = "train.py --batch-size {batch_size} --seed {seed} --epochs {epochs}"
    study = new_slurm_study(
        parts=["scaling"],
        machine__gpus_per_node=2,
        dataset={"source": "own"},
        recipes={"mine": {"command": f"{COMMAND} {options}"}},
        grid__recipes=["mine"],
        grid__gpus=[4],
        grid__batch_sizes=[32],
    )
    (study.folder / "train.py").write_text(FILES["train.py"] + SAYS)
    cell = {"recipe": "mine", "strategy": "own", "gpus": 4, "batch_size": 32}
    done = study.snakemake(study.target(**cell))
    assert done.returncode == 0, done.stdout
    found = json.loads(study.record(**cell).read_text())
    assert found["status"] == "ok" and found["message"] is None
    assert len(found["epochs"]) == 4 and found["epochs"][0]["gpu_readings"] == []
    (log,) = study.folder.glob("logs/train_command/**/seed~0.log")
    assert Counter(re.findall("^ran on (..)$", log.read_text(), re.MULTILINE)) == {"n1": 2, "n2": 2}
