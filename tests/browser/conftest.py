"""Reports of stored studies, and Debian's Chromium, which opens them."""

import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

import snapshots

SHOWN = ["h200x2", "cpu", "command", "h200x4", "h200-large-batches"]
SHOWN += ["quantization-cifar10", "published"]
"""Studies whose pages are opened. Together they have all parts, a CPU, a user's command, failed
runs, a study of one part, and studies of others."""


def make(results: Path) -> Path:
    """Return the page of a replayed study, with figures. The name of `results` is the study's."""
    with snapshots.project_copy():
        shutil.copytree(snapshots.make(results.name, drawn=True), results)
    (path,) = results.glob("*.html")
    return path


@pytest.fixture(scope="session")
def making(tmp_path_factory):
    """Futures of reports, by study. While the browser opens one report, the next are rendered."""
    target = tmp_path_factory.mktemp("reports")
    with ProcessPoolExecutor(2) as workers:
        yield {study: workers.submit(make, target / study) for study in SHOWN}


@pytest.fixture(scope="session", params=SHOWN)
def report(making, request):
    return making[request.param].result()


@pytest.fixture(scope="session")
def look(making):
    """A function that opens a page, by default without scripts.

    Whatever a test does, the page must load nothing, report no error and open no dialog.
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
    """The opened page of a report. Tests that do not change the page share it."""
    with look(report) as opened:
        yield opened
