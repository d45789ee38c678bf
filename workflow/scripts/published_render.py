"""Render the page of published studies: what they printed, and what is wrong with it."""

from pathlib import Path

from scaling.core import command_line, files
from scaling.published import networks as our_networks
from scaling.published import study as published
from scaling.published.findings import judge
from scaling.published.study import CIFAR10_TRAIN_IMAGES
from scaling.report import page
from scaling.report import published as report_published


@command_line.script
def main(
    folders: tuple[Path, ...],
    figure: Path,
    template: Path,
    output: Path,
    networks: tuple[Path, ...] = (),
) -> None:
    """Write the page of the studies in `folders`, beside the records of our `networks`."""
    ours = our_networks.accuracies(networks)
    studies = [
        report_published.Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES), ours)
        for folder, study in published.by_name(folders).values()
    ]
    html = page.render(
        template,
        title="Published studies, replayed and audited",
        tables=report_published.index((one.overview(f"#{one.id}") for one in studies), studies),
        studies=studies,
        trainings=len({path.parents[1] for path in networks}),
        figure=page.inline_svg(figure),
    )
    files.write_text(output, html)
