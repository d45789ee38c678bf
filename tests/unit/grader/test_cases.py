"""Tables as people publish them: right ones have no finding, wrong ones have their cause."""

import pytest

from examples.grader.published_study import TRAIN_IMAGES, causes_of
from grader.judge import judge
from grader.study import read_folder

TIMED = """gpus,batch_size,Time (s),Speedup
1,32,98.5,1.00
1,128,71.3,1.00
1,512,64.3,1.00
2,32,67.0,1.47
2,128,38.1,1.87
2,512,32.7,1.97
"""
WITH = "gpus,batch_size,epoch time (s),{}\n1,32,98.5,{}\n1,128,71.3,{}\n1,512,64.3,{}\n"
WITH += "2,32,67.0,{}\n2,128,38.1,{}\n2,512,32.7,{}\n"
PARTS = "compute (s),comm (s)"
STRONG = """GPUs,Global batch size,Time (s),Speedup
1,128,40.0,1.00
1,256,36.0,1.00
2,128,25.0,1.60
2,256,20.0,1.80
"""
LAB = """Training with DDP

| GPUs | b = 32: compute | b = 32: communication | b = 128: compute | b = 128: communication |
|---|---|---|---|---|
| 2 | 45.00 | 22.00 | 33.00 | 5.10 |

| GPUs | b = 32: time (s) | b = 128: time (s) |
|---|---|---|
| 1 | 98.5 | 71.3 |
| 2 | 67.0 | 38.1 |
"""
RIGHT = {
    "times and speedups": TIMED,
    "tokens a second": "gpus,batch,tokens/s,speedup\n1,8,310K/sec,1\n2,8,0.6M/sec,1.94\n",
    "slow model": "gpus,batch,time (s)\n1,32,7397\n2,32,3900\n",
    "clock times": "gpus,batch,time,speedup\n1,32,1m 38.5s,1\n2,32,00:01:07,1.47\n",
    "plus minus": "gpus,batch,images/s\n1,32,925.0 +- 4.4\n2,32,1800.1 ± 9\n",
    "fixed global batch": STRONG,
    "words of a strategy": TIMED.replace("gpus", "mode,gpus").replace("\n1,", "\nfsdp,1,")
    .replace("\n2,", "\nfsdp,2,"),
    "measured parts": WITH.format(PARTS, *["", ""] * 3).replace("98.5,,", "98.5,,,")
    .replace("71.3,,", "71.3,,,").replace("64.3,,", "64.3,,,")
    .replace("67.0,", "67.0,40.1,26.9").replace("38.1,", "38.1,30.1,8.0")
    .replace("32.7,", "32.7,29.7,3.0"),
    "training time of Question 1": LAB,
}  # fmt: skip
WRONG = {
    "images a second times N": (
        WITH.format("images/s", 508, 701, 778, 1493, 2625, 3058),
        {"times_gpus"},
    ),
    "mean of the times on one GPU": (
        TIMED.replace("1.47", "1.165").replace("1.87", "2.048").replace("1.97", "2.387"),
        {"baseline"},
    ),
    "efficiency not divided": (
        WITH.format("efficiency (%)", 100, 100, 100, "147.0", "187.1", "196.6"),
        {"not_divided"},
    ),
    # A column of zeros is no evidence of a cause.
    "communication cut off": (
        WITH.format(PARTS, *["98.5,0", "71.3,0", "64.3,0"] * 2),
        {"not_divided", "unexplained"},
    ),
    "digits exchanged": (TIMED.replace("1.97", "1.79"), {"unexplained"}),
}


def findings(folder, text):
    path = folder / ("t.md" if "|" in text else "t.csv")
    path.write_text(text)
    studies = read_folder(path)
    judged = [judge(one, studies, TRAIN_IMAGES) for one in studies]
    return {name for one in judged for name in causes_of(one.findings)}


@pytest.mark.parametrize("name", RIGHT)
def test_no_right_figure_is_called_wrong(tmp_path, name):
    assert findings(tmp_path, RIGHT[name]) == set()


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_has_its_cause(tmp_path, name):
    text, causes = WRONG[name]
    assert findings(tmp_path, text) == causes
