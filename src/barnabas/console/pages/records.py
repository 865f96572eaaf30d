"""Records of a topic: browse, tail, search, download and produce."""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from barnabas.batches import Headers
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.console.changes import planned, show_plan
from barnabas.console.errors import EXPECTED, RefusedError, problem_of
from barnabas.console.formats import query
from barnabas.console.forms import MAX_INT32, checked, whole_number
from barnabas.console.live import Question
from barnabas.console.visit import Visit
from barnabas.metadata.as_of import parse_as_of
from barnabas.operations.records.browsing import (
    MAX_PAGE_BYTES,
    MAX_PARTITIONS,
    Begin,
    Browsed,
    SearchLimits,
    SearchStep,
    SeenRecord,
    browse,
    offsets_at,
    read_page,
    search,
    transaction_ends,
)
from barnabas.operations.records.filters import Filter, all_of, header_filter, regex_filter, show, where_filter
from barnabas.operations.records.producing import propose_record
from barnabas.operations.topics.changes import partition_count

FORMS_OF_VALUES = ("json", "text", "hex")
MAX_COUNT = 200
MAX_DOWNLOADED = 10_000
MAX_DOWNLOADED_BYTES = 32_000_000
MAX_SEARCHES = MAX_DOWNLOADS = 4
_MAX_SHOWN_BYTES = 20_000
"""Of one key or value, if it is alone on its page."""
_MAX_PAGE_CHARACTERS = 60_000
"""Of all values on a page; as many again of keys and headers."""
_MIN_CHARACTERS = 200
_MAX_HEADERS = 5
"""Of a record that is not alone on its page."""
_SOUGHT = ("key", "value", "header", "where", "partition", "time", "count")
_MAX_TYPED = 2_000
_MAX_INDENTED = 5
"""So few records are shown with indented JSON."""
_searches = _downloads = 0


