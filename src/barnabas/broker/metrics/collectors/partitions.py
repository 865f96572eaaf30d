"""The replicas of this broker: how many are led, in sync, at or under the minimum or offline; logs by partition."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.metrics.exposition import Exposition, Metric, counter, gauge, labels
from barnabas.broker.metrics.observed import Observed
from barnabas.replicas.partition import Partition
from barnabas.slices import Slices


def _replica_manager(name: str, help: str) -> Metric:
    return gauge(f"kafka_server_replicamanager_{name}", help)


PARTITIONS = _replica_manager("partitioncount", "Replicas on this broker.")
LEADERS = _replica_manager("leadercount", "Partitions that this broker leads.")
UNDER_REPLICATED = _replica_manager("underreplicatedpartitions", "Led partitions with replicas that are not in sync.")
UNDER_MIN_ISR = _replica_manager(
    "underminisrpartitioncount", "Led partitions with fewer in-sync replicas than min.insync.replicas."
)
AT_MIN_ISR = _replica_manager(
    "atminisrpartitioncount", "Led partitions with as many in-sync replicas as min.insync.replicas."
)
OFFLINE = _replica_manager("offlinereplicacount", "Replicas in log directories that are offline.")
REASSIGNING = _replica_manager("reassigningpartitions", "Led partitions that are being reassigned.")
PRODUCER_IDS = _replica_manager("produceridcount", "Producers whose sequences are kept, summed over partitions.")
SHRINKS = counter("kafka_server_replicamanager_isrshrinks_total", "Times that a replica fell out of sync.")
EXPANDS = counter("kafka_server_replicamanager_isrexpands_total", "Times that a replica got back in sync.")
OPEN_LOGS = gauge("barnabas_open_logs", "Logs that are open. The others are opened when they are first used.")

_OF_PARTITION = ("topic", "partition")
SIZE = gauge("kafka_log_log_size", "Bytes of a log on disk, without its indexes.", *_OF_PARTITION)
START_OFFSET = gauge("kafka_log_log_logstartoffset", "Log start offset.", *_OF_PARTITION)
END_OFFSET = gauge("kafka_log_log_logendoffset", "Log end offset.", *_OF_PARTITION)
SEGMENTS = gauge("kafka_log_log_numlogsegments", "Segments of a log.", *_OF_PARTITION)
HIGH_WATERMARK = gauge("barnabas_partition_high_watermark", "High watermark.", *_OF_PARTITION)
METRICS = (
    *(PARTITIONS, LEADERS, UNDER_REPLICATED, UNDER_MIN_ISR, AT_MIN_ISR, OFFLINE, REASSIGNING, PRODUCER_IDS),
    *(SHRINKS, EXPANDS, OPEN_LOGS, SIZE, START_OFFSET, END_OFFSET, SEGMENTS, HIGH_WATERMARK),
)
COUNTS = METRICS[: METRICS.index(PRODUCER_IDS) + 1]


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    replicas = node.replicas
    if replicas is None:
        return
    counts: Counter[Metric] = Counter(dict.fromkeys((*COUNTS, OPEN_LOGS), 0))
    left = node.max_rows("partitions")
    for partition in replicas:
        _count(partition, counts)
        if partition.opened_log is None or partition.is_offline:
            pass
        elif left > 0:
            left -= 1
            _add_log(partition, out)
        else:
            left_out["partitions"] += 1
        yield
    for metric, count in counts.items():
        out.add(metric, count)
    out.add(SHRINKS, replicas.isr_shrinks)
    out.add(EXPANDS, replicas.isr_expands)


def _count(partition: Partition, counts: Counter[Metric]) -> None:
    state = partition.state
    counts[PARTITIONS] += 1
    counts[OFFLINE] += partition.is_offline
    if partition.opened_log is not None and not partition.is_offline:
        counts[OPEN_LOGS] += 1
        counts[PRODUCER_IDS] += len(partition.opened_log.producers)
    if partition.is_leader and not partition.is_offline:
        in_sync, least = len(state.isr), partition.settings.min_insync_replicas
        counts[LEADERS] += 1
        counts[UNDER_REPLICATED] += in_sync < len(state.replicas)
        counts[UNDER_MIN_ISR] += in_sync < least
        counts[AT_MIN_ISR] += in_sync == least
        counts[REASSIGNING] += state.is_reassigning


def _add_log(partition: Partition, out: Exposition) -> None:
    log = partition.opened_log
    assert log is not None
    text = labels(topic=partition.topic, partition=partition.partition_id)
    out.add(SIZE, log.size_in_bytes, text)
    out.add(START_OFFSET, log.log_start_offset, text)
    out.add(END_OFFSET, log.log_end_offset, text)
    out.add(SEGMENTS, len(log.segments), text)
    out.add(HIGH_WATERMARK, partition.high_watermark, text)
