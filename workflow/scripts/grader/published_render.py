"""Render the page of published studies: their printed figures, and the errors in them."""

from pathlib import Path

import pandas as pd

from grader import judged as report_published
from grader import study as published
from grader.findings import judge
from grader.study import CIFAR10_TRAIN_IMAGES
from scaling.core import command_line, files
from scaling.report import page


@command_line.script
def main(
    folders: tuple[Path, ...],
    figure: Path,
    template: Path,
    output: Path,
    networks: Path,
) -> None:
    """Write the page of the published studies in `folders`, with our `networks`."""
    ours = pd.read_csv(networks)
    studies = [
        report_published.Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES), ours)
        for folder, study in published.by_name(folders).values()
    ]
    html = page.render(
        template,
        title="Published studies, replayed and audited",
        tables=report_published.index((one.overview(f"#{one.id}") for one in studies), studies),
        studies=studies,
        trainings=len(ours[["biases", "seed"]].drop_duplicates()),
        figure=page.inline_svg(figure),
    )
    files.write_text(output, html)
