"""The emulation of several GPUs on one, and what each option of a technique changes."""

from dataclasses import replace

import pytest
import torch

from examples.small_convergence import (
    GPUS,
    RATES,
    RUN,
    STUDY,
    distance,
    engine,
    train_by_torch,
    trained,
    with_options,
)
from training_runs import in_ranks


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Several take longer, more so where others compute too."""
    torch.set_num_threads(1)


def test_the_emulation_gives_what_ddp_over_two_processes_gives(tmp_path):
    files = str(tmp_path / "rendezvous"), str(tmp_path / "state.pt")
    in_ranks(train_by_torch, *files, count=GPUS)
    by_ddp = torch.load(tmp_path / "state.pt")
    emulated, _ = trained(RUN, engine())
    assert emulated.keys() == by_ddp.keys()
    # Running statistics are among them: those of rank 0, updated once a step.
    assert distance(emulated, by_ddp) < 1e-5
    # The same global batches, each normalised as a whole on one GPU, are another training.
    whole, _ = trained(RUN, engine(STUDY.model_copy(update={"gpus": 1})))
    assert distance(whole, by_ddp) > 1e-2


def test_a_run_does_not_depend_on_those_before_it_but_on_each_option():
    made = engine()
    plain, (epoch, _) = trained(RUN, made)
    for run in (
        with_options(zero_gamma=True),
        with_options(decay_batch_norm=False),
        with_options(label_smoothing=0.2),
        with_options(lars=0.01),
        with_options(nesterov=True),
        with_options(muon=1.0),
        replace(with_options(muon=1.0), rest=(0.0,) * 6),
        with_options(ghost_batch=4),
        replace(RUN, momentum=0.5),
        replace(RUN, rates=tuple(reversed(RATES[:3])) * 2),
        replace(RUN, seed=5),
    ):
        one_epoch = replace(run, epochs=1)
        assert distance(trained(one_epoch, made)[0], plain) > 1e-7, run
    again, (same, _) = trained(RUN, made)
    assert distance(plain, again) == 0 and same == epoch


def test_precise_statistics_are_those_of_the_training_images_and_change_no_training():
    made, precise = engine(), replace(RUN, precise=True)
    (state, epochs), (same, others) = trained(RUN, made), trained(precise, made)
    assert distance(state, same) == 0
    for epoch, other in zip(epochs, others, strict=True):
        # Six updates leave the running statistics far from those of the images.
        assert epoch["train_loss"] == other["train_loss"]
        assert epoch["test_loss"] != other["test_loss"]
    # With one batch of all images and momentum 1, running statistics are those of the images.
    made = engine(STUDY.model_copy(update={"gpus": 1}), global_batch=43)
    for norm in filter(lambda one: isinstance(one, torch.nn.BatchNorm2d), made.model.modules()):
        norm.momentum = 1.0
    runs = [replace(run, epochs=1, rates=(0.0,)) for run in (RUN, precise)]
    (epoch,), (other,) = (trained(run, made)[1] for run in runs)
    assert epoch == pytest.approx(other, rel=1e-4)


def test_a_ghost_batch_of_all_images_is_a_plain_one_and_parts_are_normalised_by_themselves():
    made = engine(STUDY.model_copy(update={"gpus": 1}))
    plain, _ = trained(replace(RUN, epochs=1), made)
    whole, _ = trained(replace(with_options(ghost_batch=16), epochs=1), made)
    assert distance(plain, whole) == 0
    norm, images = made.model.stem[1], torch.randn(6, STUDY.model_width, 4, 4)
    made.start(with_options(ghost_batch=3))
    norm.train()
    found = norm(images)
    fresh = torch.nn.BatchNorm2d(STUDY.model_width)
    assert torch.allclose(found, torch.cat([fresh(part) for part in images.split(3)]))
    assert torch.allclose(norm.running_mean, fresh.running_mean)
