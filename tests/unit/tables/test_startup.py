"""The phases of a start."""

from scaling.launch import supervisor


def test_a_phase_ends_when_the_last_rank_has_ended_it():
    # Rank 0 waits 2 s in `join` for rank 1, which imports until 7.
    ends = [
        {"launch": 1.0, "imports": 5.0, "join": 7.5, "dataset": 8.0, "recipe": 9.0},
        {"launch": 2.0, "imports": 7.0, "join": 7.5, "dataset": 8.5, "recipe": 8.75},
    ]
    merged = {"launch": 2.0, "imports": 5.0, "join": 0.5, "dataset": 1.0, "recipe": 0.5}
    assert supervisor.merged_phases(ends) == merged | {"total": 9.0}
