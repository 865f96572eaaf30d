"""The fold of the metadata log: facts about a cluster. Pure: no Spark, no files.

Its one rule: records have the effects of replay, because replay applies them: to a draft of the image. Then the values that a
record may have touched are compared; if one differs, a fact ended or started. The records of a transaction count together, at
its end, or never. A snapshot is compared with the whole state. Writing the same value again is not a new fact.

A fold may hold one shard: the topics of some ids, the settings of some names, and so on. `ROUTES` lists the records that it
needs; others do no harm.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa

from barnabas import wire
from barnabas.config.resource_type import ConfigResourceType
from barnabas.lake.facts import metadata_kinds as kinds
from barnabas.lake.facts.metadata_kinds import LeaderEpoch, ProducerIdBlock, Voter, uuid_text
from barnabas.lake.facts.metadata_state import MetadataState
from barnabas.lake.facts.schema import Fact, FactWriter, key_text
from barnabas.lake.facts.sharding import shard_of
from barnabas.metadata.configs import ConfigResource
from barnabas.metadata.errors import ReplayError
from barnabas.metadata.quotas import quota_entity
from barnabas.metadata.replay import REPLAY, apply
from barnabas.metadata.scram import ScramUser
from barnabas.metadata.topics import TopicDraft
from barnabas.metadata.versions import KRAFT_VERSION
from barnabas.storage.log_dirs import CLUSTER_METADATA
from barnabas.wire import codec
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.message import Message
from barnabas.wire.primitives import Uuid
from barnabas.wire.records import control
from barnabas.wire.records import metadata as records

_log = logging.getLogger(__name__)

LOG: Final = str(CLUSTER_METADATA)
PENDING: Final = "_pending"
"""Internal kind: a record of an open transaction; `state` has its bytes."""
POSITION: Final = "_position"
"""Internal kind: the progress of a shard."""

BY_TOPIC_ID, BY_TOPIC_ID_AND_NAME, BY_RESOURCE_NAME, TO_ALL = "topic_id", "topic_id_and_name", "resource_name", "all"
ROUTES: Final[dict[str, str]] = {
    # The settings of a topic, which are keyed by its name, end with it: their shard has to know its id.
    "TopicRecord": BY_TOPIC_ID_AND_NAME,
    "RemoveTopicRecord": TO_ALL,
    "PartitionRecord": BY_TOPIC_ID,
    "PartitionChangeRecord": BY_TOPIC_ID,
    "ClearElrRecord": TO_ALL,
    "ConfigRecord": BY_RESOURCE_NAME,
    **dict.fromkeys(("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"), TO_ALL),
    **dict.fromkeys(("SnapshotHeaderRecord", "SnapshotFooterRecord"), TO_ALL),
}
"""The routing of each type of record: by a value in it, or to all shards. Others are routed by the name of their type, see
`SAME_SHARD`."""
SAME_SHARD: Final[dict[str, str]] = {
    "RegisterBrokerRecord": "brokers",
    "UnregisterBrokerRecord": "brokers",
    "FenceBrokerRecord": "brokers",
    "UnfenceBrokerRecord": "brokers",
    "BrokerRegistrationChangeRecord": "brokers",
    "RegisterControllerRecord": "controllers",
    "FeatureLevelRecord": "features",
    "KRaftVersionRecord": "features",
    "ClientQuotaRecord": "quotas",
    "UserScramCredentialRecord": "users",
    "RemoveUserScramCredentialRecord": "users",
    "DelegationTokenRecord": "tokens",
    "RemoveDelegationTokenRecord": "tokens",
    "AccessControlEntryRecord": "acls",
    "RemoveAccessControlEntryRecord": "acls",
    "ProducerIdsRecord": "producer_ids",
    "VotersRecord": "voters",
    "LeaderChangeMessage": "leader_epochs",
}
"""The kind of fact that a record is about; all facts of the kind are in one shard."""
WITHOUT_EFFECT: Final = ("NoOpRecord", "ZkMigrationStateRecord")


def destinations(record: Message, shards: int) -> Sequence[int]:
    """Return the shards that need a record."""
    name = type(record).__name__
    route = ROUTES.get(name)
    if route == TO_ALL:
        return range(shards)
    if route == BY_TOPIC_ID:
        return (shard_of(str(record.topic_id), shards),)  # type: ignore[attr-defined]
    if route == BY_RESOURCE_NAME:
        return (shard_of(record.resource_name, shards),)  # type: ignore[attr-defined]
    if isinstance(record, records.TopicRecord):
        return topic_shards(str(record.topic_id), record.name, shards)
    return (shard_of(SAME_SHARD.get(name, name), shards),)


def topic_shards(topic_id: str, name: str, shards: int) -> Sequence[int]:
    """Return the shard of a topic's partitions, then the one of its settings."""
    return tuple(dict.fromkeys((shard_of(topic_id, shards), shard_of(name, shards))))


