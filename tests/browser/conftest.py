"""Reports of stored studies, and Debian's Chromium, which opens them."""

import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import snapshots

SHOWN = [
    "h100x2",
    "h200x2",
    "cpu",
    "command",
    "h200x4",
    "h200-large-batches",
    "quantization-cifar10",
]
SHOWN += ["published"]
"""The pages to look at: with all parts, on CPUs, of a command, with cells that failed, with one
part, others'."""


def make(results: Path) -> Path:
    """Return the page of a study's replay, with figures; `results` is named after the study."""
    with snapshots.project_copy():
        shutil.copytree(snapshots.make(results.name, drawn=True), results)
    (path,) = results.glob("*.html")
    return path


@pytest.fixture(scope="session")
def making(tmp_path_factory):
    """Reports by study. The next ones are made while the browser opens the first."""
    target = tmp_path_factory.mktemp("reports")
    with ProcessPoolExecutor(2) as workers:
        yield {study: workers.submit(make, target / study) for study in SHOWN}


@pytest.fixture(scope="session", params=SHOWN)
def report(making, request):
    return making[request.param].result()


@pytest.fixture(scope="session")
def look(making):
    """A function that opens a page, without scripts unless asked for.

    The page must load nothing, report no error and open no dialog, whatever a test does.
    """
    chromium = shutil.which("chromium")
    assert chromium, "these tests open reports in Chromium: install Debian's package chromium"
    seen = []

    def opened(path, *, width=1280, scripts=False, **options):
        screen = {"width": width, "height": 800}
        page = browser.new_page(viewport=screen, java_script_enabled=scripts, **options)
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("dialog", lambda dialog: seen.append(dialog.message))
        page.on("request", lambda request: seen.append(request.url))
        page.goto(path.as_uri())
        assert seen.pop(0) == path.as_uri()
        return page

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
    assert seen == []


@pytest.fixture(scope="session")
def page(report, look):
    """The page of a report, shared by all tests that do not change it."""
    with look(report) as opened:
        yield opened
