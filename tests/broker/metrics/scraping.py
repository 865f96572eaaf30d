"""Metrics as Prometheus would read them: fetched over HTTP and parsed by its own client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 30


class Answer(NamedTuple):
    status: int
    text: str
    content_type: str


def ask(url: str) -> Answer:
    try:
        with urlopen(url, timeout=TIMEOUT_S) as response:
            return Answer(response.status, response.read().decode(), response.headers["Content-Type"])
    except HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(), error.headers["Content-Type"])


class Scrape:
    """The metrics of one moment."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {}
        for family in text_string_to_metric_families(text):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert name not in self.families, f"the rows of {name} do not stand together"
            self.families[name] = family
        self.values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }
        assert len(self.values) == sum(len(family.samples) for family in self.families.values()), "a row is there twice"

    def __call__(self, name: str, /, **labels: object) -> float:
        """Return the value of one row."""
        return self.values[name, frozenset((key, str(value)) for key, value in labels.items())]

    def get(self, name: str, /, **labels: object) -> float | None:
        return self.values.get((name, frozenset((key, str(value)) for key, value in labels.items())))

    def labels(self, name: str) -> Iterator[dict[str, str]]:
        """Yield the labels of every row."""
        return (dict(labels) for found, labels in self.values if found == name)


def scrape(url: str) -> Scrape:
    answer = ask(url)
    assert answer.status == 200
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(answer.text)
