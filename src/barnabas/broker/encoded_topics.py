"""Cache of encoded topics for the responses to Metadata and DescribeTopicPartitions.

The description of a partition depends on the partition, on which brokers are alive, and on the listener. All three are
values that are replaced when they change, so comparing identities shows if cached bytes are still valid. Partitions
with the same leader, replicas, in-sync replicas and directories share one encoding.

The one rule: the bytes are those that the codec would write. Authorization is left to the caller.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.metadata.brokers import Broker, Brokers
from barnabas.metadata.topics import LOST_DIR, MIGRATING_DIR, NO_LEADER, UNASSIGNED_DIR, Partition, Topic, Topics
from barnabas.steps import ROWS_PER_STEP, Slices
from barnabas.wire import ZERO_UUID, ErrorCode, Uuid
from barnabas.wire.primitives import encode_unsigned_varint

NO_OPERATIONS: Final = -(2**31)
"""Value of authorized operations if the request did not ask for them."""

_MAX_VIEWS: Final = 8
_MAX_TOPICS: Final = 250_000
_MAX_TOLD: Final = 100_000
_LAST_FORM: Final = 10  # later versions of Metadata encode topics in the same way

_BOOLEANS = (b"\0", b"\1")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_HEAD = struct.Struct(">hii")
_HEAD_WITH_EPOCH = struct.Struct(">hiii")


class Form(NamedTuple):
    """The encoding of a topic: a version of Metadata, or the only one of DescribeTopicPartitions."""

    version: int
    elr: bool = False

    @property
    def flexible(self) -> bool:
        return self.version >= 9


DESCRIBE_TOPIC_PARTITIONS: Final = Form(_LAST_FORM, elr=True)


def metadata_form(version: int) -> Form:
    return Form(min(version, _LAST_FORM))


class EncodedTopics:
    """A node's views, one per version and listener. The least recently used is evicted first."""

    def __init__(self) -> None:
        self._views: dict[tuple[Form, str], TopicsView] = {}

    def view(self, form: Form, listener: str, brokers: Brokers) -> TopicsView:
        key = form, listener
        view = self._views.pop(key, None)
        if view is None or view.brokers is not brokers:
            view = TopicsView(form, listener, brokers)
        self._views[key] = view
        if len(self._views) > _MAX_VIEWS:
            del self._views[next(iter(self._views))]
        return view


_Told = tuple[int, int, bytes]  # error, leader, and the bytes after the leader epoch


