"""A study that runs on Slurm, and what Slurm says about its jobs."""

from datetime import datetime

import cluster

from small_study import BackgroundStudy


class SlurmStudy(BackgroundStudy):
    """A study whose jobs Slurm runs, and what Slurm says about them."""

    def command(self, *options):
        return ["snakemake", "--profile", "slurm", *options, "--configfile", "tiny.yaml"]

    def start(self, *options):
        """Start it with plugins in the place of what `make env` leaves in the environment."""
        return super().start(*options, PYTHONPATH=str(self.folder / "workflow/plugins"))

    def jobs(self):
        """Slurm's records of this study's jobs, in the order of submission."""
        return [job for job in cluster.jobs().values() if job["WorkDir"] == str(self.folder)]

    def job(self, rule, *wildcards):
        """Slurm's record of the last job of this rule and these wildcards, or None."""
        comment = "_".join(["rule", rule, "wildcards", *map(str, wildcards)])
        return next((job for job in reversed(self.jobs()) if job["Comment"] == comment), None)

    def cell_job(self, gpus, batch_size):
        return self.job("train_run", "plain", "ddp", gpus, batch_size, 0, "")

    def wait_for_state(self, state, gpus, batch_size):
        cluster.wait_for(
            lambda: (self.cell_job(gpus, batch_size) or {}).get("JobState") == state,
            f"{gpus} GPUs, batch {batch_size} to be {state}",
        )


def time_span(job):
    """Start and end of a finished job."""
    return tuple(datetime.fromisoformat(job[key]) for key in ("StartTime", "EndTime"))


def overlap(one, other):
    (first_start, first_end), (second_start, second_end) = time_span(one), time_span(other)
    return first_start < second_end and second_start < first_end