def fact_destinations(kind: str, facts: pa.RecordBatch, shards: int) -> Sequence[Sequence[int]]:
    """Return the shards that need each open fact."""
    count = facts.num_rows
    if kind == POSITION:
        return [range(shards)] * count
    if kind == PENDING:
        return [destinations(decode(raw), shards) for raw in facts.column("state").to_pylist()]
    if kind == "topics":
        topics = facts.column(kind)
        pairs = zip(topics.field("topic_id").to_pylist(), topics.field("name").to_pylist(), strict=True)
        return [topic_shards(topic_id, name, shards) for topic_id, name in pairs]
    name = {"partitions": "topic_id", "configs": "resource_name"}.get(kind)
    if name is None:
        return [(shard_of(kind, shards),)] * count
    return [(shard_of(text, shards),) for text in facts.column(kind).field(name).to_pylist()]


_READERS: dict[bytes, Callable[[bytes, int], tuple[Message, int]]] = {}
_CONTROL: Final[dict[str, type[Message]]] = {
    name: getattr(control, name) for name in control.__all__ if name not in ("ControlRecordTypeSchema", "EndTxnMarker")
}


def decode(raw: bytes, record_type: str = "") -> Message:
    """Decode a record of the log; for one of a control batch, `record_type` is required. Frame, type and version are nearly
    always three bytes, which determine the reader for the rest."""
    if record_type in _CONTROL:
        return wire.decode_record(raw, _CONTROL[record_type]).record  # type: ignore[no-any-return]
    read = _READERS.get(raw[:3])
    if read is not None:
        try:
            record, end = read(raw, 3)
            if end == len(raw):
                return record
        except Exception:
            pass  # the general reader reports what is wrong
    found, version = wire.decode_record(raw)
    record = cast(Message, found)
    if max(raw[:3]) < 0x80:
        _READERS[raw[:3]] = codec.reader(type(record), version)
    return record


class FactPosition(NamedTuple):
    """The record at which a fact started or ended."""

    offset: int
    time_us: int | None
    epoch: int | None


Open = tuple[int, int | None, int | None, bool, Any]
"""offset, time, epoch, exact, value."""


class Facts:
    """The open facts of a kind by key; those that end are appended to `ended`."""

    __slots__ = ("_key_text", "_row", "ended", "open")

    def __init__(
        self, ended: list[Fact], key_text: Callable[[Any], str], row: Callable[[Any, Any], tuple[Any, ...]]
    ) -> None:
        self.open: dict[Any, Open] = {}
        self.ended = ended
        self._key_text, self._row = key_text, row

    def settle(self, key: Any, value: Any, place: FactPosition, exact: bool) -> None:
        """Set the value of a key, or None, from this place on."""
        old = self.open.get(key)
        if old is None:
            if value is None:
                return
        else:
            if old[4] == value:
                return
            if old[0] != place.offset:  # a fact that held for no offset is dropped
                row = self._row(key, old[4])
                since = old[0], old[1], old[2]
                self.ended.append((self._key_text(key), *since, place.offset, place.time_us, old[3] and exact, row))
            if value is None:
                del self.open[key]
                return
        self.open[key] = (place.offset, place.time_us, place.epoch, exact, value)

    def rows(self) -> Iterator[Fact]:
        for key, (offset, time_us, epoch, exact, value) in self.open.items():
            yield self._key_text(key), offset, time_us, epoch, None, None, exact, self._row(key, value)


