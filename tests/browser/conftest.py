"""Reports of all stored studies, and a browser that opens them: Debian's Chromium."""

import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import sync_playwright

import snapshots


class Report(NamedTuple):
    """The page of a study with its results, and the folder that holds its records."""

    study: str
    page: Path
    results: Path
    records: Path


def make(study: str, target: Path) -> Report:
    """Replay a study with its figures; `target` keeps what that makes."""
    with snapshots.project_copy():
        shutil.copytree(snapshots.make(study, drawn=True), target / study)
    (page,) = (target / study).glob("*.html")
    places = [root / "studies" / study for root in (snapshots.ROOT, snapshots.SNAPSHOTS)]
    return Report(study, page, target / study, next(filter(Path.exists, places), target))


@pytest.fixture(scope="session")
def making(tmp_path_factory):
    """All reports by their studies: others are made while the browser looks at the first."""
    target = tmp_path_factory.mktemp("reports")
    with ProcessPoolExecutor(2) as workers:
        yield {study: workers.submit(make, study, target) for study in snapshots.STUDIES}


@pytest.fixture(scope="session", params=snapshots.STUDIES)
def report(making, request):
    return making[request.param].result()


@pytest.fixture(scope="session")
def browser(making):
    chromium = shutil.which("chromium")
    assert chromium, "these tests open reports in Chromium: install Debian's package chromium"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


@pytest.fixture
def look(browser):
    """A function that opens a page, without scripts unless asked for.

    Whatever a test does with it: it asks for nothing, reports no error and opens no dialog.
    """
    contexts, seen = [], []

    def opened(path, *, width=1280, scripts=False, **options):
        screen = {"width": width, "height": 800}
        context = browser.new_context(viewport=screen, java_script_enabled=scripts, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("dialog", lambda dialog: seen.append(dialog.message))
        page.on("request", lambda request: seen.append(request.url))
        page.goto(path.as_uri())
        assert seen.pop(0) == path.as_uri()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert seen == []
