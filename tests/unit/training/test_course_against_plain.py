"""How the bench compares the recipe `course` with a plain script of the same lab."""

import torch

from bench.course_against_plain import Run, Spread, summarise, table
from bench.plain_ddp import resnet18
from scaling.models.resnet import ResNet18


def test_the_plain_script_trains_the_same_model():
    ours, plain = ResNet18(width=4).eval(), resnet18(width=4, classes=10).eval()
    weights = zip(plain.state_dict(), ours.state_dict().values(), strict=True)
    plain.load_state_dict(dict(weights))
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(plain(images), ours(images))


def test_the_ratio_is_of_the_medians_of_each_repeat_and_the_warm_up_never_counts():
    runs = [
        Run("plain", 2, 512, 0, [9.0, 2.0, 1.0, 3.0]),
        Run("course", 2, 512, 0, [9.0, 2.2, 2.1, 2.3]),
        Run("plain", 2, 512, 1, [9.0, 4.0, 4.0, 4.0]),
        Run("course", 2, 512, 1, [9.0, 5.0, 4.8, 9.0]),
    ]
    (found,) = summarise(runs)
    assert (found.gpus, found.batch_size) == (2, 512)
    # 1 2 3 4 4 4 and 2.1 2.2 2.3 4.8 5 9; the repeats' ratios are 2.2 / 2 and 5 / 4.
    assert found.plain == Spread(3.5, 1.0, 4.0, 6)
    assert found.course == Spread((2.3 + 4.8) / 2, 2.1, 9.0, 6)
    assert found.ratio == Spread((1.1 + 1.25) / 2, 1.1, 1.25, 2)


def test_every_cell_is_compared_on_its_own():
    runs = [
        Run(script, gpus, 128, 0, [9.0, seconds * gpus])
        for gpus in (1, 2)
        for script, seconds in (("plain", 2.0), ("course", 3.0))
    ]
    assert [(row.gpus, row.ratio.median) for row in summarise(runs)] == [(1, 1.5), (2, 1.5)]
    assert [row.plain.median for row in summarise(runs)] == [2.0, 4.0]


def test_a_repeat_with_a_failed_run_keeps_its_times_but_has_no_ratio():
    runs = [
        Run("plain", 1, 128, 0, [9.0, 2.0]),
        Run("course", 1, 128, 0, [], "oom: the device had no room"),
        Run("plain", 1, 128, 1, [9.0, 4.0]),
        Run("course", 1, 128, 1, [9.0, 5.0]),
    ]
    (found,) = summarise(runs)
    assert found.plain == Spread(3.0, 2.0, 4.0, 2)
    assert found.ratio == Spread(1.25, 1.25, 1.25, 1)


def test_a_cell_that_always_fails_is_shown_as_failed():
    runs = [Run("plain", 1, 8192, 0, [9.0, 2.0]), Run("course", 1, 8192, 0, [], "timeout")]
    line = table(summarise(runs)).splitlines()[-1].split()
    assert line == ["1", "8192", "2.000", "(2.000–2.000)", "failed", "failed", "0"]