_OF_PARTITIONS: Final = frozenset({"PartitionRecord", "PartitionChangeRecord"})
_TRANSACTION_RECORDS: Final = frozenset(
    {records.BeginTransactionRecord, records.EndTransactionRecord, records.AbortTransactionRecord}
)

Touched = list[tuple[str, Any]]
"""Kinds and keys."""


class MetadataFold:
    """Folds one metadata log, or a shard of it. Feed it records in the order of the log.

    A record that does not fit the state raises ReplayError, or is skipped and counted if `strict` is false.
    """

    def __init__(self, writer: FactWriter, shard: int = 0, shards: int = 1, *, strict: bool = True) -> None:
        self.shard, self.shards, self.strict = shard, shards, strict
        # Partitions end before their topic, whose name they need.
        self._partitions = Facts(writer.of("partitions"), self._partition_text, self._partition_row)
        self.facts = {"partitions": self._partitions}
        self.facts |= {name: Facts(writer.of(name), form.key_text, form.row) for name, form in kinds.FORMS.items()}
        self._topics = self.facts["topics"]
        self.state = MetadataState()
        self.position = -1
        """The last offset that was read, as far as this shard knows."""
        self.ignored: Counter[str] = Counter()
        """Number of skipped records by type."""
        self._incoming: MetadataState | None = None
        self._snapshot_place: FactPosition | None = None
        self._skips_snapshot = False
        self._transaction: list[tuple[FactPosition, Message, bytes | None]] | None = None
        self._restored_pending: list[Fact] = []

    def _partition_text(self, key: tuple[Uuid, int]) -> str:
        return f'["{uuid_text(key[0])}",{key[1]}]'

    def _partition_row(self, key: tuple[Uuid, int], partition: Any) -> tuple[Any, ...]:
        topic_id, index = key
        return kinds.partition_row(uuid_text(topic_id), self._topics.open[topic_id][4], index, partition)

    # --- records of the log

    def feed(self, batch: pa.RecordBatch) -> None:
        """Apply records. Columns: at (offset, or end offset of the snapshot), time, epoch, is_snapshot, record_type, raw."""
        self._resume()
        at, time, epoch, is_snapshot, record_type, raw = batch.columns
        rows = zip(
            at.to_pylist(),
            time.cast(pa.int64()).to_pylist(),
            epoch.to_pylist(),
            is_snapshot.to_pylist(),
            record_type.to_pylist(),
            raw.to_pylist(),
            strict=True,
        )
        for offset, time_us, leader_epoch, from_snapshot, kind, value in rows:
            try:
                record = decode(value, kind)
            except (UnsupportedVersionError, MalformedError, TypeError):
                self.ignored[kind] += 1
                continue
            place = FactPosition(offset, time_us, leader_epoch)
            if from_snapshot:
                self.snapshot_record(record, place)
            elif self._transaction is None and kind in _OF_PARTITIONS:  # most records: this path is kept fast
                self._partition_record(record, place)
            else:
                self.record(record, place, value)
        self.state.forget_shared()

    def record(self, record: Message, place: FactPosition, raw: bytes | None = None) -> None:
        """Apply the next record of the log."""
        self.position = place.offset
        kind = type(record)
        transaction = self._transaction
        if kind in _TRANSACTION_RECORDS:
            if (transaction is None) is not (kind is records.BeginTransactionRecord):
                self._unfit(kind, place, "a transaction is open, or none is")
            elif transaction is None:
                self._transaction = [(place, record, raw)]
            else:
                self._transaction = None
                if kind is records.EndTransactionRecord:
                    touched = [touch for at, inner, _ in transaction[1:] for touch in self._apply(inner, at)]
                    self._settle(_by_kind(touched), place)
        elif transaction is None or kind not in REPLAY:  # control records of the quorum belong to no transaction
            self._settle(self._apply(record, place), place)
        else:
            transaction.append((place, record, raw))

    def _partition_record(self, record: Any, place: FactPosition) -> None:
        self.position = place.offset
        try:
            apply(self.state.draft, record)
        except ReplayError as error:
            self._unfit(type(record), place, str(error))
            return
        topic_id, index = key = record.topic_id, record.partition_id
        topic = self.state.topics.get(topic_id)
        self._partitions.settle(key, topic and topic.get(index), place, True)

    def _settle(self, touched: Touched, place: FactPosition, *, exact: bool = True) -> None:
        facts, state = self.facts, self.state
        for kind, key in touched:
            facts[kind].settle(key, state.current(kind, key), place, exact)

    def _apply(self, record: Message, place: FactPosition) -> Touched:
        """Apply a record, and return what it may have changed."""
        try:
            return self._change(self.state, record, place)
        except ReplayError as error:
            self._unfit(type(record), place, str(error))
            return []

    def _unfit(self, kind: type[Message], place: FactPosition, why: str) -> None:
        if self.strict:
            raise ReplayError(f"offset {place.offset}: {kind.__name__}: {why}")
        self.ignored[kind.__name__] += 1

    def _change(self, state: MetadataState, record: Message, place: FactPosition) -> Touched:
        kind = type(record)
        if kind is records.PartitionChangeRecord or kind is records.PartitionRecord:
            apply(state.draft, record)
            return [("partitions", (record.topic_id, record.partition_id))]  # type: ignore[attr-defined]
        special = _SPECIAL.get(kind)
        if special is not None:
            return special(self, state, record, place)
        touch = _TOUCH.get(kind)
        if touch is None:
            if kind not in REPLAY and kind is not control.SnapshotFooterRecord:
                self.ignored[kind.__name__] += 1
            return []
        apply(state.draft, record)
        return [touch(record)]

    # --- records that affect more than they name, or that not every shard can apply

    def _owns(self, text: str) -> bool:
        return self.shards == 1 or shard_of(text, self.shards) == self.shard

    def _topic(self, state: MetadataState, record: records.TopicRecord, place: FactPosition) -> Touched:
        if self._owns(record.name):
            state.names[record.topic_id] = record.name
        if not self._owns(str(record.topic_id)):
            return []
        before = state.topics.get(record.topic_id)
        touched = [] if before is None else _partitions(before)
        apply(state.draft, record)
        return [*touched, ("topics", record.topic_id)]

    def _remove_topic(self, state: MetadataState, record: records.RemoveTopicRecord, place: FactPosition) -> Touched:
        topic, name = state.topics.get(record.topic_id), state.names.pop(record.topic_id, None)
        touched: Touched = []
        if name is not None:
            resource = ConfigResource(ConfigResourceType.TOPIC, name)
            touched += [("configs", (*resource, config)) for config in state.draft.configs.get(resource) or ()]
        if topic is not None or self._owns(str(record.topic_id)):
            apply(state.draft, record)
        elif name is not None:
            state.draft.configs.remove(resource)
        if topic is not None:
            touched += _partitions(topic)
            touched.append(("topics", topic.topic_id))
        return touched

    def _clear_elr(self, state: MetadataState, record: records.ClearElrRecord, place: FactPosition) -> Touched:
        if record.topic_name:
            topic = state.topics.named(record.topic_name)
            if topic is None and self.shards > 1:
                return []  # it belongs to another shard
            cleared = [] if topic is None else [topic]
        else:
            cleared = state.topics.find_all()
        touched = [touch for topic in cleared for touch in _partitions(topic)]
        apply(state.draft, record)
        return touched

    def _feature(self, state: MetadataState, record: records.FeatureLevelRecord, place: FactPosition) -> Touched:
        try:
            apply(state.draft, record)
        except ReplayError:  # a metadata.version that is newer than this program is still a fact
            state.draft.features.set(record.name, record.feature_level)
        return [("features", record.name)]

    def _kraft_version(self, state: MetadataState, record: control.KRaftVersionRecord, place: FactPosition) -> Touched:
        if record.k_raft_version:
            state.draft.features.set(KRAFT_VERSION, record.k_raft_version)
        else:
            state.draft.features.remove(KRAFT_VERSION)
        return [("features", KRAFT_VERSION)]

    def _producer_ids(self, state: MetadataState, record: records.ProducerIdsRecord, place: FactPosition) -> Touched:
        known = self.state.producer_ids
        if record.broker_id >= 0 or known is None or known.next_producer_id != record.next_producer_id:
            known = ProducerIdBlock(record.next_producer_id, record.broker_id, record.broker_epoch)
        state.producer_ids = known  # a snapshot does not say which broker got the last block
        return [("producer_ids", ())]

    def _voters(self, state: MetadataState, record: control.VotersRecord, place: FactPosition) -> Touched:
        before = state.voters
        state.voters = {
            (voter.voter_id, voter.voter_directory_id): Voter(
                tuple(sorted((e.name, e.host, e.port) for e in voter.endpoints)),
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            )
            for voter in record.voters
        }
        return [("voters", key) for key in {**before, **state.voters}]

    def _leader(self, state: MetadataState, record: control.LeaderChangeMessage, place: FactPosition) -> Touched:
        state.leader = LeaderEpoch(
            -1 if place.epoch is None else place.epoch,
            record.leader_id,
            tuple(voter.voter_id for voter in record.voters),
            tuple(voter.voter_id for voter in record.granting_voters),
        )
        return [("leader_epochs", ())]

    # --- snapshots

    def snapshot_record(self, record: Message, place: FactPosition) -> None:
        """Apply the next record of a snapshot, with header and footer. The offset of `place` is its end offset."""
        if isinstance(record, control.SnapshotHeaderRecord):
            self._skips_snapshot = place.offset <= self.position
            self._incoming = MetadataState()
            time_us = record.last_contained_log_timestamp * 1000
            self._snapshot_place = place._replace(time_us=time_us if time_us > 0 else place.time_us)
        elif self._incoming is None or self._snapshot_place is None:
            raise ReplayError(f"the snapshot at offset {place.offset} has no header")
        elif not isinstance(record, control.SnapshotFooterRecord):
            if not self._skips_snapshot:
                self._change(self._incoming, record, place)
        else:
            if not self._skips_snapshot:
                self._replace(self._incoming, self._snapshot_place)
            self._incoming = self._snapshot_place = None

    def _replace(self, incoming: MetadataState, place: FactPosition) -> None:
        """Replace the state. A snapshot does not name the leader, and drops an open transaction, as in the broker."""
        incoming.leader, self._transaction = self.state.leader, None
        self.state = incoming
        for kind, facts in self.facts.items():
            touched = dict.fromkeys(facts.open)
            touched.update(dict.fromkeys(incoming.keys(kind)))
            self._settle([(kind, key) for key in touched], place, exact=False)
        self.position = max(self.position, place.offset - 1)

    # --- state between runs

    def restore(self, kind: str, facts: list[Fact]) -> None:
        if kind == POSITION:
            self.position = max(self.position, *(fact[1] for fact in facts))
        elif kind == PENDING:
            self._restored_pending += facts
        else:
            opened, state = self.facts[kind].open, self.state
            of_row = kinds.partition_of if kind == "partitions" else kinds.FORMS[kind].of_row
            for _, offset, time_us, epoch, _, _, exact, row in facts:
                key, value = cast(tuple[Any, Any], of_row(row))
                if kind == "topics":
                    if self._owns(value):
                        state.names[key] = value
                    if not self._owns(row[0]):
                        continue
                opened[key] = (offset, time_us, epoch, exact, state.put(kind, key, value, row))

    def _resume(self) -> None:
        if self._restored_pending:
            facts = sorted(self._restored_pending, key=lambda fact: fact[1])
            self._restored_pending = []
            position = self.position
            for _, offset, time_us, epoch, _, _, _, raw in facts:
                self.record(decode(raw), FactPosition(offset, time_us, epoch), raw)
            self.position = max(position, self.position)

    def finish(self) -> Iterator[tuple[str, Fact]]:
        """Yield all open facts. The fold cannot be used afterwards."""
        self._resume()
        if self._incoming is not None and self._snapshot_place is not None:
            raise ReplayError(f"the snapshot at offset {self._snapshot_place.offset} has no footer")
        if self.ignored:
            _log.warning("skipped metadata records by type: %s", dict(self.ignored))
        for kind, facts in self.facts.items():
            for fact in facts.rows():
                yield kind, fact
        for place, record, raw in self._transaction or ():
            if destinations(record, self.shards)[0] == self.shard:
                value = raw or wire.encode_record(record, record.schema().versions.last)
                yield PENDING, (key_text(place.offset), *place, None, None, True, value)
        if self.position >= 0:
            yield POSITION, (key_text(self.shard), self.position, None, None, None, None, True, b"")