class TopicsView:
    """Topics as seen by clients of one listener, valid until a broker changes."""

    def __init__(self, form: Form, listener: str, brokers: Brokers) -> None:
        self.form = form
        self.listener = listener
        self.brokers = brokers
        self._flexible = form.flexible
        self._told: dict[tuple[object, ...], _Told] = {}
        # Two maps, because the garbage collector would have to traverse a tuple for each topic.
        self._topics: dict[str, Topic] = {}
        self._encoded: dict[str, bytes] = {}
        self._all: tuple[Topics, int, bytes] | None = None

    def all(self, topics: Topics, operations: int = NO_OPERATIONS) -> Slices[bytes]:
        """Return all topics sorted by name, after the array's length."""
        known = self._all
        if known is not None and known[0] is topics and known[1] == operations:
            return known[2]
        ids, by_id, made_of, encoded = topics.ids, topics.by_id, self._topics, self._encoded
        pieces = []
        for number, name in enumerate(topics.names):
            topic = by_id[ids[name]]
            if made_of.get(name) is topic:
                pieces.append(encoded[name])
                if number % ROWS_PER_STEP == 0:
                    yield
            else:
                pieces.append(self.topic(topic))
                yield
        ending = self.ending(operations)
        pieces.append(b"")
        body = self.length(len(topics.names)) + ending.join(pieces)
        self._all = topics, operations, body
        return body

    def topic(self, topic: Topic) -> bytes:
        """Return a topic up to its authorized operations; the caller appends `ending`."""
        name = topic.name
        if self._topics.get(name) is topic:
            return self._encoded[name]
        if len(self._topics) >= _MAX_TOPICS:
            self._topics.clear()
            self._encoded.clear()
        encoded = self._encoded[name] = self.page(topic, 0, len(topic.partitions))
        self._topics[name] = topic
        return encoded

    def page(self, topic: Topic, first: int, end: int) -> bytes:
        """Return a topic with the partitions from `first` to before `end`, as `topic` does, but without caching."""
        name, topic_id, partitions = topic
        opening = self._opening(0, name, topic_id, name in INTERNAL_TOPICS)
        pieces = [opening, self.length(end - first if end > first else 0)]
        told, with_epoch, with_elr = self._told, self.form.version >= 7, self.form.elr
        before: Partition | None = None
        for index in range(first, end):
            partition = partitions[index]
            if partition is not before:  # consecutive partitions are often the same object
                before = partition
                replicas, directories, isr, _, _, leader, _, leader_epoch, _, elr, last_known_elr = partition
                if with_elr:
                    key: tuple[object, ...] = leader, replicas, isr, directories, elr, last_known_elr
                else:
                    key = leader, replicas, isr, directories
                error, shown_leader, rest = told.get(key) or self._tell(key, partition)
            if with_epoch:
                pieces.append(_HEAD_WITH_EPOCH.pack(error, index, shown_leader, leader_epoch))
            else:
                pieces.append(_HEAD.pack(error, index, shown_leader))
            pieces.append(rest)
        return b"".join(pieces)

    def failed(self, code: ErrorCode, name: str | None, topic_id: Uuid = ZERO_UUID, *, internal: bool = False) -> bytes:
        """Return a topic that has an error and no partitions; the caller appends `ending`."""
        return self._opening(code, name, topic_id, internal) + self.length(0)

    def ending(self, operations: int = NO_OPERATIONS) -> bytes:
        ending = _INT32.pack(operations) if self.form.version >= 8 else b""
        return ending + b"\0" if self._flexible else ending

    def length(self, count: int) -> bytes:
        return encode_unsigned_varint(count + 1) if self._flexible else _INT32.pack(count)

    def _opening(self, code: int, name: str | None, topic_id: Uuid, internal: bool) -> bytes:
        version = self.form.version
        text = b"" if name is None else name.encode()
        if version >= 10:
            size = encode_unsigned_varint(0 if name is None else len(text) + 1)
            return b"".join((_INT16.pack(code), size, text, topic_id, _BOOLEANS[internal]))
        size = encode_unsigned_varint(len(text) + 1) if self._flexible else _INT16.pack(len(text))
        return b"".join((_INT16.pack(code), size, text, _BOOLEANS[internal] if version else b""))

    def _tell(self, key: tuple[object, ...], partition: Partition) -> _Told:
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()
        replicas, isr = partition.replicas, partition.isr
        if self.form.version == 0:  # it leaves out unreachable brokers and sets an error
            replicas, isr = self._reachable(replicas), self._reachable(isr)
        leader = self.brokers.get(partition.leader)
        error = ErrorCode.NONE
        if leader is None:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        elif self.listener not in leader.listeners:
            error = ErrorCode.LISTENER_NOT_FOUND if self.form.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        leader_id = partition.leader if error is ErrorCode.NONE else NO_LEADER
        if error is ErrorCode.NONE and (len(replicas), len(isr)) != (len(partition.replicas), len(partition.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
        arrays = [replicas, isr]
        if self.form.elr:
            arrays += [partition.elr, partition.last_known_elr]
            error = ErrorCode.NONE
        if self.form.version >= 5:
            arrays.append(self._offline(partition))
        rest = b"".join(self.length(len(array)) + struct.pack(f">{len(array)}i", *array) for array in arrays)
        told = self._told[key] = error.value, leader_id, rest + b"\0" if self._flexible else rest
        return told

    def _reachable(self, broker_ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(broker_id for broker_id in broker_ids if self._is_reachable(self.brokers.get(broker_id)))

    def _is_reachable(self, broker: Broker | None) -> bool:
        return broker is not None and not broker.fenced and self.listener in broker.listeners

    def _offline(self, partition: Partition) -> tuple[int, ...]:
        places = zip(partition.replicas, partition.directories, strict=True)
        return tuple(broker_id for broker_id, directory in places if not self._is_online(broker_id, directory))

    def _is_online(self, broker_id: int, directory: Uuid) -> bool:
        broker = self.brokers.get(broker_id)
        if broker is None or not self._is_reachable(broker) or directory == LOST_DIR:
            return False
        # A broker that did not register its directories is assumed to have this one.
        return directory in (UNASSIGNED_DIR, MIGRATING_DIR) or not broker.log_dirs or directory in broker.log_dirs
