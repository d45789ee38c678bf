"""The page of published studies: their printed figures, and the errors in them."""

from pathlib import Path

from grader.findings import judge
from grader.pages import Judged, index
from grader.study import CIFAR10_TRAIN_IMAGES, read_folder
from scaling.core import command_line, files
from scaling.report import page


@command_line.script
def main(folders: tuple[Path, ...], template: Path, output: Path) -> None:
    """Write the page of the studies in `folders`."""
    studies = [
        Judged(study, str(folder), judge(study, CIFAR10_TRAIN_IMAGES))
        for folder in folders
        for study in read_folder(folder)
    ]
    table = index([one.overview(f"#{one.id}") for one in studies], [[one] for one in studies])
    title = "Published studies, replayed and audited"
    html = page.render(template, title=title, table=table, studies=studies)
    files.write_text(output, html)
