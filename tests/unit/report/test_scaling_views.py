"""Strong or weak: the sentence that says what each word means, with a cell to show it."""

import math

from examples.records import timing_row, timing_table
from scaling.report.scaling_views import strong_or_weak
from scaling.tables.speedup import speedup


def sentence(*rows):
    return strong_or_weak(speedup(timing_table(*rows))).text.replace("\u00a0", " ")


# The A40 study: T(1,32) = 23.55 in 1,563 steps, T(4,32) = 9.06 in 391.
A40 = [
    *(timing_row(1, b, t) for b, t in ((32, 23.55), (128, 18.311), (512, 19.704), (2048, 20.714))),
    *(timing_row(4, b, t) for b, t in ((32, 9.06), (128, 5.023), (512, 5.16))),
]


def test_the_three_views_of_the_cell_in_which_they_differ_most():
    # strong 23.55/9.06 = 2.599; a step (9.06/391)/(23.55/1563) = 1.538 times as long, 4/1.538 =
    # 2.601 the images; fixed global batch 18.311/9.06 = 2.021. At b=128 3.65 against 3.92.
    said = sentence(*A40)
    assert "With b = 32 on each of 4 GPUs an epoch is 2.60× as fast as on one" in said
    assert "a step on 4 times the images takes 1.54× as long" in said
    assert "so 2.60× the images per second" in said
    assert "against one GPU with that batch, T(1, 128), the speedup is 2.02×" in said
    assert "an efficiency of 51 % instead of 65 %" in said


def test_the_cell_is_named_so_that_a_reader_can_look_it_up():
    found = strong_or_weak(speedup(timing_table(*A40)))
    assert found.supported
    assert found.source == "speedup.csv: course/ddp, 4 GPUs, b\u00a0=\u00a032"


def test_without_a_time_at_the_global_batch_the_third_view_is_said_to_be_missing():
    said = sentence(timing_row(1, 512, 20.0), timing_row(2, 512, 10.0))
    assert "as the global batch grew to 1024; with that held fixed nothing can be said" in said
    assert "T(1, 1024) is not there" in said


def test_without_the_number_of_steps_the_weak_view_is_said_to_be_missing():
    rows = [timing_row(1, 512, 20.0), timing_row(2, 512, 10.0)]
    said = sentence(*(row | {"iterations": math.nan} for row in rows))
    assert "2.00× as fast" in said
    assert "the number of steps, which the weak view needs, is unknown" in said


def test_without_a_single_gpus_time_nothing_is_said():
    found = strong_or_weak(speedup(timing_table(timing_row(2, 512, 10.0))))
    assert not found.supported
    assert found.text.startswith("Strong or weak cannot be said")
