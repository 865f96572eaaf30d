"""The page: escaped, small, whole without rows, and with the numbers of the rows."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from barnabas.lake.declared_column import Column
from barnabas.lake.report.chapters import SECTIONS
from barnabas.lake.report.content import ClusterContent, LogRange, ReportContent, Rows, assemble
from barnabas.lake.report.page import render
from barnabas.lake.report.text import NONE
from tests.lake.report import sample

VOID = {"meta", "input", "br", "img", "link"}


class Document(HTMLParser):
    """The elements of a page, the rows of its tables by id, and its texts; says so if it is not well formed."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.tables: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.text = ""
        self._open: list[str] = []
        self._table = ""
        self._cell: list[str] | None = None
        self._value: str | None = None
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "table":
            self._table = str(found["id"])
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag == "td":
            self._cell, self._value = [], found.get("data-v")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "td" and self._cell is not None:
            self.tables[self._table][-1].append(("".join(self._cell), self._value))
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell is not None:
            self._cell.append(data)


def test_no_name_of_a_log_becomes_markup() -> None:
    content = sample.content()
    clean, page = render(content), render(sample.hostile())
    page.encode()  # no half of a surrogate is left
    document = Document(page)
    assert document.tags.count("script") == 1
    assert "img" not in document.tags
    assert "alert(1)" in document.text
    assert not [name for _, name, _ in document.attributes if name.startswith("on")]
    assert {name for _, name, _ in document.attributes} == {name for _, name, _ in Document(clean).attributes}
    assert "\u202e" not in page
    assert "\x00" not in page


def test_links_go_to_places_of_the_page_and_to_files_beside_it() -> None:
    document = Document(render(sample.content()))
    targets = [value for tag, name, value in document.attributes if (tag, name) == ("a", "href")]
    inside = {target[1:] for target in targets if target.startswith("#")}
    assert inside <= set(document.ids)
    assert {target for target in targets if not target.startswith("#")} == {
        f"report-files/{table}.csv" for table in sample.TABLES
    }
    assert len(document.ids) == len(set(document.ids))


def test_a_file_that_looks_like_a_script_is_a_file() -> None:
    rows = Rows((Column("n", "int", ""),), [{"n": 1}], 1, "javascript:alert(1)")
    document = Document(render(ReportContent((ClusterContent("c", LogRange(), {"other": rows}),))))
    targets = [value for tag, name, value in document.attributes if (tag, name) == ("a", "href")]
    assert "javascript%3Aalert%281%29" in targets


def test_the_page_asks_for_nothing_and_runs_only_its_own_script() -> None:
    page = render(sample.content())
    assert "default-src 'none'" in page
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", page)
    assert "http://" not in page
    assert "https://" not in page
    assert not [name for _, name, _ in Document(page).attributes if name in ("src", "action", "srcset")]


def test_numbers_of_the_tables_are_those_of_the_rows() -> None:
    cluster = sample.content().clusters[0]
    document = Document(render(ReportContent((cluster,))))
    for name, table in cluster.tables.items():
        columns = SECTIONS[name].columns
        shown = [row for row in document.tables[f"c0-{name}-table"] if row]
        assert len(shown) == len(table.rows)
        for cells, row in zip(shown, table.rows, strict=True):
            for (text, raw), column in zip(cells, columns, strict=True):
                value = row[column]
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    assert raw is None
                    assert (text == NONE) == (value is None)
                else:
                    assert raw is not None
                    assert float(raw) == value


def test_how_many_rows_there_are_is_said_and_where_all_of_them_are() -> None:
    cluster = sample.content().clusters[0]
    text = Document(render(ReportContent((cluster,)))).text
    assert cluster.tables["changes"].total == 1800
    assert "200 of 1,800 rows; all of them in report-files/changes.csv" in text
    assert "6 rows; also in report-files/quorum_leaders.csv" in text


def test_captions_say_the_finding_with_its_number() -> None:
    cluster = sample.content().clusters[0]
    text = Document(render(ReportContent((cluster,)))).text
    traffic, lag = cluster.tables["topic_traffic"].rows[0], cluster.answers["lag_by_group"][0]
    assert f"{traffic['topic']} takes 31 % of all bytes" in text
    assert (
        f"{lag['group_id']} is {lag['lag']:,} records behind, the oldest about 3 min old; its trend is growing" in text
    )
    watched = cluster.tables["group_lag_growth"].rows[0]
    assert f"{watched['group_id']} is 8,400,000 records behind, the oldest 2 d 19 h old (growing, " in text
    assert "1,800 changes; most at " in text


def test_every_plot_has_a_title_and_a_description_and_fills_that_differ_by_more_than_colour() -> None:
    document = Document(render(sample.content()))
    labelled = [value.split() for tag, name, value in document.attributes if name == "aria-labelledby"]
    assert len(labelled) == sum(section.chart is not None for section in SECTIONS.values())
    assert all(each in document.ids for pair in labelled for each in pair)
    assert [value for tag, name, value in document.attributes if (tag, name) == ("pattern", "id")] == [
        f"fill{n}" for n in range(1, 6)
    ]


