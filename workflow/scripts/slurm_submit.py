"""Run sbatch with these arguments, and again while Slurm has no room for a job or is away.

An answer that never came (a timeout) is not asked for again: the job may have been taken.
"""

import subprocess
import sys
import time

NOT_NOW = (
    *("MaxSubmit", "Unable to contact slurm controller", "Resource temporarily unavailable"),
    "temporarily unable to accept job",
)
PAUSE_SECONDS = 15
PATIENCE_SECONDS = 24 * 3600


def submit(arguments: list[str], script: str) -> subprocess.CompletedProcess[str]:
    """Run sbatch with `script` on its input until it takes the job or refuses it for good."""
    given_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        done = subprocess.run(
            ["sbatch", *arguments], input=script, capture_output=True, text=True, check=False
        )
        busy = done.returncode and any(words in done.stderr for words in NOT_NOW)
        if not busy or time.monotonic() > given_up:
            return done
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    done = submit(sys.argv[1:], sys.stdin.read())
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    sys.exit(done.returncode)
