"""Whether there is anything for a run to do, and whether its options are right: asked of the sources, without Spark.

Its one rule: doubt is news. A run that finds nothing costs time, one that is left out would cost records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from barnabas.lake.keeping.feeds import Feed, SourceError
from barnabas.lake.keeping.gold import Known, outdated
from barnabas.lake.keeping.manifest import Manifest
from barnabas.lake.reading.options import OptionError
from barnabas.lake.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader

_OBSERVATIONS: Final = "kafka_cluster"
"""Each run makes one of its own."""

_log = logging.getLogger(__name__)


def has_news(manifest: Manifest, feeds: Iterable[Feed], known: Known) -> bool:
    """Return whether a source has records that the lake lacks, or a kept gold table is not current."""
    return bool(outdated(known, manifest)) or any(_has_more(manifest, feed) for feed in feeds)


def check_options(feeds: Iterable[Feed]) -> None:
    """Raise SourceError if a source refuses its options: otherwise only its query would say so, once Spark has started."""
    for feed in feeds:
        try:
            _reader(feed)
        except OptionError as error:
            raise SourceError(str(error)) from None
        except Exception as error:  # the run meets it again, where it is told
            _log.info("%s: %s", feed.name, error)


def _reader(feed: Feed) -> DataSourceStreamReader:
    """Return the reader that a query of the feed would use."""
    from pyspark.sql.types import StructType

    module, name = SOURCES[feed.stream.source].split(":")
    reader: DataSourceStreamReader = getattr(import_module(module), name)(feed.options).streamReader(StructType())
    return reader


def _has_more(manifest: Manifest, feed: Feed) -> bool:
    """Return whether a batch of this feed would read something: its source would plan one, or cannot say."""
    state = manifest.streams.get(feed.name)
    if state is None or feed.stream.source == _OBSERVATIONS:
        return True
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    try:
        start = json.loads(state.offsets)
        return bool(_reader(feed).latestOffset(start, ReadAllAvailable()) != start)
    except Exception as error:  # the run meets it again, where it is told
        _log.info("%s: %s", feed.name, error)
        return True