def _partitions(topic: TopicDraft) -> Touched:
    return [("partitions", (topic.topic_id, index)) for index in (*range(len(topic.partitions)), *(topic.early or ()))]


def _by_kind(touched: Touched) -> Touched:
    """Return each once, partitions before their topics."""
    once = dict.fromkeys(touched)
    return [*(t for t in once if t[0] != "topics"), *(t for t in once if t[0] == "topics")]


_SPECIAL: Final[dict[type[Message], Callable[..., Touched]]] = {
    records.TopicRecord: MetadataFold._topic,
    records.RemoveTopicRecord: MetadataFold._remove_topic,
    records.ClearElrRecord: MetadataFold._clear_elr,
    records.FeatureLevelRecord: MetadataFold._feature,
    records.ProducerIdsRecord: MetadataFold._producer_ids,
    control.KRaftVersionRecord: MetadataFold._kraft_version,
    control.VotersRecord: MetadataFold._voters,
    control.LeaderChangeMessage: MetadataFold._leader,
}


def _quota(record: records.ClientQuotaRecord) -> tuple[str, Any]:
    return "quotas", (quota_entity({part.entity_type: part.entity_name for part in record.entity}), record.key)


_TOUCH: Final[dict[type[Message], Callable[[Any], tuple[str, Any]]]] = {
    records.ConfigRecord: lambda r: ("configs", (r.resource_type, r.resource_name, r.name)),
    records.RegisterBrokerRecord: lambda r: ("brokers", r.broker_id),
    records.UnregisterBrokerRecord: lambda r: ("brokers", r.broker_id),
    records.FenceBrokerRecord: lambda r: ("brokers", r.id),
    records.UnfenceBrokerRecord: lambda r: ("brokers", r.id),
    records.BrokerRegistrationChangeRecord: lambda r: ("brokers", r.broker_id),
    records.RegisterControllerRecord: lambda r: ("controllers", r.controller_id),
    records.AccessControlEntryRecord: lambda r: ("acls", r.id),
    records.RemoveAccessControlEntryRecord: lambda r: ("acls", r.id),
    records.ClientQuotaRecord: _quota,
    records.UserScramCredentialRecord: lambda r: ("users", ScramUser(r.mechanism, r.name)),
    records.RemoveUserScramCredentialRecord: lambda r: ("users", ScramUser(r.mechanism, r.name)),
    records.DelegationTokenRecord: lambda r: ("tokens", r.token_id),
    records.RemoveDelegationTokenRecord: lambda r: ("tokens", r.token_id),
}
"""The kind and key that a record affects, for types that affect only one."""
