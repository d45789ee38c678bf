"""The page of published studies: their printed figures, and the errors in them."""

from pathlib import Path

import pandas as pd

from grader.findings import judge
from grader.pages import Judged, index
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder
from scaling.core import command_line, files
from scaling.report import page


@command_line.script
def main(folders: tuple[Path, ...], networks: Path, template: Path, output: Path) -> None:
    """Write the page of the studies in `folders`, with the accuracies of our `networks`."""
    ours = pd.read_csv(networks)
    studies = [
        Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES), ours)
        for folder in folders
        for study in read_folder(folder)
    ]
    html = page.render(
        template,
        title="Published studies, replayed and audited",
        tables=index((one.overview(f"#{one.id}") for one in studies), studies),
        studies=studies,
        trainings=len(ours[["biases", "seed"]].drop_duplicates()),
    )
    files.write_text(output, html)