def _luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_letters_and_fills_stand_out_from_what_is_behind_them_in_every_theme() -> None:
    themes = re.findall(r"color-scheme: \w+;\s+([^}]*)\}", render(ReportContent(())))
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", theme))
        for text in ("ink", "muted", "accent", "look", "aware", "good"):
            for behind in ("page", "surface", "soft"):
                assert _contrast(colours[text], colours[behind]) >= 4.5, (text, behind)
        for fill in range(7):
            assert _contrast(colours[f"s{fill}"], colours["surface"]) >= 3, fill
        for fill in (0, 6):
            assert _contrast(colours[f"s{fill}"], colours["inside"]) >= 4.5, fill
    assert themes[1].split() == themes[2].split()


def test_without_rows_the_page_says_what_that_means() -> None:
    document = Document(render(sample.quiet()))
    for section in SECTIONS.values():
        assert section.question in document.text
        assert (SECTIONS[section.source] if section.source else section).empty in document.text
    assert "No partition was ever without a leader." in document.text
    assert "table" not in document.tags
    assert "be aware" not in document.text


def test_a_lake_without_clusters_has_a_page() -> None:
    assert "The lake has no cluster yet." in Document(render(ReportContent(()))).text


def test_a_cluster_without_tables_or_times_has_a_page() -> None:
    text = Document(render(ReportContent((ClusterContent("c", LogRange(), {}),)))).text
    assert "Nothing of its metadata log has been read." in text


def test_nothing_is_said_of_topics_whose_records_were_not_read() -> None:
    cluster = sample.content().clusters[0]
    tables = {**cluster.tables, "topic_traffic": replace(cluster.tables["topic_traffic"], rows=[], total=0)}
    document = Document(render(ReportContent((replace(cluster, tables=tables),))))
    assert not {f"c0-{name}-table" for name in ("topic_use", "hot_partitions", "key_skew")} & set(document.tables)
    assert "No partition gets much more than its share." not in document.text
    assert document.text.count("the lake was not run with --traffic") == 5


def test_a_table_that_the_page_does_not_know_is_shown_at_its_end() -> None:
    columns = (Column("cluster_id", "string", ""), Column("name", "string", "What."), Column("drift", "string", "How."))
    rows = Rows(columns, [{"cluster_id": "c", "name": "orders", "drift": "missing"}], 1, question="What has drifted?")
    document = Document(render(ReportContent((ClusterContent("c", LogRange(), {"other_drift": rows}),))))
    assert "What has drifted?" in document.text
    assert document.tables["c0-other_drift-table"][1:] == [[("orders", None), ("missing", None)]]


@pytest.mark.parametrize("clusters", [1, 5])
def test_ten_thousand_topics_make_a_page_far_under_five_megabytes(clusters: int) -> None:
    one = sample.content(10_000, 50_000).clusters[0]
    content = ReportContent(tuple(replace(one, cluster_id=f"cluster-{n}") for n in range(clusters)))
    page = render(content).encode()
    assert len(page) < 2_000_000
    assert b"100 of 10,000 rows" in page or clusters > 1


def test_names_as_long_as_kafka_lets_them_be_and_longer_values_stay_within_the_size() -> None:
    def long(value: Any) -> Any:
        return (
            "x" * 2000
            if isinstance(value, str)
            else [long(each) for each in value] * 50
            if isinstance(value, list)
            else value
        )

    cluster = sample.content().clusters[0]
    tables = {
        name: replace(table, rows=[{key: long(value) for key, value in row.items()} for row in table.rows] * 2)
        for name, table in cluster.tables.items()
    }
    assert len(render(ReportContent((replace(cluster, tables=tables),))).encode()) < 5_000_000


def test_the_same_content_gives_the_same_page() -> None:
    assert render(sample.content()) == render(sample.content())


def test_answers_for_all_clusters_are_taken_apart() -> None:
    columns = (Column("cluster_id", "string", ""), Column("n", "int", ""))
    rows = [{"cluster_id": name, "n": n} for n, name in enumerate("abab")]
    ranges = [
        {"cluster_id": name, "first_offset": 0, "last_offset": 1, "first_time": None, "last_time": None}
        for name in "ba"
    ]
    totals = [{"cluster_id": "a", "name": "t", "total": 7}]
    content = assemble(ranges, {"t": Rows(columns, rows, 0, "t.csv")}, totals, {"q": rows})
    assert [cluster.cluster_id for cluster in content.clusters] == ["a", "b"]
    first, second = content.clusters
    assert ([row["n"] for row in first.tables["t"].rows], first.tables["t"].total) == ([0, 2], 7)
    assert ([row["n"] for row in second.answers["q"]], second.tables["t"].total) == ([1, 3], 0)
