"""The page in a real browser, wide and narrow, light and dark: no complaint of the browser, and nothing wider than the page.

Without Chromium on the machine they are skipped. With BARNABAS_SCREENSHOTS set to a directory, pictures are left there, to be
looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lake.report.content import ReportContent
from barnabas.lake.report.page import render
from tests.lake.report import sample
from tests.lake.report.browser import Browser, find

pytestmark = pytest.mark.browser

WIDTHS = (375, 1600)
SCHEMES = ("light", "dark")
LUMINANCE = """(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number);
  return (r + g + b) / 765;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find()
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with Browser(program, tmp_path_factory.mktemp("profile")) as started:
        yield started


def _contents() -> dict[str, ReportContent]:
    rows = sample.all_rows()
    return {
        "troubled": sample.content(),
        "quiet": sample.quiet(),
        "two": ReportContent((sample.cluster(rows), sample.cluster(rows, cluster_id="<script>alert(1)</script>" * 8))),
        "hostile": sample.hostile(),
        "none": ReportContent(()),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, content in _contents().items():
        (folder / f"{name}.html").write_text(render(content), encoding="utf-8")
    return {page.stem: page for page in folder.iterdir()}


@pytest.mark.parametrize("name", ["troubled", "quiet", "two", "hostile", "none"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_fits_and_the_browser_has_no_complaint(
    browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    browser.open(pages[name], width=width, scheme=scheme)
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate("document.body.scrollWidth") <= width
    assert (browser.evaluate(LUMINANCE) > 0.5) == (scheme == "light")
    if folder := os.environ.get("BARNABAS_SCREENSHOTS"):
        browser.picture(Path(folder) / f"{name}-{width}-{scheme}.png")
    assert browser.complaints == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_of_a_plot_is_cut_off_or_lies_on_another(browser: Browser, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["troubled"], width=width)
    found = browser.evaluate("""(() => {
      const bad = [];
      for (const svg of document.querySelectorAll(".plot > svg")) {
        const frame = svg.getBoundingClientRect();
        const texts = [...svg.querySelectorAll("text")].filter((text) => getComputedStyle(text).display !== "none");
        const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
        for (const [n, [text, box]] of boxes.entries()) {
          if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) bad.push(text);
          for (const [other, its] of boxes.slice(n + 1)) {
            const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
            const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
            if (across > 1 && down > 3) bad.push(text + " / " + other);
          }
        }
      }
      return bad;
    })()""")
    assert found == []


@pytest.mark.parametrize("width", [390, 1440])
def test_no_column_of_a_table_is_cut_off(browser: Browser, pages: dict[str, Path], width: int) -> None:
    """Values before and after a change are the ones that matter most."""
    browser.open(pages["troubled"], width=width)
    assert browser.evaluate("document.querySelectorAll('#c0-config_history-table td').length") > 100
    found = browser.evaluate("""[...document.querySelectorAll(".scroll")].flatMap((box) => {
      const right = box.getBoundingClientRect().right;
      const cells = [...box.querySelectorAll("th, td")].filter((cell) => cell.getBoundingClientRect().right > right + 1);
      return cells.map((cell) => box.querySelector("table").id + ": " + cell.textContent);
    })""")
    assert found == []


def test_the_theme_can_be_chosen_and_is_kept(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["quiet"], width=1600, scheme="light")
    assert browser.evaluate("document.getElementById('theme').hidden") is False
    seen = []
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        seen.append(
            (browser.evaluate("document.getElementById('theme').textContent"), browser.evaluate(LUMINANCE) > 0.5)
        )
    assert seen == [("Theme: light", True), ("Theme: dark", False), ("Theme: system", True)]
    browser.evaluate("for (let n = 0; n < 2; n++) document.getElementById('theme').click()")
    browser.open(pages["quiet"], width=1600, scheme="light")
    assert browser.evaluate(LUMINANCE) < 0.5
    browser.evaluate("document.getElementById('theme').click()")


def test_a_table_can_be_filtered_and_sorted(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["troubled"], width=1600)
    rows = "[...document.querySelector('#c0-topic_traffic-table').tBodies[0].rows].filter((row) => !row.hidden)"
    first = f"{rows}.map((row) => row.cells[0].textContent)[0]"
    assert browser.evaluate(first) == "orders"
    head = "document.querySelector('#c0-topic_traffic-table').tHead.rows[0].cells[1]"
    browser.evaluate(f"{head}.querySelector('button').click()")
    assert browser.evaluate(f"{head}.getAttribute('aria-sort')") == "descending"
    assert browser.evaluate(first) == "orders"
    browser.evaluate(f"{head}.querySelector('button').click()")
    assert browser.evaluate(first) == "tenant-41.stream-00041"
    browser.evaluate("""(() => {
      const input = document.querySelector("#c0-topic_traffic input");
      input.value = "PAY";
      input.dispatchEvent(new Event("input"));
    })()""")
    assert browser.evaluate(f"{rows}.map((row) => row.cells[0].textContent)") == ["payments"]
    assert browser.complaints == []
