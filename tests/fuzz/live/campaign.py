"""One campaign: a node, a seed, and so many requests over several connections; then the node is used, restarted and compared.

What counts as a bug: a node that dies or does not answer, a traceback or an error in its log, an answer that the schema cannot
read, UNKNOWN_SERVER_ERROR, sockets or memory that stay, a turn of the event loop that worked for more than 250 ms, records or
metadata that a restart changes.
"""

from __future__ import annotations

import gc
import logging
import os
import re
import socket
import struct
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from barnabas import wire
from barnabas.broker import loop_watch
from barnabas.broker.node import Node
from barnabas.broker.served import served_versions
from barnabas.metadata.image import MetadataImage
from barnabas.testing import Broker
from barnabas.wire import APIS, ApiKey, ErrorCode
from barnabas.wire.codec import MAX_STRING_LENGTH
from tests.fuzz.live.good_client import produce
from tests.fuzz.live.requests import api_of, frame_of
from tests.fuzz.live.themes import EVERYTHING, SETTLED, THEMES, UNSETTLING, WAITING, listeners_of
from tests.fuzz.live.world import TOPICS, World

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where flushing costs nothing
PATIENCE_S = 300.0  # a machine that is busy with others is not a node that hangs
GLANCE_S = 0.01
MAX_TURN_MS = 250
MAX_PENDING = 6
LINKS = 3  # for each listener
MAX_GROWTH_BYTES = 400 << 20
# Answered with UNKNOWN_SERVER_ERROR in some cases on purpose, as Kafka does; the handlers say which.
UNKNOWN_AS_IN_KAFKA = frozenset(
    {
        *(ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.CREATE_PARTITIONS, ApiKey.CREATE_ACLS),
        *(ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.WRITE_TXN_MARKERS, ApiKey.FETCH),
        *(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.ALLOCATE_PRODUCER_IDS),
        *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.SHARE_FETCH),
    }
)
CONFIG: dict[str, str | int | float | bool] = {
    "auto.create.topics.enable": False,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 2,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass
class Finding:
    """Something that should not have happened, and the request after which it did."""

    what: str
    number: int
    request: str
    detail: str = ""
    times: int = 1


@dataclass
class Report:
    """What a campaign did and found."""

    seed: int
    sent: int = 0
    answered: int = 0
    closed: int = 0
    apis: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # listener, API, version
    kinds: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    stalls: list[str] = field(default_factory=list)
    grown_bytes: int = 0
    sent_steps: list[tuple[str, int, bool, bytes]] = field(default_factory=list, repr=False)

    def found(self, what: str, number: int, request: str, detail: str = "") -> None:
        known = self.findings.get(what)
        if known is None:
            self.findings[what] = Finding(what, number, request, detail)
        else:
            known.times += 1

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.sent:,} requests, {self.answered:,} answered, {self.closed:,} connections closed "
            f"by the node, {len(self.apis)} of API, version and listener; "
            f"{self.grown_bytes >> 20} MB more; {len(self.stalls)} long turns",
            *(f"  STALL {each}" for each in self.stalls[:10]),
        ]
        for each in self.findings.values():
            lines.append(
                f"  FOUND {each.what} ({each.times} times), first at request {each.number}: {each.request[:700]}"
            )
            lines += [f"    {line}" for line in each.detail.splitlines()[-14:]]
        return "\n".join(lines)


