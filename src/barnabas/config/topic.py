"""The configs of a topic, and their validation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from barnabas.config.definitions import ConfigError, Definition, Value, parse_all, parse_table
from barnabas.config.hash_order import hash_order
from barnabas.config.values import invalid


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the topic configs. Their `synonyms` are the broker configs that provide the default."""
    return parse_table(_TABLE)


def validate(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Value] = MappingProxyType({}),
    *,
    existing: Mapping[str, str] = MappingProxyType({}),
    remote_storage_system_enabled: bool = False,
) -> None:
    """Validate all configs of a topic, given the broker's defaults and the existing configs. Raises `ConfigError`."""
    if nulls := [name for name, text in configs.items() if text is None]:
        raise ConfigError(nulls[0], f"Null value not supported for topic configs: {','.join(nulls)}")
    for name in hash_order(configs):
        if name not in definitions():
            raise ConfigError(name, f"Unknown topic config name: {name}")
    values = parse_all(definitions(), configs)
    values.update((name, value) for name, value in defaults.items() if name not in configs)
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise ConfigError(
            "min.compaction.lag.ms",
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})",
        )
    if values["remote.storage.enable"]:
        _check_tiered(values, remote_storage_system_enabled)
    elif existing.get("remote.storage.enable", "").lower() == "true" and not values["remote.log.delete.on.disable"]:
        raise ConfigError(
            "remote.storage.enable",
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data "
            "and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If you want "
            "to disable remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`.",
        )


def _check_tiered(values: Mapping[str, Value], remote_storage_system_enabled: bool) -> None:
    if not remote_storage_system_enabled:
        raise ConfigError(
            "remote.storage.enable",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    if values["cleanup.policy"] not in ((), ("delete",)):
        raise ConfigError(
            "cleanup.policy",
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list.",
        )
    for unit in ("bytes", "ms"):
        check_local_retention(f"retention.{unit}", values[f"retention.{unit}"], values[f"local.retention.{unit}"])
    for unit in ("bytes", "ms"):
        local = values[f"local.retention.{unit}"]
        if values["remote.log.copy.disable"] and local not in (-2, values[f"retention.{unit}"]):
            raise ConfigError(
                f"local.retention.{unit}",
                f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and `retention.{unit}` "
                "must be set to the identical value because there will be no more logs copied to the remote storage.",
            )


def check_local_retention(name: str, whole: Value, local: Value) -> None:
    """Check that local retention is not more than total retention. -2 means equal, and -1 unlimited."""
    assert isinstance(whole, int)
    assert isinstance(local, int)
    local_name = name.replace("retention.", "local.retention.")
    if whole < 0 or local == -2:
        return
    if local == -1:
        raise invalid(local_name, local, f"Value must not be -1 as {name} value is set as {whole}.")
    if local > whole:
        raise invalid(local_name, local, f"Value must not be more than {name} property value: {whole}")


_TABLE = """\
segment.bytes int 1073741824 medium >=1048576 <- log.segment.bytes
    Size at which a segment is rolled.
segment.ms long 604800000 medium >=1 <- log.roll.ms log.roll.hours*3600000
    Age at which a segment is rolled.
segment.jitter.ms long 0 medium >=0 <- log.roll.jitter.ms log.roll.jitter.hours*3600000
    Maximum random time by which a segment is rolled early.
segment.index.bytes int 10485760 medium >=4 <- log.index.size.max.bytes
    Maximum size of a segment's offset index.
flush.messages long 9223372036854775807 medium >=1 <- log.flush.interval.messages
    Number of records after which the log is flushed.
flush.ms long 9223372036854775807 medium >=0 <- log.flush.interval.ms log.flush.scheduler.interval.ms
    Maximum time before records are flushed.
retention.bytes long -1 medium <- log.retention.bytes
    Maximum size of a partition before old segments are deleted; -1 is unlimited.
retention.ms long 604800000 medium >=-1 <- log.retention.ms log.retention.minutes*60000 log.retention.hours*3600000
    Age at which segments are deleted; -1 is never.
max.message.bytes int 1048588 medium >=0 <- message.max.bytes
    Maximum size of a record batch.
index.interval.bytes int 4096 medium >=0 <- log.index.interval.bytes
    Bytes of log between two entries of the offset index.
delete.retention.ms long 86400000 medium >=0 <- log.cleaner.delete.retention.ms
    How long tombstones stay in the compacted log.
min.compaction.lag.ms long 0 medium >=0 <- log.cleaner.min.compaction.lag.ms
    Records younger than this are never compacted.
max.compaction.lag.ms long 9223372036854775807 medium >=1 <- log.cleaner.max.compaction.lag.ms
    Maximum time before records are compacted, whatever the dirty ratio.
file.delete.delay.ms long 60000 medium >=0 <- log.segment.delete.delay.ms
    Delay before the files of a removed segment are deleted.
min.cleanable.dirty.ratio double 0.5 medium 0..1 <- log.cleaner.min.cleanable.ratio
    Ratio of dirty log to total log above which the log is compacted.
cleanup.policy list delete medium list+empty:compact|delete <- log.cleanup.policy
    Cleanup of old records: delete, compact, both, or none if empty.
unclean.leader.election.enable boolean false medium <- unclean.leader.election.enable
    Whether a replica that is not in sync may become leader if no other can, which may lose records.
min.insync.replicas int 1 medium >=1 <- min.insync.replicas
    Minimum number of in-sync replicas for writes with acks=all.
compression.type string producer medium in:uncompressed|zstd|lz4|snappy|gzip|producer <- compression.type
    Codec of stored batches; producer keeps the codec used by the producer.
compression.gzip.level int -1 medium gzip-level <- compression.gzip.level
    Level when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 medium 1..17 <- compression.lz4.level
    Level when the broker compresses with lz4.
compression.zstd.level int 3 medium -131072..22 <- compression.zstd.level
    Level when the broker compresses with zstd.
preallocate boolean false medium <- log.preallocate
    Whether new segment files are preallocated.
message.timestamp.type string CreateTime medium in:CreateTime|LogAppendTime <- log.message.timestamp.type
    Source of record timestamps: CreateTime (the producer) or LogAppendTime (the broker).
message.timestamp.before.max.ms long 9223372036854775807 medium >=0 <- log.message.timestamp.before.max.ms
    Maximum time by which a record's timestamp may be before the broker's clock.
message.timestamp.after.max.ms long 3600000 medium >=0 <- log.message.timestamp.after.max.ms
    Maximum time by which a record's timestamp may be after the broker's clock.
leader.replication.throttled.replicas list "" medium throttled-replicas
    Replicas that are throttled on the leader, as partition:broker pairs, or * for all.
follower.replication.throttled.replicas list "" medium throttled-replicas
    Replicas that are throttled on the follower, as partition:broker pairs, or * for all.
remote.storage.enable boolean false medium
    Whether segments of this topic are copied to remote storage.
local.retention.ms long -2 medium >=-2 <- log.local.retention.ms
    How long a tiered topic keeps segments on local disk; -2 means retention.ms.
local.retention.bytes long -2 medium >=-2 <- log.local.retention.bytes
    Maximum size of a tiered partition on local disk; -2 means retention.bytes.
remote.log.copy.disable boolean false medium
    Whether a tiered topic only reads from remote storage and copies nothing more to it.
remote.log.delete.on.disable boolean false medium
    Whether disabling tiered storage deletes the remote data.
internal.segment.bytes int - medium internal
    For tests: segment size below the usual minimum.
"""
