"""Question 4.2: the claims on the gradient noise scale and on trainings run to their end."""

import pytest

from examples.records import full_training
from scaling.claims import time_to_accuracy
from scaling.claims.claim_tables import ClaimTables
from scaling.tables import schema
from scaling.tables.experiments import full_trainings


@pytest.mark.parametrize(
    ("needed", "noise", "verdict"),
    [
        ({128: 5, 512: 6, 2048: 15}, (600, 1500), "supported"),
        ({128: 5, 512: 12, 2048: 15}, (600, 1500), "refuted"),
        ({128: 5, 512: 6, 2048: 7}, (600, 1500), "refuted"),
        # Of 5 and 8 epochs 4.1 and 7.9 may have been needed, or 5 and 7.1.
        ({128: 5, 512: 6, 2048: 8}, (600, 1500), "unclear"),
        ({128: 5, 512: 6}, (600, 1500), "unclear"),
    ],
)
def test_the_noise_scale_foretells_where_twice_the_images_are_needed(needed, noise, verdict):
    run = {"remedy": "sweep", "seed": 0, "chosen": True}
    # Another technique, another batch's noise and what fewer batches reached are not looked at.
    reached = [("sweep", batch, epochs, 0.8) for batch, epochs in needed.items()]
    reached += [("sweep", batch, 29, 0.9) for batch in list(needed)[:-1] if len(needed) > 2]
    reached += [("muon", batch, 1, 0.9) for batch in needed]
    epochs = [
        {**run, "remedy": remedy, "global_batch": batch, "epoch": epoch, "test_accuracy": accuracy}
        for remedy, batch, epoch, accuracy in reached
    ]
    low, high = noise
    measured = {"noise_scale": 1000.0, "noise_scale_low": low, "noise_scale_high": high}
    other = dict.fromkeys(measured, 9.0) | {"global_batch": 512}
    found = {
        "images_to_accuracy": [{"accuracy": accuracy} for accuracy in (0.8, 0.9)],
        "convergence_epochs": epochs,
        "noise_scale": [run | each for each in (measured | {"global_batch": 128}, other)],
    }
    frames = {name: schema.frame(name, own) for name, own in found.items()}
    (claim,) = time_to_accuracy.claims(ClaimTables("demo", frames))
    assert (claim.id, claim.verdict) == ("Q4.2-noise-scale", verdict)
    said = "1,000 images (600–1,500) along sweep at batch 128. To 80 % test accuracy"
    assert said in claim.sentence


@pytest.mark.parametrize(
    ("seconds", "accuracy", "verdict"),
    [
        ((3.0, 3.1, 3.2), 0.9, "supported"),
        ((5.0, 6.0, 7.0), 0.9, "unclear"),
        ((8.0, 8.1, 8.2), 0.9, "refuted"),
        ((3.0, 3.1, 3.2), 0.8, "refuted"),
    ],
)
def test_trainings_run_to_their_end_tell_whether_more_gpus_are_there_sooner(
    seconds, accuracy, verdict
):
    one = [full_training(1, seed, time, 0.9) for seed, time in enumerate((6.0, 6.1, 6.2))]
    two = [full_training(2, seed, time, accuracy) for seed, time in enumerate(seconds)]
    full = full_trainings.full_trainings([*one, *two], 0.89)
    found = {"trained_to_accuracy": full_trainings.trained_to_accuracy(full)}
    (claim,) = time_to_accuracy.claims(ClaimTables("demo", found))
    assert (claim.id, claim.verdict) == ("Q4.2-trained-tuned-ddp", verdict)
    assert "3 of 3 reach 89 % on 1 GPU, in 6–6.20 s and 400 J" in claim.sentence
