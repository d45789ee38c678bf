"""The emulation of several GPUs on one, and what each option of a technique changes."""

from dataclasses import replace

import pytest
import torch
import torch.multiprocessing as mp

from examples import ddp_training as real
from examples.small_convergence import RUN, STUDY, distance, engine, trained
from scaling.convergence.engine import algorithm_search
from scaling.models.resnet import BasicBlock, ResNet18


def test_the_emulation_gives_what_ddp_over_two_processes_gives(tmp_path):
    files = str(tmp_path / "rendezvous"), str(tmp_path / "state.pt")
    mp.start_processes(real.train, files, nprocs=real.GPUS, start_method="fork")
    by_ddp = torch.load(tmp_path / "state.pt")
    emulated, _ = trained(RUN, engine())
    assert emulated.keys() == by_ddp.keys()
    # Running statistics are among them: those of rank 0, updated once a step.
    assert distance(emulated, by_ddp) < 1e-5
    # The same global batches, each normalised as a whole on one GPU, are another training.
    whole, _ = trained(RUN, engine(replace(STUDY, gpus=1)))
    assert distance(whole, by_ddp) > 1e-2


def test_a_run_does_not_depend_on_those_before_it():
    made = engine()
    first, first_epochs = trained(RUN, made)
    trained(replace(RUN, seed=5, rates=(9.0,) * 6, zero_gamma=True, lars=0.01), made)
    again, again_epochs = trained(RUN, made)
    assert distance(first, again) == 0 and first_epochs == again_epochs


def test_an_epoch_tells_the_loss_of_each_update_and_their_mean_over_images():
    _, (epoch, _) = trained(RUN, engine())
    # 22 images a rank, 8 of them at a time.
    assert len(epoch.losses) == 3
    mean = sum(loss * size for loss, size in zip(epoch.losses, [16, 16, 12], strict=True)) / 44
    assert epoch.train_loss == pytest.approx(mean, rel=1e-5)
    assert 0 <= epoch.test.accuracy <= 1 and epoch.test.loss > 0


def test_each_option_of_a_technique_changes_the_training():
    made = engine()
    plain, _ = trained(RUN, made)
    for option in (
        {"zero_gamma": True},
        {"decay_batch_norm": False},
        {"label_smoothing": 0.2},
        {"lars": 0.01},
        {"rates": tuple(reversed(real.RATES[:3])) * 2},
    ):
        changed, _ = trained(replace(RUN, **option), made)
        assert distance(changed, plain) > 1e-7, option


def test_precise_statistics_change_no_training():
    made = engine()
    plain, plain_epochs = trained(RUN, made)
    state, epochs = trained(replace(RUN, precise_batch_norm=True), made)
    assert distance(state, plain) == 0
    assert [replace(epoch, precise=None) for epoch in epochs] == plain_epochs
    # Six updates leave the running statistics far from those of the images.
    assert all(epoch.precise.loss != epoch.test.loss for epoch in epochs)


def test_precise_statistics_are_those_of_the_training_images():
    """With one batch of all images and momentum 1, running statistics are those of the images."""
    made = engine(replace(STUDY, gpus=1), global_batch=43)
    for module in made.model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    still = replace(RUN, epochs=1, rates=(0.0,), precise_batch_norm=True)
    _, (epoch,) = trained(still, made)
    assert epoch.precise == pytest.approx(epoch.test, rel=1e-4)


def test_zero_gamma_makes_every_block_its_shortcut_at_the_start():
    made = engine()
    made.start(replace(RUN, zero_gamma=True))
    blocks = [module for module in made.model.modules() if isinstance(module, BasicBlock)]
    assert len(blocks) == 8
    assert all(not block.bn2.weight.any() and block.bn1.weight.all() for block in blocks)
    made.start(RUN)
    assert all(block.bn2.weight.all() for block in blocks)


def test_only_vectors_lose_their_weight_decay():
    """With a rate that is tiny beside the decay, gradients do not count: what decays shrinks."""
    study = replace(STUDY, weight_decay=1e5, momentum=0.0)
    made = engine(study)
    run = replace(RUN, epochs=1, rates=(1e-6,) * 3, decay_batch_norm=False)
    after, _ = trained(run, made)
    torch.manual_seed(real.SEED)
    before = ResNet18(real.WIDTH, 5).state_dict()
    assert after["stem.0.weight"].norm() < 0.8 * before["stem.0.weight"].norm()
    torch.testing.assert_close(after["stem.1.weight"], before["stem.1.weight"], atol=1e-3, rtol=0)


def test_cudnn_searches_within_and_as_before_after():
    with algorithm_search(True):
        assert torch.backends.cudnn.benchmark
        with algorithm_search(False):
            assert not torch.backends.cudnn.benchmark
        assert torch.backends.cudnn.benchmark
    assert not torch.backends.cudnn.benchmark


def test_a_loss_that_is_not_finite_is_told():
    _, epochs = trained(replace(RUN, rates=(1e30,) * 6), engine())
    assert not all(map(torch.isfinite, map(torch.tensor, epochs[-1].losses)))