class _Asked:
    """What the query of a page asks for."""

    def __init__(self, visit: Visit) -> None:
        self.topic = visit.path("topic")
        self.partition = visit.number("partition", 0, most=MAX_INT32) if visit.query("partition") else None
        self.count = visit.number("count", 50, least=1, most=MAX_COUNT)
        self.form = visit.query("form", "json")
        if self.form not in FORMS_OF_VALUES:
            raise RefusedError(400, f"values are shown as {', '.join(FORMS_OF_VALUES)}")
        self.offset = visit.number("offset", 0) if visit.query("offset") else None
        self.time = visit.query("time")
        self.begin = Begin(self.offset, None if self.offset is not None else _time_ms(self.time))

    async def partitions(self, cluster: Cluster) -> list[TopicPartition]:
        count = await partition_count(cluster, self.topic)
        numbers = range(count) if self.partition is None else [self.partition]
        return [TopicPartition(self.topic, number) for number in numbers]

    async def browse(self, cluster: Cluster) -> tuple[Browsed, int]:
        count = await partition_count(cluster, self.topic)
        return await browse(cluster, await self.partitions(cluster), self.begin, self.count), count

    async def browse_for_download(self, cluster: Cluster) -> list[SeenRecord]:
        keys = await self.partitions(cluster)
        most = max(MAX_DOWNLOADED_BYTES // min(len(keys), MAX_PARTITIONS), MAX_PAGE_BYTES)
        return (await browse(cluster, keys, self.begin, self.count, max_bytes=most)).records


def _time_ms(text: str) -> int | None:
    """Parse the time of a field: as browsers write it, or as `--as-of` takes it."""
    if not text:
        return None
    try:
        found = parse_as_of(text)
    except ValueError as error:
        raise RefusedError(400, str(error)) from None
    if found.timestamp_ms is None:
        raise RefusedError(400, f"{text} is not a time")
    return found.timestamp_ms


async def records(visit: Visit) -> Response:
    asked = _Asked(visit)
    name = f"records:{asked.topic}:{asked.partition}:{asked.begin}:{asked.count}"
    # The newest records are a tail: they are asked for again and again. Others do not change.
    answer = await visit.ask(Question(name, asked.browse, 2 if asked.begin == Begin() else 3600))
    found, partitions = (None, 0) if answer.value is None else answer.value
    shown = [] if found is None else found.records
    ends = transaction_ends(shown)
    ordered = shown if asked.begin != Begin() else shown[::-1]
    here = f"{visit.base}/topics/{asked.topic}/records"
    older = newer = None
    if found is not None and asked.partition is not None and (page := found.pages.get(asked.partition)) is not None:
        first = shown[0].offset if shown else page.next_offset
        same = partial(query, partition=str(asked.partition), count=asked.count, form=asked.form)
        if first > page.start:
            older = same(offset=str(max(first - asked.count, page.start)))
        if asked.begin != Begin() and page.next_offset < page.end:
            newer = same(offset=str(page.next_offset))
    chosen = {name: visit.query(name) for name in ("partition", "offset", "time")}
    values = {
        "name": asked.topic,
        "asked": asked,
        "found": found,
        "partitions": partitions,
        "rows": [_row(each, asked.form, ends, len(shown)) for each in ordered],
        "max_count": MAX_COUNT,
        "max_downloaded": MAX_DOWNLOADED,
        "max_downloaded_bytes": MAX_DOWNLOADED_BYTES,
        "limits": SearchLimits(),
        "sought": {name: visit.query(f"find_{name}") for name in _SOUGHT},
        "is_tail": asked.begin == Begin(),
        "forms": FORMS_OF_VALUES,
        "here": here,
        "older": older,
        "newer": newer,
        "download": query(**chosen, count=MAX_DOWNLOADED),
        "produce_command": visit.entry.command("records", "produce", asked.topic),
    }
    return visit.page("records.html", f"Records of {asked.topic}", values, nav="topics")


def _row(record: SeenRecord, form: str, ends: Mapping[tuple[int, int], str], count: int = 1) -> dict[str, Any]:
    """Return a record as a page shows it. The more records there are, the less is shown of each."""
    most = min(max(_MAX_PAGE_CHARACTERS // max(count, 1), _MIN_CHARACTERS), _MAX_SHOWN_BYTES)
    is_indented = count <= _MAX_INDENTED
    decoded = None if form == "hex" else record.decoded
    if decoded is None:
        key, value = _text(record.key, form), _text(record.value, form, is_indented=is_indented)
    else:
        key, value = decoded.key_data, _decoded(decoded.value_data, is_indented=is_indented)
    headers = record.headers if count <= 1 else record.headers[:_MAX_HEADERS]
    shown = [(name, _text(data, "text")) for name, data in headers]
    each = most if count <= 1 else most // _MAX_HEADERS
    size = len(record.key or b"") + len(record.value or b"")
    return {
        "record": record,
        "key": _cut(key, most),
        "value": _cut(value, most),
        "type": None if decoded is None else decoded.type,
        "size": size,
        "is_cut": any(len(text or "") > most for text in (key, value)),
        "is_long": len(record.value or b"") > _MAX_SHOWN_BYTES,
        "headers": [(_cut(name, each), _cut(text, each)) for name, text in shown],
        "more_headers": len(record.headers) - len(headers),
        "transaction": ends.get((record.partition, record.offset)),
    }


def _cut(text: str | None, most: int) -> str | None:
    """Return the beginning of a text.

    >>> _cut("orders", 3), _cut("orders", 6)
    ('ord…', 'orders')
    """
    return text if text is None or len(text) <= most else f"{text[:most]}…"


def _text(data: bytes | None, form: str, *, is_indented: bool = False) -> str | None:
    if data is None:
        return None
    found = show(data[:_MAX_SHOWN_BYTES], form)
    if isinstance(found, dict) and set(found) == {"base64"} and form != "json":
        return data[:_MAX_SHOWN_BYTES].hex(" ")
    if form == "json" and isinstance(found, dict | list):
        return json.dumps(found, indent=2 if is_indented else None, ensure_ascii=False)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _decoded(text: str | None, *, is_indented: bool) -> str | None:
    return text if text is None or not is_indented else json.dumps(json.loads(text), indent=2, ensure_ascii=False)


# --- downloads


async def download(visit: Visit) -> Response:
    """Send records as lines of JSON; keys and values that are no text are Base64."""
    asked = _Asked(visit)
    asked.count = visit.number("count", MAX_DOWNLOADED, least=1, most=MAX_DOWNLOADED)
    global _downloads  # noqa: PLW0603
    if _downloads >= MAX_DOWNLOADS:
        raise RefusedError(503, f"{MAX_DOWNLOADS} downloads are prepared already: wait for one of them")
    _downloads += 1
    try:
        found = await visit.now(asked.browse_for_download)
        data = await asyncio.to_thread(_lines, found)  # other pages go on meanwhile
    finally:
        _downloads -= 1
    return _attachment(data, f"{asked.topic}.jsonl", "application/x-ndjson")


def _lines(records: list[SeenRecord]) -> bytes:
    lines = (json.dumps(_document(each), ensure_ascii=False) + "\n" for each in records)
    return "".join(lines).encode("utf-8", "surrogatepass")


def _document(record: SeenRecord) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_content(record.key, record.value, record.headers),
        "control": record.control,
    }


def _content(key: bytes | None, value: bytes | None, headers: Headers) -> dict[str, Any]:
    """Return what a client has written, as `records produce --format json` takes it."""
    return {
        "key": show(key, "text"),
        "value": show(value, "text"),
        "headers": [{"key": name, "value": show(data, "text")} for name, data in headers],
    }


async def value(visit: Visit) -> Response:
    """Send the bytes of one value."""
    key = TopicPartition(visit.path("topic"), visit.number("partition", 0, most=MAX_INT32))
    offset = visit.number("offset", 0)
    page = await visit.now(lambda cluster: read_page(cluster, key, offset, max_records=1))
    found = next((each for each in page.records if each.offset == offset), None)
    if found is None or found.value is None:
        raise RefusedError(404, "there is no such record, or it has no value")
    return _attachment(found.value, f"{key.topic}-{key.partition}-{offset}.bin", "application/octet-stream")


def _attachment(data: bytes, name: str, media_type: str) -> Response:
    return Response(data, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


# --- search


async def search_stream(visit: Visit) -> Response:
    """Search a topic, and send what is found as it is found. The browser cancels by closing the stream."""
    asked = _Asked(visit)
    with checked():
        wanted = _filter(visit)
    if _searches >= MAX_SEARCHES:
        raise RefusedError(503, f"{MAX_SEARCHES} searches run already: wait for one of them")
    limits = SearchLimits(max_found=asked.count)
    return StreamingResponse(_searching(visit, asked, wanted, limits), media_type="text/event-stream")


def _filter(visit: Visit) -> Filter:
    """Return the filter of a form. Raises ValueError."""
    filters = [regex_filter(field, text) for field in ("key", "value") if (text := visit.query(field))]
    if text := visit.query("header"):
        filters.append(header_filter(text))
    if text := visit.query("where"):
        filters.append(where_filter(text))
    if not filters:
        raise ValueError("say what to search for: a key, a value, a header or a condition")
    return all_of(filters)


async def _steps(cluster: Cluster, asked: _Asked, wanted: Filter, limits: SearchLimits) -> AsyncIterator[SearchStep]:
    keys = await asked.partitions(cluster)
    starts = dict.fromkeys(keys, asked.offset or 0)
    if asked.begin.time_ms is not None:
        starts = await offsets_at(cluster, keys, asked.begin.time_ms)
    async for step in search(cluster, starts, wanted, limits):
        yield step


async def _searching(visit: Visit, asked: _Asked, wanted: Filter, limits: SearchLimits) -> AsyncIterator[str]:
    global _searches  # noqa: PLW0603
    _searches += 1
    try:
        rows = visit.templates.get_template("record_rows.html")
        async for step in visit.link.stream(partial(_steps, asked=asked, wanted=wanted, limits=limits)):
            shown = [_row(each, asked.form, {}, asked.count) for each in step.found]
            html = rows.render(rows=shown, here=f"{visit.base}/topics/{asked.topic}/records") if shown else ""
            document = {
                "html": html,
                "scanned": step.scanned,
                "total": step.total,
                "bytes": step.read_bytes,
                "reason": step.reason,
            }
            yield f"event: step\ndata: {json.dumps(document)}\n\n"
    except EXPECTED as error:
        yield f"event: step\ndata: {json.dumps({'html': '', 'problem': problem_of(error)})}\n\n"
    finally:
        _searches -= 1


# --- produce


async def produce(visit: Visit, form: Mapping[str, str]) -> Response:
    visit.require_changes()
    topic, partition = visit.path("topic"), whole_number(form, "partition")
    key = None if form.get("no_key") else _given(form.get("key", ""), form.get("encoding", "text"))
    given = None if form.get("no_value") else _given(form.get("value", ""), form.get("encoding", "text"))
    headers = tuple(
        (name, text.encode() if sign else None)
        for name, sign, text in (line.partition("=") for line in form.get("headers", "").splitlines() if line.strip())
    )
    proposal = await visit.now(
        partial(
            propose_record,
            topic=topic,
            key=key,
            value=given,
            headers=headers,
            partition=partition,
        )
    )
    plan = planned(
        f"Produce to {topic}",
        proposal,
        command=_command(visit, topic, {**_content(key, given, headers), "partition": partition}),
        back=f"{visit.base}/topics/{topic}/records",
        nav="topics",
        detail=lambda _, result: f"offset {result.offset}",
    )
    return show_plan(visit, plan)


def _command(visit: Visit, topic: str, record: dict[str, Any]) -> str:
    """Return the command that writes the record; it reads a file if the record is too long to be typed."""
    produce = visit.entry.command("records", "produce", topic, "--format", "json")
    line = json.dumps({name: each for name, each in record.items() if each not in (None, []) or name == "value"})
    if len(line) > _MAX_TYPED:
        return f"{produce} < record.json"
    return f"{shlex.join(('printf', '%s', line))} | {produce}"


def _given(text: str, encoding: str) -> bytes:
    """Return the bytes of a field. Browsers send line ends as CR LF."""
    try:
        if encoding == "hex":
            return bytes.fromhex(text)
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise RefusedError(400, f"this is not {encoding}: {error}") from None
    return text.replace("\r\n", "\n").encode("utf-8", "surrogateescape")


PAGES = {
    "/topics/{topic}/records": records,
    "/topics/{topic}/records/download": download,
    "/topics/{topic}/records/value": value,
    "/topics/{topic}/records/search": search_stream,
}
FORMS = {"/topics/{topic}/records": produce}
