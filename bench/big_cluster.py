"""A log dir whose metadata log describes many partitions, as both barnabas and Apache Kafka start from it.

Node 1 is the one that starts. The partitions are on node 2, which the log says is there: a node that holds 100,000 logs has
more files open than most systems allow, and opening them is not what is measured. So that nobody misses node 2, the nodes
that start need `SETTINGS`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.batches import Record, build_batch
from barnabas.metadata.versions import LATEST_VERSION
from barnabas.raft import formatting
from barnabas.raft.stored_log import StoredLog, metadata_log_directory
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.storage.log_config import LogConfig
from barnabas.wire import Message, Uuid, encode_record
from barnabas.wire.records.metadata import PartitionRecord, RegisterBrokerRecord, TopicRecord

SETTINGS = {"broker.session.timeout.ms": "86400000"}
PARTITIONS_PER_TOPIC = 10
EPOCHS = 1000
EPOCH = 1

_ELSEWHERE = 2

Versioned = tuple[Message, int]


def topic_name(number: int) -> str:
    return f"topic-{number:06d}"


def write(log_dir: Path, controller: str, partitions: int) -> None:
    """Format the directory for node 1, whose controller listens there, and write its metadata log."""
    source = random.Random(partitions)
    log = begin(log_dir, controller, source, _now_ms)
    elsewhere = uuid(source)
    append(log, [broker(_ELSEWHERE, elsewhere, uuid(source))], _now_ms())
    for number in range(partitions // PARTITIONS_PER_TOPIC):
        append(log, _topic(topic_name(number), source, elsewhere), _now_ms())
    log.flush()
    log.close()


def begin(log_dir: Path, controller: str, source: random.Random, clock: Callable[[], int]) -> StoredLog:
    """Format the directory for node 1, whose controller listens there; the metadata log with the features in it."""
    host, _, port = controller.rpartition(":")
    directory_id = uuid(source)
    voter = Voter(ReplicaKey(1, directory_id), (Endpoint("CONTROLLER", host, int(port)),))
    bootstrap = formatting.bootstrap_records(formatting.effective_features())
    cluster_id = str(uuid(source))
    wanted = formatting.Formatting(cluster_id, 1, log_dir, {log_dir: directory_id}, bootstrap, VoterSet([voter]))
    formatting.write_format(wanted, clock)
    log = StoredLog(metadata_log_directory(log_dir), LogConfig(metadata=True), clock)
    append(log, [(record, 0) for record in bootstrap], clock())
    return log


def features() -> Sequence[Message]:
    """The records that every log here begins with."""
    return list(formatting.bootstrap_records(formatting.effective_features()))


def append(log: StoredLog, records: Sequence[Versioned], now_ms: int) -> None:
    log.append(batch(records, log.end_offset, EPOCH, now_ms))


def batch(records: Sequence[Versioned], base_offset: int, epoch: int, now_ms: int) -> bytes:
    values = [Record(0, now_ms, None, encode_record(record, version)) for record, version in records]
    return build_batch(values, base_offset=base_offset, partition_leader_epoch=epoch)


def broker(broker_id: int, directory_id: Uuid, incarnation_id: Uuid, epoch: int = 1) -> Versioned:
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=incarnation_id,
        broker_epoch=epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9, security_protocol=0)
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=0, max_supported_version=level)
            if name != "metadata.version"
            else RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=7, max_supported_version=level)
            for name, level in formatting.effective_features().items()
        ],
        fenced=False,
        log_dirs=[directory_id],
    )
    return record, LATEST_VERSION.register_broker_record_version


def _topic(name: str, source: random.Random, directory_id: Uuid) -> list[Versioned]:
    """Epochs differ as they do after some time, so that no two partitions are the same value."""
    topic_id = uuid(source)
    records: list[Versioned] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
    for index in range(PARTITIONS_PER_TOPIC):
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[_ELSEWHERE],
            isr=[_ELSEWHERE],
            leader=_ELSEWHERE,
            leader_epoch=source.randrange(EPOCHS),
            partition_epoch=source.randrange(EPOCHS),
            directories=[directory_id],
        )
        records.append((record, LATEST_VERSION.partition_record_version))
    return records


def uuid(source: random.Random) -> Uuid:
    return Uuid(b"A" + source.randbytes(15))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
