"""Reports in a browser: on a screen, a phone and paper, with mouse and keyboard."""

import base64
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
from axe_playwright_python.sync_playwright import Axe

from examples import stored
from scaling.core.errors import printable

OUTPUT = Path(__file__).parent / "output"
UNFOLD = "document.querySelectorAll('details').forEach(one => one.open = true)"
FOLD = """document.querySelectorAll('details').forEach(one => one.open = false)
location.hash = ''"""
TEXTS = """() => {
  const words = {first: 0, visible: 0, tables: 0}, texts = new Map()
  const range = document.createRange()
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode, own = node.parentElement
    if (own.closest('svg, pre') || !node.data.trim()) continue
    range.selectNodeContents(node)
    const count = node.data.trim().split(/\\s+/).length, visible = own.checkVisibility()
    words[own.closest('table') ? 'tables' : 'visible'] += visible && count
    words.first += visible && range.getBoundingClientRect().top < innerHeight && count
    const block = own.closest(
      'a,dd,details,div,dt,figcaption,h1,h2,h3,label,nav,p,small,span,td,th')
    texts.set(block, `${texts.get(block) || ''} ${node.data}`)
  }
  return [words, [...texts].map(([block, text]) => [text, Boolean(block.closest('td, dd'))])]
}"""
LOST = """ids => ids.filter(id => {
  document.querySelectorAll('details').forEach(one => one.open = false)
  location.hash = id
  const found = document.getElementById(id), place = found.getBoundingClientRect()
  const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 1
  return !found.checkVisibility() || place.top < -1 || place.top > (end ? innerHeight : 200)
    || found.tagName == 'DETAILS'
})"""
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one)
  const outlined = style.outlineStyle != 'none' && style.outlineWidth != '0px'
  return [one.tagName, [...document.all].indexOf(one), outlined]
}"""
TOO_WIDE = """() => [...document.querySelectorAll('aside.cell, html')].filter(one => {
  location.hash = one.id
  return one.scrollWidth > one.clientWidth
}).map(one => one.id)"""
SCROLLED = """[...document.querySelectorAll('.scroll')].filter(
  one => one.scrollWidth > one.clientWidth + 1).map(one => one.getAttribute('aria-label'))"""
IDS = "[...document.querySelectorAll('[id]:not(svg *)')].map(one => one.id)"
LINKS = "[...document.querySelectorAll('a:not([download])')].map(one => one.getAttribute('href'))"
ONE_OF_EACH = """document.querySelectorAll(`.table tr:nth-child(n+4), .bar:nth-child(n+4),
  aside.cell:nth-of-type(n+3), svg *`).forEach(one => one.remove())"""
HOSTILE = "<script>alert(1)</script>\"'&lt;</style><img src=x onerror=alert(1)>\u202eשלום"
HOSTILE += 90 * "x"


def content(link) -> bytes:
    """Return the bytes in a download link."""
    found = base64.b64decode(link.get_attribute("href").partition(",")[2])
    return gzip.decompress(found) if link.get_attribute("download").endswith(".gz") else found


def test_words_and_sentences(report, page):
    words, texts = page.evaluate(TEXTS)
    visible = {"cpu": 350, "command": 500}.get(report.parent.name, 1900)
    assert words["first"] <= 300 and words["visible"] <= visible, words
    assert words["tables"] <= 500, words
    sentences = [
        (" ".join(sentence.split()), result)
        for text, result in texts
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z“])", text)
    ]
    assert [one for one, _ in sentences if len(one.split()) > 40] == []
    # Two configurations may have one result, two cells one message.
    whole = Counter(one for one, result in sentences if not result and len(one.split()) > 5)
    assert [one for one, times in whole.items() if times > 1 and one.endswith(".")] == []


def test_links_lead_somewhere_and_permalinks_open_folds(page):
    ids = page.evaluate(IDS)
    assert set(page.evaluate(LINKS)) <= {f"#{one}" for one in ids}
    assert page.evaluate(LOST, ids) == []
    page.evaluate(FOLD)


def test_downloads_are_the_files_on_disk(report, page):
    cells = page.locator("aside.cell a[download^=run]").all()
    tables = report.parent.glob("tables/**/*.csv" if cells else "tables/*.csv")
    paths = [path for path in tables if path.read_bytes().count(b"\n") > 1]
    links = page.locator("#data a[download]").all()
    found = {link.get_attribute("download").removesuffix(".gz"): content(link) for link in links}
    study = report.parent.name
    assert study == "published" or found == {path.name: path.read_bytes() for path in paths}
    # Of a seed's repeats, the first.
    seeds = [one.glob("**/run.json") for one in stored.folder_of(study).glob("**/seed~*")]
    records = [
        min(paths, key=lambda path: (len(path.parts), path)) for paths in map(list, seeds) if paths
    ]
    assert {content(link) for link in cells} == {path.read_bytes() for path in records}
    page.evaluate(UNFOLD)
    for link in page.locator("a[download]:visible").all()[:2]:
        with page.expect_download() as clicked:
            link.click()
        assert clicked.value.suggested_filename == link.get_attribute("download")
        saved = Path(clicked.value.path()).read_bytes()
        assert base64.b64encode(saved).decode() == link.get_attribute("href").partition(",")[2]
    page.evaluate(FOLD)


def test_keyboard(page):
    stops = []
    page.locator("a").first.focus()
    while len(stops) < 200:
        page.keyboard.press("Tab")
        tag, place, outlined = page.evaluate(FOCUSED)
        if tag == "BODY":
            break
        assert outlined, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        stops.append((place, tag))
    assert stops == sorted(stops) and "SUMMARY" in dict(stops).values()
    for fold in page.locator("summary:visible").all():
        fold.focus()
        for key in ("Enter", "Space"):
            was_open = fold.evaluate("one => one.parentElement.open")
            page.keyboard.press(key)
            assert fold.evaluate("one => one.parentElement.open") is not was_open


def test_nothing_is_wider_than_the_screen(page):
    for width in (390, 800, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        for change in (FOLD, UNFOLD):
            page.evaluate(change)
            assert page.evaluate(TOO_WIDE) == [], width
            assert page.evaluate(SCROLLED) == [] or width == 800
    page.evaluate(FOLD)


def test_axe_finds_nothing(report, look):
    every, colours = {"resultTypes": ["violations"], "preload": False}, ["color-contrast"]
    with look(report, scripts=True) as page:
        # Rows of a table and pages of cells are made alike; axe would take minutes for all.
        page.evaluate(ONE_OF_EACH)
        page.evaluate("location.hash = document.querySelector('aside')?.id || ''")
        found = [Axe().run(page, options=every)]
        page.evaluate(FOLD)
        page.evaluate(UNFOLD)
        found.append(Axe().run(page, options=every))
        page.emulate_media(color_scheme="dark")
        found.append(Axe().run(page, options=every | {"runOnly": colours}))
        assert [one.generate_report() for one in found if one.violations_count] == []


def test_pictures_are_kept_and_pages_are_few(report, look):
    OUTPUT.mkdir(exist_ok=True)
    with look(report) as page:
        for name, width, options in (
            ("light", 1280, {}),
            ("dark", 1280, {"color_scheme": "dark"}),
            ("phone", 360, {"color_scheme": "light"}),
            ("print", 718, {"media": "print"}),
        ):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(**options)
            page.screenshot(path=OUTPUT / f"{report.parent.name}-{name}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 718
        assert len(re.findall(rb"/Type /Page\b", page.pdf(format="A4"))) <= 14


def test_hostile_names_are_shown_and_do_not_run(look, tmp_path):
    study, name = "h200x2-models", HOSTILE.replace("/", "")
    stored.lay_out(tmp_path, study)
    (tmp_path / "tables" / study).rename(tmp_path / "tables" / name)
    path = tmp_path / "tables" / name / "provenance.csv"
    runs = pd.read_csv(path)
    runs.assign(device_names=HOSTILE, model=HOSTILE, hosts=HOSTILE).to_csv(path, index=False)
    path = tmp_path / "tables/claims.json"
    claims = json.loads(path.read_text())
    for claim in claims["claims"]:
        claim |= dict.fromkeys(("hypothesis", "sentence", "configuration"), HOSTILE)
    path.write_text(json.dumps(claims))
    stored.render(tmp_path, study, study=name)
    page = look(tmp_path / "report.html", scripts=True, width=360)
    page.evaluate(UNFOLD)
    assert page.evaluate("document.querySelectorAll('script, img').length") == 0
    text, shown = page.locator("body").inner_text(), printable(HOSTILE)
    asked = f"How fast does {shown} on synthetic at 224 × 224 train on 1 to 2 {shown} GPUs?"
    assert page.locator("h1").inner_text() == asked
    assert text.count(shown) > 2 and printable(name) in text
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
