"""The settings of a topic, and the check of a topic's whole set of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from barnabas.config.definitions import ConfigError, Definition, Value, parse_all, parse_table
from barnabas.config.hash_order import hash_order
from barnabas.config.values import invalid


@cache
def definitions() -> Mapping[str, Definition]:
    """The settings of a topic; `synonyms` are the broker settings that give the default."""
    return parse_table(_TABLE)


def validate(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Value] = MappingProxyType({}),
    *,
    existing: Mapping[str, str] = MappingProxyType({}),
    remote_storage_system_enabled: bool = False,
) -> None:
    """Check all that a topic sets, over what the broker gives it and what was set before; raises `ConfigError`."""
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
    """What is kept on local disk is not more than what is kept at all; -2 follows it, and -1 is no limit."""
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
    Size at which a segment is closed.
segment.ms long 604800000 medium >=1 <- log.roll.ms log.roll.hours*3600000
    Age at which a segment is closed.
segment.jitter.ms long 0 medium >=0 <- log.roll.jitter.ms log.roll.jitter.hours*3600000
    Most that a segment's closing is brought forward at random.
segment.index.bytes int 10485760 medium >=4 <- log.index.size.max.bytes
    Largest offset index of a segment.
flush.messages long 9223372036854775807 medium >=1 <- log.flush.interval.messages
    Records after which the log is forced to disk.
flush.ms long 9223372036854775807 medium >=0 <- log.flush.interval.ms log.flush.scheduler.interval.ms
    Longest time records wait to be forced to disk.
retention.bytes long -1 medium <- log.retention.bytes
    Size of a partition beyond which old segments are deleted; -1 is no limit.
retention.ms long 604800000 medium >=-1 <- log.retention.ms log.retention.minutes*60000 log.retention.hours*3600000
    Age at which segments are deleted; -1 is never.
max.message.bytes int 1048588 medium >=0 <- message.max.bytes
    Largest record batch the topic accepts.
index.interval.bytes int 4096 medium >=0 <- log.index.interval.bytes
    Bytes of log between two entries of the offset index.
delete.retention.ms long 86400000 medium >=0 <- log.cleaner.delete.retention.ms
    How long tombstones stay in the compacted log.
min.compaction.lag.ms long 0 medium >=0 <- log.cleaner.min.compaction.lag.ms
    Records younger than this are never compacted.
max.compaction.lag.ms long 9223372036854775807 medium >=1 <- log.cleaner.max.compaction.lag.ms
    Records older than this are compacted even if little else calls for it.
file.delete.delay.ms long 60000 medium >=0 <- log.segment.delete.delay.ms
    Pause between taking a segment out of the log and deleting its files.
min.cleanable.dirty.ratio double 0.5 medium 0..1 <- log.cleaner.min.cleanable.ratio
    Share of uncleaned log at which the log is worth compacting.
cleanup.policy list delete medium list+empty:compact|delete <- log.cleanup.policy
    What happens to old records: delete, compact, both, or nothing when empty.
unclean.leader.election.enable boolean false medium <- unclean.leader.election.enable
    Whether a replica outside the in-sync set may lead when no other can, losing records.
min.insync.replicas int 1 medium >=1 <- min.insync.replicas
    In-sync replicas without which acks=all is refused.
compression.type string producer medium in:uncompressed|zstd|lz4|snappy|gzip|producer <- compression.type
    Codec in which batches are stored; producer keeps what was sent.
compression.gzip.level int -1 medium gzip-level <- compression.gzip.level
    Level when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 medium 1..17 <- compression.lz4.level
    Level when the broker compresses with lz4.
compression.zstd.level int 3 medium -131072..22 <- compression.zstd.level
    Level when the broker compresses with zstd.
preallocate boolean false medium <- log.preallocate
    Whether new segment files get their full size at once.
message.timestamp.type string CreateTime medium in:CreateTime|LogAppendTime <- log.message.timestamp.type
    Whose time a record carries: CreateTime, or LogAppendTime for the broker's clock.
message.timestamp.before.max.ms long 9223372036854775807 medium >=0 <- log.message.timestamp.before.max.ms
    How far a record's time may lie behind the broker's clock.
message.timestamp.after.max.ms long 3600000 medium >=0 <- log.message.timestamp.after.max.ms
    How far a record's time may lie ahead of the broker's clock.
leader.replication.throttled.replicas list "" medium throttled-replicas
    Replicas whose leaders are throttled, as partition:broker pairs, or * for all.
follower.replication.throttled.replicas list "" medium throttled-replicas
    Replicas that are throttled as followers, as partition:broker pairs, or * for all.
remote.storage.enable boolean false medium
    Whether old segments of this topic go to remote storage.
local.retention.ms long -2 medium >=-2 <- log.local.retention.ms
    How long a tiered topic keeps segments on local disk; -2 follows retention.ms.
local.retention.bytes long -2 medium >=-2 <- log.local.retention.bytes
    Bytes of a tiered partition kept on local disk; -2 follows retention.bytes.
remote.log.copy.disable boolean false medium
    Whether a tiered topic stops copying to remote storage and only reads from it.
remote.log.delete.on.disable boolean false medium
    Whether turning tiering off deletes what remote storage holds.
internal.segment.bytes int - medium internal
    For tests: segment size below the usual minimum.
"""