class Watch(logging.Handler):
    """The node's log: whatever is wrong in it is a finding."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.INFO)
        self.report = report
        self.number = 0
        self.request = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        late = re.search(r"of which it worked (\d+) ms", text)
        if late is not None:
            if int(late[1]) > MAX_TURN_MS:
                self.report.stalls.append(f"{text} (request {self.number}: {self.request[:100]})")
        elif record.exc_info or record.levelno >= logging.ERROR:
            detail, where = "", text
            if record.exc_info and record.exc_info[1] is not None:
                error = record.exc_info[1]
                detail = "".join(traceback.format_exception(error))
                frames = traceback.extract_tb(error.__traceback__)
                where = (
                    f"{type(error).__name__} at {frames[-1].filename.rpartition('/src/')[2]}:{frames[-1].lineno}"
                    if frames
                    else text
                )
            self.report.found(f"log: {where}", self.number, self.request, f"{text}\n{detail}")


class Link:
    """One connection, made again when the node closed it. `pending` are the requests without an answer, by correlation id."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._received = b""
        self.pending: dict[int, tuple[ApiKey, int, str]] = {}

    def send(self, data: bytes) -> None:
        """Send all, while answers are received: neither side may wait for the other for ever."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, PATIENCE_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(PATIENCE_S)
        self._socket.sendall(data)

    def expect(self, data: bytes, request: str = "") -> None:
        """Expect an answer to these bytes, if they are a whole frame of a served version."""
        frame = data[4:]
        named = api_of(frame)
        is_whole = len(frame) >= 8 and struct.unpack_from(">i", data)[0] == len(frame)
        if is_whole and named is not None and named[1] in served_versions(named[0]):
            self.pending[struct.unpack_from(">i", frame, 4)[0]] = (*named, request)

    def receive(self, within_s: float) -> bytes | None:
        """The next frame; None if there is none in time. Raises ConnectionError if the node closed the connection."""
        deadline = time.monotonic() + within_s
        while True:
            if len(self._received) >= 4:
                (size,) = struct.unpack_from(">i", self._received)
                if len(self._received) >= 4 + size:
                    frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
                    return frame
            left = deadline - time.monotonic()
            if left <= 0 or self._socket is None:
                return None
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(1 << 20)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionResetError
            self._received += data

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._received = None, b""
        self.pending.clear()


class Campaign:
    """The state of a campaign while it runs."""

    def __init__(self, broker: Broker, seed: int, *, unsettling: bool = False) -> None:
        self.draw = Random(f"live {seed}")
        self.world = World(self.draw)
        self.report = Report(seed)
        self.watch = Watch(self.report)
        self.sent: list[tuple[str, int, bool, bytes]] = []  # to be sent again
        self.links = {kind: [Link(address) for _ in range(LINKS)] for kind, address in prepared(broker).items()}
        self.themes = {"unsettling": (*UNSETTLING, *SETTLED)} if unsettling else THEMES

    def run(self, count: int) -> None:
        theme, left = EVERYTHING, 0
        for number in range(count):
            if not left:
                theme = self.themes[self.draw.choice(list(self.themes))]
                left = self.draw.randrange(30, 150)
            left -= 1
            self._step(number, theme)
        for link in self.all_links():
            with suppress(ConnectionError):
                answered(link, self.report, self.watch, self.world, GLANCE_S)
            link.close()

    def all_links(self) -> Iterator[Link]:
        for links in self.links.values():
            yield from links

    def _step(self, number: int, theme: tuple[ApiKey, ...]) -> None:
        draw = self.draw
        key = draw.choice(theme)
        kind = draw.choice(listeners_of(key))
        versions = served_versions(key)
        version = draw.randint(versions.first, versions.last)
        how, frame = frame_of(self.world, key, version, f"fuzz-{number}")
        index = draw.randrange(LINKS)
        link = self.links[kind][index]
        self.watch.number, self.watch.request = number, f"{kind} {key.name} v{version} {how}: {frame.hex()}"
        report = self.report
        report.sent += 1
        report.apis[kind, key.name, version] += 1
        report.kinds[how] += 1
        action = draw.choices(("ask", "pipeline", "cut", "leave", "wrong size"), (85, 9, 2, 3, 1))[0]
        data = struct.pack(">i", len(frame)) + frame
        if action == "cut":
            data = data[: draw.randrange(len(data))]
        elif action == "wrong size":
            data = struct.pack(">i", draw.choice((-1, 0, 3, len(frame) - 1, len(frame) + 1, 2**31 - 1))) + frame
        closes = action in ("cut", "leave", "wrong size")
        self.sent.append((kind, index, closes, data))
        try:
            link.send(data)
            if closes:
                link.close()
                return
            if how != "wrong header":
                link.expect(data, self.watch.request)
            waits = key in WAITING or action == "pipeline" or how == "wrong header"
            answered(link, report, self.watch, self.world, GLANCE_S if waits else PATIENCE_S)
            if len(link.pending) > MAX_PENDING:
                link.close()
        except ConnectionError:
            report.closed += 1
            link.close()


def answered(link: Link, report: Report, watch: Watch, world: World | None, within_s: float) -> None:
    """Receive and judge the answers that are there, and wait for the last one if it has to come."""
    while link.pending:
        last = next(reversed(link.pending.values()))
        frame = link.receive(within_s)
        if frame is None:
            if within_s == PATIENCE_S and not any(key in WAITING for key, _, _ in link.pending.values()):
                report.found(f"no answer to {last[0].name}", watch.number, last[2])
                link.close()
            return
        _judge(link, report, watch, world, frame)


def _judge(link: Link, report: Report, watch: Watch, world: World | None, frame: bytes) -> None:
    report.answered += 1
    (correlation_id,) = struct.unpack_from(">i", frame)
    asked = link.pending.get(correlation_id)
    if asked is None:
        return
    for each in list(link.pending):  # answers come in order; a producer with acks=0 gets none
        del link.pending[each]
        if each == correlation_id:
            break
    key, version, request = asked
    api = APIS[key]
    try:
        response = wire.decode(api.response, version, frame[4 + api.response_header_version(version) :])
    except wire.MalformedError as error:
        report.found(f"{key.name} v{version} answers what cannot be read: {error}", watch.number, request)
        return
    has_long_names = len(request) > 2 * MAX_STRING_LENGTH  # an error message with one may be too long to be written
    if key not in UNKNOWN_AS_IN_KAFKA and not has_long_names and has_unknown_error(response):
        report.found(f"{key.name} answers UNKNOWN_SERVER_ERROR", watch.number, request)
    if world is not None:
        world.learn(response)


def has_unknown_error(message: wire.Struct) -> bool:
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code") and value == ErrorCode.UNKNOWN_SERVER_ERROR:
            return True
        inner = value[:50] if isinstance(value, list) else [value]
        if any(isinstance(each, wire.Struct) and has_unknown_error(each) for each in inner):
            return True
    return False


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    log = logging.getLogger("barnabas")
    level, every_ms = log.level, loop_watch.LOG_EVERY_MS
    log.addHandler(watch)
    log.setLevel(logging.INFO)
    log.propagate = False
    loop_watch.LOG_EVERY_MS = 0
    try:
        yield
    finally:
        loop_watch.LOG_EVERY_MS = every_ms
        log.propagate = True
        log.setLevel(level)
        log.removeHandler(watch)


def prepared(broker: Broker) -> dict[str, tuple[str, int]]:
    """Create the topics that requests name, and return the addresses of the listeners."""
    for name in TOPICS:
        broker.create_topic(name, 3, config={"cleanup.policy": "compact"} if name == "compacted" else {})
    host, _, port = broker.listeners["CONTROLLER"].rpartition(":")
    return {"broker": (broker.host, broker.port), "controller": (host, int(port))}


def run(seed: int, count: int, data_dir: Path, *, unsettling: bool = False) -> Report:
    """Run a campaign against a new node in this directory."""
    with Broker(config=CONFIG, data_dir=data_dir) as broker:
        campaign = Campaign(broker, seed, unsettling=unsettling)
        report = campaign.report
        sockets, memory = open_sockets(), resident_bytes()
        with watched(campaign.watch):
            campaign.run(count)
            campaign.watch.request = "after the campaign"
            _after(broker, report, count, sockets, memory, unsettling=unsettling)
        report.sent_steps = campaign.sent
    return report


def _after(broker: Broker, report: Report, count: int, sockets: int, memory: int, *, unsettling: bool) -> None:
    """Use the node, restart it, and use it again."""

    def check(what: str, work: Any) -> Any:
        try:
            return work()
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            report.found(f"{what}: {type(error).__name__}", count, "", text)
            return None

    if unsettling:
        check("a restart", broker.restart)
    check("use", lambda: use(broker, "healthy-1"))
    left = _settled(lambda: open_sockets() - sockets, lambda more: more <= 2)
    if left > 2:
        report.found(f"{left} sockets stay open", count, "")
    gc.collect()
    report.grown_bytes = resident_bytes() - memory
    if report.grown_bytes > MAX_GROWTH_BYTES:
        report.found("memory grows", count, f"{report.grown_bytes >> 20} MB")
    before = check("the image", lambda: facts(broker))
    check("a restart", broker.restart)
    check("use after a restart", lambda: use(broker, "healthy-2"))
    after = check("the image after a restart", lambda: facts(broker))
    if before and after:
        after["topics"] = {name: topic for name, topic in after["topics"].items() if name != "healthy-2"}
        for name, value in before.items():
            if after[name] != value:
                report.found(f"a restart changes {name}", count, "", f"{value}\n{after[name]}"[:3000])
    check("records", lambda: _read_records(broker))


def _settled(measure: Any, is_enough: Any) -> int:
    for _ in range(100):
        found: int = measure()
        if is_enough(found):
            break
        time.sleep(0.05)
    return found


def use(broker: Broker, topic: str) -> None:
    """As a good client does: create a topic, produce and read."""
    broker.create_topic(topic, 1)
    produce(broker.host, broker.port, topic)
    assert [record.value for record in broker.records(topic, 1)] == [b"good"]


def _read_records(broker: Broker) -> None:
    for name in ("healthy-1", "healthy-2"):
        assert [record.value for record in broker.records(name, 1)] == [b"good"], name


def _node(broker: Broker) -> Node:
    node = broker._broker._node
    assert node is not None and not node.failed.done()
    return node


def facts(broker: Broker) -> dict[str, Any]:
    """The metadata that a restart must not change: not who leads, nor when which broker registered."""
    image: MetadataImage = _node(broker).image
    topics = {
        topic.name: (topic_id, [(p.replicas, p.adding_replicas, p.removing_replicas) for p in topic.partitions])
        for topic_id, topic in image.topics.by_id.items()
    }
    return {
        "topics": topics,
        "configs": image.configs,
        "quotas": image.quotas,
        "acls": image.acls.by_id,
        "scram": image.scram,
        "tokens": image.tokens,
        "features": image.features,
    }


def open_sockets() -> int:
    count = 0
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            count += str(path.readlink()).startswith("socket:")
    return count


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
