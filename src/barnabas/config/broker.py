"""The configs of a broker or controller, and the validation of dynamic changes.

Every config of Kafka 4.3 is here, whether barnabas uses it or not, so that a server.properties is read as Kafka reads
it. barnabas' own configs start with `barnabas.`. Checks that involve several configs are in `server_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from barnabas.config.definitions import ConfigError, Definition, UpdateMode, parse_table
from barnabas.config.hash_order import hash_order
from barnabas.wire.errors import ErrorCode

# Configs of the authorizer, which are known but have no type. Kafka does not define them in its table either.
AUTHORIZER_SETTINGS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
_PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.", "metrics.context.", "client.quota.callback.")

_LISTENER_SETTING = r"listener\.name\.[^.]*\.(.*)"
# These can also be set per mechanism: listener.name.<listener>.<mechanism>.<config>.
_MECHANISM_SETTINGS = (
    "sasl.jaas.config",
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "connections.max.reauth.ms",
)
_CLUSTER_WIDE_LISTENER_SETTINGS = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
_LISTENER_ONLY = r"ssl\.(key\.password|keystore\..*|truststore\..*)"


@cache
def definitions() -> Mapping[str, Definition]:
    """Return the configs that a server.properties may contain."""
    return parse_table(_TABLE)


@cache
def dynamic_definitions() -> Mapping[str, Definition]:
    """Return the configs that exist only dynamically: the replication throttles."""
    return parse_table(_DYNAMIC_TABLE)


def find(name: str) -> Definition | None:
    """Return the definition of a config, also with a listener prefix, or None if it is unknown."""
    return definitions().get(base_name(name)) or dynamic_definitions().get(name)


def is_sensitive(name: str) -> bool:
    """Whether Kafka hides the value: for passwords, and for unknown configs, which may be passwords."""
    definition = find(name)
    return definition is None or definition.sensitive


def base_name(name: str) -> str:
    """Return the name without the prefix of a listener and mechanism."""
    match = re.fullmatch(_LISTENER_SETTING, name)
    if match is None:
        return name
    return next((setting for setting in _MECHANISM_SETTINGS if match[1].endswith(setting)), match[1])


def synonym_names(name: str) -> tuple[str, ...]:
    """Return the names that provide the value of this config, in order, including its own."""
    definition = definitions().get(name)
    if definition is not None and definition.synonyms:
        return tuple(synonym.name for synonym in definition.synonyms)
    base = base_name(name)
    return (name,) if base == name else (name, base)


def is_known(name: str) -> bool:
    """Whether a key of server.properties belongs to a node, its authorizer or one of its plugins."""
    return (
        name in definitions() or name in AUTHORIZER_SETTINGS or name.startswith(("listener.name.", *_PLUGIN_PREFIXES))
    )


def validate_dynamic(configs: Mapping[str, str | None], *, cluster_wide: bool) -> None:
    """Validate a dynamic change of one broker, or of all.

    Raises `ConfigError`. Unknown names are accepted, as in Kafka.
    """

    def refuse(is_refused: Callable[[str], bool], why: str) -> None:
        if names := hash_order(name for name in configs if is_refused(name)):
            raise ConfigError(names[0], f"{why}: [{', '.join(names)}]", ErrorCode.INVALID_REQUEST)

    refuse(_is_read_only, "Cannot update these configs dynamically")
    refuse(
        _is_for_listeners,
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    by_base = {base_name(name): name for name in configs}
    for base, definition in [*dynamic_definitions().items(), *definitions().items()]:
        if base in by_base and (text := configs[by_base[base]]) is not None:
            try:
                definition.parse(text)
            except ConfigError as error:
                raise ConfigError(by_base[base], error.message, ErrorCode.INVALID_REQUEST) from None
    if cluster_wide:
        refuse(_needs_broker, "Cannot update these configs at default cluster level, broker id must be specified")


def effective(configs: Mapping[str, str], *, cluster_wide: bool) -> dict[str, str]:
    """Return the stored dynamic configs that a broker applies. A controller stores more than a broker accepts."""

    def counts(name: str, text: str) -> bool:
        if _is_read_only(name) or _is_for_listeners(name) or (cluster_wide and _needs_broker(name)):
            return False
        try:
            if (definition := find(name)) is not None:
                definition.parse(text)
        except ConfigError:
            return False
        return True

    return {name: text for name, text in configs.items() if counts(name, text)}


def _is_read_only(name: str) -> bool:
    definition = definitions().get(name)
    return definition is not None and definition.update is UpdateMode.READ_ONLY


def _is_for_listeners(name: str) -> bool:
    return re.fullmatch(_LISTENER_ONLY, name) is not None


def _needs_broker(name: str) -> bool:
    if (base := base_name(name)) != name:
        return base not in _CLUSTER_WIDE_LISTENER_SETTINGS
    definition = definitions().get(name)
    return definition is not None and definition.update is UpdateMode.PER_BROKER


_TABLE = """\
# Tiered storage
remote.log.storage.system.enable boolean false medium
    Whether topics may keep old segments in remote storage.
remote.log.storage.manager.impl.prefix string rsm.config. medium non-empty
    Configs with this prefix are passed to the remote storage plugin.
remote.log.metadata.manager.impl.prefix string rlmm.config. medium non-empty
    Configs with this prefix are passed to the plugin for remote segment metadata.
remote.log.storage.manager.class.name string - medium non-empty
    Class of the plugin that stores remote segments.
remote.log.storage.manager.class.path string - medium
    Class path of the remote storage plugin.
remote.log.metadata.manager.class.name string \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager medium non-empty
    Class of the plugin for remote segment metadata.
remote.log.metadata.manager.class.path string - medium
    Class path of the plugin for remote segment metadata.
remote.log.metadata.manager.listener.name string - medium non-empty
    Broker listener that the plugin for remote segment metadata connects to.
remote.log.metadata.custom.metadata.max.bytes int 128 low >=0
    Maximum size of the custom metadata of a remote segment.
remote.log.index.file.cache.total.size.bytes long 1073741824 low cluster-wide >=1
    Maximum disk space for cached index files of remote segments.
remote.log.index.file.cache.ttl.ms long 900000 low internal >=-1
    How long an unused index file of a remote segment stays cached; -1 is forever.
remote.log.manager.thread.pool.size int 2 medium >=1
    Threads for remote tasks without a thread pool of their own.
remote.log.manager.copier.thread.pool.size int 10 medium cluster-wide >=1
    Threads that copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size int 10 medium cluster-wide >=1
    Threads that delete expired remote segments.
remote.log.manager.follower.thread.pool.size int 2 medium cluster-wide >=1
    Threads that track the remote state of partitions led by other brokers.
remote.log.manager.task.interval.ms long 30000 low >=1
    Interval of the tasks that copy and delete remote segments.
remote.log.manager.task.retry.backoff.ms long 500 low internal >=1
    Initial backoff after a failed remote task.
remote.log.manager.task.retry.backoff.max.ms long 30000 low internal >=1
    Maximum backoff between retries of a remote task.
remote.log.manager.task.retry.jitter double 0.2 low internal 0..0.5
    Random variation of the retry backoff, as a fraction of it.
remote.log.reader.threads int 10 medium cluster-wide >=1
    Threads that read from remote storage for fetches.
remote.log.reader.max.pending.tasks int 100 medium >=1
    Maximum number of waiting remote reads; further ones are rejected.
log.local.retention.ms long -2 medium cluster-wide >=-2
    How long tiered topics keep segments on local disk; -2 means the topic's retention.ms.
log.local.retention.bytes long -2 medium cluster-wide >=-2
    Maximum size of a tiered partition on local disk; -2 means the topic's retention.bytes.
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=1
    Maximum bytes per second copied to remote storage.
remote.log.manager.copy.quota.window.num int 11 medium >=1
    Number of samples for the copy rate.
remote.log.manager.copy.quota.window.size.seconds int 1 medium >=1
    Duration of a sample of the copy rate.
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=1
    Maximum bytes per second read from remote storage.
remote.log.manager.fetch.quota.window.num int 11 medium >=1
    Number of samples for the remote read rate.
remote.log.manager.fetch.quota.window.size.seconds int 1 medium >=1
    Duration of a sample of the remote read rate.
remote.fetch.max.wait.ms int 500 medium cluster-wide >=1
    Maximum time a fetch waits for remote data.
remote.list.offsets.request.timeout.ms long 30000 medium cluster-wide >=1
    Maximum time ListOffsets waits for remote storage.

# The server
broker.id int -1 high
    Older name of node.id; if both are set they must be equal.
message.max.bytes int 1048588 high cluster-wide >=0
    Maximum size of a record batch, unless the topic sets its own limit.
num.io.threads int 8 high cluster-wide >=1
    Threads that handle requests.
num.replica.alter.log.dirs.threads int - high
    Threads that move replicas between log directories; unset means one per directory.
background.threads int 10 high cluster-wide >=1
    Threads for background tasks such as deleting files.
request.timeout.ms int 30000 high
    Timeout of requests sent by this node.
socket.connection.setup.timeout.ms long 10000 medium
    Initial timeout for opening a connection; it increases with each failure.
socket.connection.setup.timeout.max.ms long 30000 medium
    Maximum timeout for opening a connection.
config.providers list "" low cluster-wide list+empty
    Names of the providers that resolve ${name:path:key} in values.
authorizer.class.name string "" low non-null
    Authorizer class; if empty, everyone is allowed everything.
early.start.listeners list - high list+empty+null
    Listeners opened before the authorizer is ready; unset means the controller listeners.
broker.rack string - medium
    Rack of this node, for replica placement and for fetching from the closest replica.
controlled.shutdown.enable boolean true medium
    Whether this node moves leadership to other brokers before it stops.
delete.topic.enable boolean true high
    Whether topics can be deleted.
compression.type string producer high cluster-wide in:uncompressed|zstd|lz4|snappy|gzip|producer
    Codec of stored batches; producer keeps the codec used by the producer.
compression.gzip.level int -1 medium cluster-wide gzip-level
    Level when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 medium cluster-wide 1..17
    Level when the broker compresses with lz4.
compression.zstd.level int 3 medium cluster-wide -131072..22
    Level when the broker compresses with zstd.
max.incremental.fetch.session.cache.slots int 1000 medium >=0
    Maximum number of fetch sessions on this node.
fetch.max.bytes int 57671680 medium >=1024
    Maximum bytes in a Fetch response, whatever the client requests.
max.request.partition.size.limit int 2000 medium >=1
    Maximum number of partitions in a DescribeTopicPartitions response.
unstable.api.versions.enable boolean false high internal
    Whether unstable request versions are served.
unstable.feature.versions.enable boolean false high internal
    Whether unstable feature levels may be set.

# Roles and the metadata log
process.roles list ! high list:broker|controller
    Roles of this node: broker, controller, or both.
node.id int ! high >=0
    Id of this node, unique in the cluster.
initial.broker.registration.timeout.ms int 60000 medium
    How long a starting broker tries to register before it stops.
broker.heartbeat.interval.ms int 2000 medium
    Interval of a broker's heartbeats to the controller.
broker.session.timeout.ms int 9000 medium
    A broker without a heartbeat for this long is fenced.
controller.listener.names list ! high list
    Names of the controller listeners; brokers connect to the first one.
sasl.mechanism.controller.protocol string GSSAPI high
    SASL mechanism for connections to controllers.
controller.performance.sample.period.ms long 60000 medium internal >=100
    Interval at which the controller logs the duration of its events.
controller.performance.always.log.threshold.ms long 2000 medium internal >=0
    Controller events slower than this are always logged.
server.max.startup.time.ms long 9223372036854775807 medium internal >=0
    A node that has not started within this time stops.
metadata.log.max.record.bytes.between.snapshots long 20971520 high >=1
    Bytes of metadata records after which a snapshot is written.
metadata.log.max.snapshot.interval.ms long 3600000 high >=0
    Maximum time between two metadata snapshots if something changed; 0 is unlimited.
metadata.log.dir string - high
    Directory of the metadata log; unset means the first log directory.
metadata.log.segment.bytes int 1073741824 high >=8388608
    Size at which a segment of the metadata log is rolled.
metadata.log.segment.ms long 604800000 high
    Age at which a segment of the metadata log is rolled.
metadata.max.retention.bytes long 104857600 high
    Maximum size of metadata log and snapshots before old ones are deleted.
metadata.max.retention.ms long 604800000 high
    Age at which old metadata segments and snapshots are deleted.
metadata.max.idle.interval.ms int 500 low >=0
    How often an idle controller writes a no-op record; 0 is never.
internal.metadata.log.segment.bytes int - low internal
    For tests: metadata segment size below the usual minimum.
internal.metadata.max.batch.size.in.bytes int 8388608 low internal
    For tests: largest batch of the metadata log.
internal.metadata.delete.delay.millis long 60000 low internal
    For tests: delay before metadata files marked as deleted are removed.

# Network
listeners list PLAINTEXT://:9092 high per-broker list
    Addresses to listen on, as NAME://host:port; an empty host is every interface.
advertised.listeners list - high list+null
    Addresses that clients connect to; unset means those of listeners.
listener.security.protocol.map string \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT low per-broker
    Security protocol of each listener, as NAME:PROTOCOL pairs.
socket.send.buffer.bytes int 102400 high
    Send buffer of server sockets; -1 is the system's default.
socket.receive.buffer.bytes int 102400 high
    Receive buffer of server sockets; -1 is the system's default.
socket.request.max.bytes int 104857600 high >=1
    Maximum size of a request.
socket.listen.backlog.size int 50 medium >=1
    Maximum number of connections waiting to be accepted.
max.connections.per.ip int 2147483647 medium cluster-wide >=0
    Maximum number of connections from one address; 0 requires overrides.
max.connections.per.ip.overrides string "" medium cluster-wide
    Limits for single addresses or hosts, as host:count pairs.
max.connections int 2147483647 medium cluster-wide >=0
    Maximum number of connections of this node, over all listeners.
max.connection.creation.rate int 2147483647 medium cluster-wide >=0
    Maximum new connections per second of this node.
connections.max.idle.ms long 600000 medium
    Connections idle for this long are closed; negative means never.
connection.failed.authentication.delay.ms int 100 low >=0
    Delay before a connection that failed to authenticate is closed.
queued.max.requests int 500 high >=1
    Maximum number of waiting requests before the node stops reading from sockets.
queued.max.request.bytes long -1 medium
    Maximum bytes of waiting requests before the node stops reading; 0 or less is unlimited.
num.network.threads int 3 high cluster-wide >=1
    Threads that read from and write to sockets.

# Replication
controller.socket.timeout.ms int 30000 medium
    Socket timeout of connections to the controller.
default.replication.factor int 1 medium
    Default replication factor of new topics.
replica.lag.time.max.ms long 30000 high
    A follower that has not caught up for this long is removed from the ISR.
replica.socket.timeout.ms int 30000 high
    Socket timeout of a follower's requests to its leader.
replica.socket.receive.buffer.bytes int 65536 high
    Receive buffer of a follower's socket.
replica.fetch.max.bytes int 1048576 medium >=0
    Bytes per partition that a follower fetches; a single larger batch is still returned.
replica.fetch.wait.max.ms int 500 high
    Maximum time a follower's fetch waits at the leader.
replica.fetch.backoff.ms int 1000 medium >=0
    Backoff after a failed fetch of a follower.
replica.fetch.min.bytes int 1 high
    Minimum bytes that a follower's fetch waits for.
replica.fetch.response.max.bytes int 10485760 medium >=0
    Maximum bytes in a response to a follower's fetch.
num.replica.fetchers int 1 high cluster-wide >=1
    Number of fetcher connections per leader node.
replica.high.watermark.checkpoint.interval.ms long 5000 high
    Interval at which high watermarks are checkpointed.
fetch.purgatory.purge.interval.requests int 1000 medium
    Number of waiting fetches after which completed ones are purged.
producer.purgatory.purge.interval.requests int 1000 medium
    Number of waiting produce requests after which completed ones are purged.
delete.records.purgatory.purge.interval.requests int 1 medium
    Number of waiting DeleteRecords requests after which completed ones are purged.
auto.leader.rebalance.enable boolean true high
    Whether leadership is returned to preferred replicas automatically.
leader.imbalance.check.interval.seconds long 300 high >=1
    Interval at which leader imbalance is checked.
unclean.leader.election.interval.ms long 300000 medium internal >=1
    Interval at which the controller checks for partitions that need an unclean election.
unclean.leader.election.enable boolean false high cluster-wide
    Whether a replica that is not in sync may become leader if no other can, which may lose records.
security.inter.broker.protocol string PLAINTEXT medium in:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL
    Security protocol between brokers, if inter.broker.listener.name is not set.
inter.broker.listener.name string - medium
    Listener for communication between brokers.
replica.selector.class string - medium
    Class that selects the replica that a consumer reads from.
follower.fetch.last.tiered.offset.enable boolean false medium cluster-wide
    Whether an empty follower starts at the leader's last tiered offset.

# Groups and their offsets
group.coordinator.rebalance.protocols list classic,consumer,streams medium list:consumer|classic|share|streams
    Group protocols that the coordinator supports.
group.coordinator.threads int 4 high >=1
    Threads of the group coordinator.
group.coordinator.background.threads int 2 high >=1
    Threads for slow group tasks such as assignors and regular expressions.
group.coordinator.append.linger.ms int -1 medium >=-1
    How long group records are collected before they are written; -1 adapts to load.
offsets.commit.timeout.ms int 5000 high >=1
    Maximum time an offset commit waits for its replicas.
offsets.load.buffer.size int 5242880 high >=1
    Bytes per read while loading group state.
offsets.topic.replication.factor short 3 high >=1
    Replication factor of __consumer_offsets; it is created once that many brokers are available.
offsets.topic.num.partitions int 50 high >=1
    Number of partitions of __consumer_offsets; must not be changed later.
offsets.topic.segment.bytes int 104857600 high >=1
    Segment size of __consumer_offsets.
offsets.topic.compression.codec int 0 high
    Codec number for __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
group.coordinator.cached.buffer.max.bytes int 1048588 medium cluster-wide >=524288
    Maximum size of a write buffer that the group coordinator reuses.
offset.metadata.max.bytes int 4096 high
    Maximum size of the metadata of a committed offset.
offsets.retention.minutes int 10080 high >=1
    How long offsets are kept after their group became empty.
offsets.retention.check.interval.ms long 600000 high >=1
    Interval at which expired offsets are removed.
group.min.session.timeout.ms int 6000 medium
    Minimum session timeout of classic group members.
group.max.session.timeout.ms int 1800000 medium
    Maximum session timeout of classic group members.
group.initial.rebalance.delay.ms int 3000 medium
    How long a new classic group waits for more members before its first assignment.
group.max.size int 2147483647 medium >=1
    Maximum number of members of a classic group.
group.consumer.session.timeout.ms int 45000 medium >=1
    Members of a consumer group without a heartbeat for this long are removed.
group.consumer.min.session.timeout.ms int 45000 medium >=1
    Minimum session timeout of a consumer group.
group.consumer.max.session.timeout.ms int 60000 medium >=1
    Maximum session timeout of a consumer group.
group.consumer.heartbeat.interval.ms int 5000 medium >=1
    How often members of a consumer group send a heartbeat.
group.consumer.min.heartbeat.interval.ms int 5000 medium >=1
    Minimum heartbeat interval of a consumer group.
group.consumer.max.heartbeat.interval.ms int 15000 medium >=1
    Maximum heartbeat interval of a consumer group.
group.consumer.max.size int 2147483647 medium >=1
    Maximum number of members of a consumer group.
group.consumer.assignors list uniform,range medium list
    Assignors for consumer groups, by name or class; the first is the default.
group.consumer.migration.policy string bidirectional medium nocase:DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL
    Allowed conversions between classic and consumer groups that have members.
group.consumer.assignment.interval.ms int 1000 medium cluster-wide >=0
    Minimum time between two assignments of a consumer group.
group.consumer.min.assignment.interval.ms int 0 medium >=0
    Minimum assignment interval of a consumer group.
group.consumer.max.assignment.interval.ms int 15000 medium >=0
    Maximum assignment interval of a consumer group.
group.consumer.regex.refresh.interval.ms int 600000 medium internal >=10000
    Interval at which subscribed regular expressions are matched against topics again.
group.share.session.timeout.ms int 45000 medium >=1
    Members of a share group without a heartbeat for this long are removed.
group.share.min.session.timeout.ms int 45000 medium >=1
    Minimum session timeout of a share group.
group.share.max.session.timeout.ms int 60000 medium >=1
    Maximum session timeout of a share group.
group.share.heartbeat.interval.ms int 5000 medium >=1
    How often members of a share group send a heartbeat.
group.share.min.heartbeat.interval.ms int 5000 medium >=1
    Minimum heartbeat interval of a share group.
group.share.max.heartbeat.interval.ms int 15000 medium >=1
    Maximum heartbeat interval of a share group.
group.share.max.size int 200 medium 1..1000
    Maximum number of members of a share group.
group.share.assignors list simple medium list
    The one assignor for share groups, by name or class.
group.share.assignment.interval.ms int 1000 medium cluster-wide >=0
    Minimum time between two assignments of a share group.
group.share.min.assignment.interval.ms int 0 medium >=0
    Minimum assignment interval of a share group.
group.share.max.assignment.interval.ms int 15000 medium >=0
    Maximum assignment interval of a share group.
group.share.initialize.retry.interval.ms int 30000 low internal >=1
    Delay before retrying to initialize share partitions.
group.streams.session.timeout.ms int 45000 medium >=1
    Members of a streams group without a heartbeat for this long are removed.
group.streams.min.session.timeout.ms int 45000 medium >=1
    Minimum session timeout of a streams group.
group.streams.max.session.timeout.ms int 60000 medium >=1
    Maximum session timeout of a streams group.
group.streams.heartbeat.interval.ms int 5000 medium >=1
    How often members of a streams group send a heartbeat.
group.streams.min.heartbeat.interval.ms int 5000 medium >=1
    Minimum heartbeat interval of a streams group.
group.streams.max.heartbeat.interval.ms int 15000 medium >=1
    Maximum heartbeat interval of a streams group.
group.streams.max.size int 2147483647 medium >=1
    Maximum number of members of a streams group.
group.streams.num.standby.replicas int 0 medium >=0
    Number of standby replicas of each streams task.
group.streams.max.standby.replicas int 2 medium >=0
    Maximum number of standby replicas of a streams group.
group.streams.initial.rebalance.delay.ms int 3000 medium >=0
    How long a new streams group waits for more members before its first assignment.
group.streams.assignment.interval.ms int 1000 medium cluster-wide >=0
    Minimum time between two assignments of a streams group.
group.streams.min.assignment.interval.ms int 0 medium >=0
    Minimum assignment interval of a streams group.
group.streams.max.assignment.interval.ms int 15000 medium >=0
    Maximum assignment interval of a streams group.

# Logs
log.cleaner.threads int 1 medium cluster-wide >=0
    Threads that compact logs.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 medium cluster-wide
    Maximum bytes per second that the cleaner reads and writes.
log.cleaner.dedupe.buffer.size long 134217728 medium cluster-wide
    Memory for deduplication, over all cleaner threads.
log.cleaner.io.buffer.size int 524288 medium cluster-wide >=0
    Memory for the cleaner's buffers, over all cleaner threads.
log.cleaner.io.buffer.load.factor double 0.9 medium cluster-wide
    Maximum load factor of the deduplication buffer, from 0 to 1.
log.cleaner.backoff.ms long 15000 medium cluster-wide >=0
    How long the cleaner sleeps if no log needs cleaning.
log.cleaner.min.cleanable.ratio double 0.5 medium cluster-wide 0..1
    Ratio of dirty log to total log above which a log is compacted.
log.cleaner.enable boolean true medium
    Whether logs are compacted.
log.cleaner.delete.retention.ms long 86400000 medium cluster-wide >=0
    How long tombstones stay in compacted logs.
log.cleaner.min.compaction.lag.ms long 0 medium cluster-wide >=0
    Records younger than this are never compacted.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 medium cluster-wide >=1
    Maximum time before records are compacted, whatever the dirty ratio.
num.partitions int 1 medium >=1
    Default number of partitions of new topics.
log.dir list /tmp/kafka-logs high list
    Directories for logs, used when log.dirs is not set.
log.dirs list - high list+null
    Directories for logs, separated by commas.
cordoned.log.dirs list "" medium per-broker list+empty+null
    Log directories that get no new replicas; * is all of them.
log.segment.bytes int 1073741824 high cluster-wide >=1048576
    Size at which a segment is rolled.
log.roll.ms long - high cluster-wide <- log.roll.ms log.roll.hours
    Age at which a segment is rolled; unset means log.roll.hours.
log.roll.hours int 168 high >=1 <- log.roll.ms log.roll.hours
    Age in hours at which a segment is rolled.
log.roll.jitter.ms long - high cluster-wide <- log.roll.jitter.ms log.roll.jitter.hours
    Maximum random time by which a segment is rolled early; unset means log.roll.jitter.hours.
log.roll.jitter.hours int 0 high >=0 <- log.roll.jitter.ms log.roll.jitter.hours
    Maximum random time, in hours, by which a segment is rolled early.
log.retention.ms long - high cluster-wide <- log.retention.ms log.retention.minutes log.retention.hours
    Age at which segments are deleted; -1 is never; unset means log.retention.minutes.
log.retention.minutes int - high <- log.retention.ms log.retention.minutes log.retention.hours
    Age in minutes at which segments are deleted; unset means log.retention.hours.
log.retention.hours int 168 high <- log.retention.ms log.retention.minutes log.retention.hours
    Age in hours at which segments are deleted; negative is never.
log.retention.bytes long -1 high cluster-wide
    Maximum size of a partition before old segments are deleted; -1 is unlimited.
log.retention.check.interval.ms long 300000 medium >=1
    Interval at which retention is checked.
log.cleanup.policy list delete medium cluster-wide list+empty:compact|delete
    Cleanup of old records: delete, compact, both, or none if empty.
log.index.size.max.bytes int 10485760 medium cluster-wide >=4
    Maximum size of a segment's offset index.
log.index.interval.bytes int 4096 medium cluster-wide >=0
    Bytes of log between two entries of the offset index.
log.flush.interval.messages long 9223372036854775807 high cluster-wide >=1
    Number of records after which a log is flushed.
log.segment.delete.delay.ms long 60000 high cluster-wide >=0
    Delay before the files of a removed segment are deleted.
log.flush.scheduler.interval.ms long 9223372036854775807 high
    Interval at which logs are checked for being due to be flushed.
log.flush.interval.ms long - high cluster-wide <- log.flush.interval.ms log.flush.scheduler.interval.ms
    Maximum time before records are flushed; unset means log.flush.scheduler.interval.ms.
log.flush.offset.checkpoint.interval.ms int 60000 high >=0
    Interval at which recovery points are checkpointed.
log.flush.start.offset.checkpoint.interval.ms int 60000 high >=0
    Interval at which log start offsets are checkpointed.
log.preallocate boolean false medium cluster-wide
    Whether new segment files are preallocated.
num.recovery.threads.per.data.dir int 2 high cluster-wide >=1
    Threads per log directory for recovery at startup and flushing at shutdown.
auto.create.topics.enable boolean true high
    Whether a request for an unknown topic creates it.
min.insync.replicas int 1 high cluster-wide >=1
    Minimum number of in-sync replicas for writes with acks=all.
log.message.timestamp.type string CreateTime medium cluster-wide in:CreateTime|LogAppendTime
    Source of record timestamps: CreateTime (the producer) or LogAppendTime (the broker).
log.message.timestamp.before.max.ms long 9223372036854775807 medium cluster-wide >=0
    Maximum time by which a record's timestamp may be before the broker's clock.
log.message.timestamp.after.max.ms long 3600000 medium cluster-wide >=0
    Maximum time by which a record's timestamp may be after the broker's clock.
create.topic.policy.class.name class - low
    Policy class that may reject new topics.
alter.config.policy.class.name class - low
    Policy class that may reject changes of configs.
log.dir.failure.timeout.ms long 30000 low >=1
    A broker stops if it cannot report a failed log directory within this time.
log.initial.task.delay.ms long 30000 low internal >=0
    Delay after startup before periodic log tasks start.

# Share groups
group.share.delivery.count.limit int 5 medium 2..10
    Maximum number of times a share group delivers a record.
group.share.max.delivery.count.limit int 10 medium 5..25
    Maximum delivery count limit of a share group.
group.share.min.delivery.count.limit int 2 medium 2..5
    Minimum delivery count limit of a share group.
group.share.record.lock.duration.ms int 30000 medium 1000..3600000
    How long the records that a share consumer acquired stay locked.
group.share.min.record.lock.duration.ms int 15000 medium 1000..30000
    Minimum record lock duration of a share group.
group.share.max.record.lock.duration.ms int 60000 medium 30000..3600000
    Maximum record lock duration of a share group.
group.share.partition.max.record.locks int 2000 medium 100..10000
    Maximum number of in-flight records of a share partition.
group.share.max.partition.max.record.locks int 4000 medium 2000..10000
    Maximum in-flight limit of a share group.
group.share.min.partition.max.record.locks int 100 medium 100..2000
    Minimum in-flight limit of a share group.
share.fetch.purgatory.purge.interval.requests int 1000 medium
    Number of waiting share fetches after which completed ones are purged.
group.share.max.share.sessions int 2000 medium >=1
    Maximum number of share sessions on this node.
group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister medium internal
    Class that stores the state of share partitions.
share.coordinator.state.topic.num.partitions int 50 high >=1
    Number of partitions of __share_group_state; must not be changed later.
share.coordinator.state.topic.replication.factor short 3 high >=1
    Replication factor of __share_group_state; it is created once that many brokers are available.
share.coordinator.state.topic.min.isr short 2 high >=1
    Minimum number of in-sync replicas for writes to __share_group_state.
share.coordinator.state.topic.segment.bytes int 104857600 high >=1
    Segment size of __share_group_state.
share.coordinator.threads int 1 medium >=1
    Threads of the share coordinator.
share.coordinator.snapshot.update.records.per.snapshot int 500 medium 0..500
    Number of updates of a share partition's state between two snapshots.
share.coordinator.load.buffer.size int 5242880 high >=1
    Bytes per read while loading share state.
share.coordinator.state.topic.compression.codec int 0 high
    Codec number for __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
share.coordinator.append.linger.ms int -1 medium >=-1
    How long share state records are collected before they are written; -1 adapts to load.
share.coordinator.write.timeout.ms int 5000 high >=1
    Maximum time a write of share state waits for its replicas.
share.coordinator.state.topic.prune.interval.ms int 300000 low internal >=1
    Interval at which obsolete share state is deleted.
share.coordinator.cold.partition.snapshot.interval.ms int 300000 low internal >=1
    Interval at which idle share partitions get a snapshot.
share.coordinator.cached.buffer.max.bytes int 1048588 medium cluster-wide >=524288
    Maximum size of a write buffer that the share coordinator reuses.

# Transactions
transaction.state.log.min.isr int 2 high >=1
    Minimum number of in-sync replicas for writes to __transaction_state.
transaction.state.log.load.buffer.size int 5242880 high >=1
    Bytes per read while loading transaction state.
transaction.state.log.replication.factor short 3 high >=1
    Replication factor of __transaction_state; it is created once that many brokers are available.
transaction.state.log.num.partitions int 50 high >=1
    Number of partitions of __transaction_state; must not be changed later.
transaction.state.log.segment.bytes int 104857600 high >=1
    Segment size of __transaction_state.
transaction.partition.verification.enable boolean true low cluster-wide
    Whether a transaction's first write to a partition is verified with the coordinator.
producer.id.expiration.ms int 86400000 low cluster-wide >=1
    How long the state of an idle producer id is kept.
producer.id.expiration.check.interval.ms int 600000 low internal >=1
    Interval at which expired producer ids are removed.
transactional.id.expiration.ms int 604800000 high >=1
    How long an unused transactional id is kept.
transaction.max.timeout.ms int 900000 high >=1
    Maximum transaction timeout of a producer.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 low >=1
    Interval at which timed out transactions are aborted.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 low >=1
    Interval at which expired transactional ids are removed.
transaction.two.phase.commit.enable boolean false low
    Whether two-phase commit is enabled.

# The quorum
controller.quorum.voters list "" high quorum-voters
    Fixed voters of the metadata quorum, as id@host:port; empty for a dynamic quorum.
controller.quorum.bootstrap.servers list "" high quorum-servers
    Addresses for discovering a dynamic quorum, as host:port.
controller.quorum.election.timeout.ms int 1000 high >=0
    How long a candidate waits for votes before it starts another election.
controller.quorum.fetch.timeout.ms int 2000 high >=0
    How long a voter waits for the leader before it starts an election, and a leader for fetches of a majority.
controller.quorum.election.backoff.max.ms int 1000 high >=0
    Maximum backoff before the next election after a lost one.
controller.quorum.append.linger.ms int 25 medium >=0
    How long the leader collects records before it writes them.
controller.quorum.request.timeout.ms int 2000 medium >=0
    Timeout of requests within the quorum.
controller.quorum.retry.backoff.ms int 20 low >=0
    Backoff before a failed request within the quorum is retried.
controller.quorum.auto.join.enable boolean false low
    Whether a controller that is not a voter joins the quorum automatically.
controller.quorum.fetch.snapshot.max.bytes int 1048576 low >=1
    Maximum bytes in a FetchSnapshot response.
controller.quorum.fetch.max.bytes int 1048576 low >=1
    Maximum bytes of the metadata log in a Fetch response.

# Metrics and quotas
metrics.num.samples int 2 low >=1
    Number of samples of each metric.
metrics.sample.window.ms long 30000 low >=1
    Duration of a sample of a metric.
metric.reporters list org.apache.kafka.common.metrics.JmxReporter low cluster-wide list+empty
    Classes that report metrics.
metrics.recording.level string INFO low
    Highest recording level of metrics: INFO, DEBUG or TRACE.
kafka.metrics.reporters list "" low list+empty
    Classes that report the older server metrics.
kafka.metrics.polling.interval.secs int 10 low >=1
    How often the older metrics reporters poll.
telemetry.max.bytes int 1048576 low >=1
    Maximum size of metrics pushed by a client.
quota.window.num int 11 low >=1
    Number of samples for client quotas.
replication.quota.window.num int 11 low >=1
    Number of samples for replication quotas.
alter.log.dirs.replication.quota.window.num int 11 low >=1
    Number of samples for quotas on moves between log directories.
controller.quota.window.num int 11 low >=1
    Number of samples for controller mutation quotas.
quota.window.size.seconds int 1 low >=1
    Duration of a sample of client quotas.
replication.quota.window.size.seconds int 1 low >=1
    Duration of a sample of replication quotas.
alter.log.dirs.replication.quota.window.size.seconds int 1 low >=1
    Duration of a sample of quotas on moves between log directories.
controller.quota.window.size.seconds int 1 low >=1
    Duration of a sample of controller mutation quotas.
client.quota.callback.class class - low
    Class that determines the quotas of clients.

# Security
connections.max.reauth.ms long 0 medium
    Time after which connections must authenticate again; 0 is never.
sasl.server.max.receive.size int 524288 medium
    Maximum size of a SASL message before authentication.
security.providers string - low
    Java security providers to register.
principal.builder.class class \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder medium per-broker
    Class that determines the principal of a connection.
ssl.client.auth string none medium per-broker in:required|requested|none
    Whether clients need a certificate: required, requested or none.
ssl.principal.mapping.rules string DEFAULT low
    Rules that map a certificate's subject to a principal name.
ssl.allow.dn.changes boolean false low
    Whether a new certificate may have another subject.
ssl.allow.san.changes boolean false low
    Whether a new certificate may lack alternative names the old one had.
ssl.protocol string TLSv1.3 medium per-broker
    Preferred TLS version.
ssl.provider string - medium per-broker
    Java provider for TLS.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium per-broker list+empty
    Accepted TLS versions.
ssl.keystore.type string JKS medium per-broker
    Format of the key store: JKS, PKCS12 or PEM.
ssl.keystore.location string - medium per-broker
    File of the key store.
ssl.keystore.password password - medium per-broker
    Password that opens the key store.
ssl.key.password password - medium per-broker
    Password of the private key.
ssl.keystore.key password - medium per-broker
    Private key, in PEM.
ssl.keystore.certificate.chain password - medium per-broker
    Certificate and its chain, in PEM.
ssl.truststore.type string JKS medium per-broker
    Format of the trust store: JKS, PKCS12 or PEM.
ssl.truststore.location string - medium per-broker
    File of the trust store.
ssl.truststore.password password - medium per-broker
    Password that opens the trust store.
ssl.truststore.certificates password - medium per-broker
    Trusted certificates, in PEM.
ssl.keymanager.algorithm string SunX509 medium per-broker
    Java algorithm of the key manager.
ssl.trustmanager.algorithm string PKIX medium per-broker
    Java algorithm of the trust manager.
ssl.endpoint.identification.algorithm string https low per-broker
    Algorithm that verifies a server's host name against its certificate; empty disables it.
ssl.secure.random.implementation string - low per-broker
    Java implementation of secure random numbers for TLS.
ssl.cipher.suites list "" medium per-broker list+empty
    Accepted cipher suites; empty means all that are supported.
ssl.engine.factory.class class - low per-broker
    Class that creates TLS engines.
sasl.mechanism.inter.broker.protocol string GSSAPI medium per-broker
    SASL mechanism between brokers.
sasl.enabled.mechanisms list GSSAPI medium per-broker list+empty
    SASL mechanisms that clients may use.
sasl.server.callback.handler.class class - medium
    Class that verifies credentials on the server.
sasl.kerberos.principal.to.local.rules list DEFAULT medium per-broker list+empty
    Rules that map a Kerberos principal to a short name.
sasl.jaas.config password - medium per-broker
    Login modules and their options; usually set per listener and mechanism.
sasl.client.callback.handler.class class - medium
    Class that supplies credentials on the client.
sasl.login.class class - medium
    Class that performs the login.
sasl.login.callback.handler.class class - medium
    Class that supplies credentials for the login.
sasl.kerberos.service.name string - medium per-broker
    Kerberos service name of the brokers.
sasl.kerberos.kinit.cmd string /usr/bin/kinit medium per-broker
    Path of the kinit command.
sasl.kerberos.ticket.renew.window.factor double 0.8 medium per-broker
    Fraction of a Kerberos ticket's lifetime after which it is renewed.
sasl.kerberos.ticket.renew.jitter double 0.05 medium per-broker
    Random variation of a ticket's renewal time, as a fraction.
sasl.kerberos.min.time.before.relogin long 60000 medium per-broker
    Minimum time between two Kerberos logins.
sasl.login.refresh.window.factor double 0.8 medium per-broker
    Fraction of a token's lifetime after which it is refreshed.
sasl.login.refresh.window.jitter double 0.05 medium per-broker
    Random variation of a token's refresh time, as a fraction.
sasl.login.refresh.min.period.seconds short 60 medium per-broker
    Minimum time before a token is refreshed.
sasl.login.refresh.buffer.seconds short 300 medium per-broker
    Minimum time between a token's refresh and its expiration.
sasl.login.connect.timeout.ms int - low
    Timeout for connecting to the token service.
sasl.login.read.timeout.ms int - low
    Timeout for a response of the token service.
sasl.login.retry.backoff.max.ms long 10000 low
    Maximum backoff between login attempts.
sasl.login.retry.backoff.ms long 100 low
    Initial backoff between login attempts.
sasl.oauthbearer.jwt.retriever.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever medium
    Class that obtains tokens.
sasl.oauthbearer.jwt.validator.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator medium
    Class that validates tokens.
sasl.oauthbearer.scope string - medium
    Requested scope of tokens.
sasl.oauthbearer.client.credentials.client.id string - medium
    Client id for the token service.
sasl.oauthbearer.client.credentials.client.secret password - medium
    Client secret for the token service.
sasl.oauthbearer.assertion.algorithm string RS256 medium nocase:ES256|RS256
    Signature algorithm of assertions sent to the token service.
sasl.oauthbearer.assertion.claim.aud string - medium
    Audience claim of assertions.
sasl.oauthbearer.assertion.claim.exp.seconds int 300 low 0..86400
    How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss string - medium
    Issuer claim of assertions.
sasl.oauthbearer.assertion.claim.jti.include boolean false medium
    Whether assertions contain a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 low 0..3600
    How long before its creation an assertion is already valid.
sasl.oauthbearer.assertion.claim.sub string - medium
    Subject claim of assertions.
sasl.oauthbearer.assertion.file string - medium
    File with a complete assertion.
sasl.oauthbearer.assertion.private.key.file string - medium
    File of the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase password - medium
    Passphrase of the key that signs assertions.
sasl.oauthbearer.assertion.template.file string - medium
    File with headers and claims for assertions.
sasl.oauthbearer.scope.claim.name string scope low
    Name of the token's scope claim.
sasl.oauthbearer.sub.claim.name string sub low
    Name of the token's subject claim.
sasl.oauthbearer.token.endpoint.url string - medium
    URL of the token service.
sasl.oauthbearer.jwks.endpoint.url string - medium
    URL of the keys that verify tokens.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 low
    Interval at which the keys that verify tokens are refreshed.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 low
    Initial backoff between attempts to fetch keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 low
    Maximum backoff between attempts to fetch keys.
sasl.oauthbearer.clock.skew.seconds int 30 low
    Tolerated clock difference when tokens are validated.
sasl.oauthbearer.expected.audience list "" high list+empty
    Accepted audiences of tokens; empty disables the check.
sasl.oauthbearer.expected.issuer string - high
    Required issuer of tokens; unset disables the check.
delegation.token.secret.key password - medium
    Secret that signs delegation tokens, equal on all nodes; unset disables them.
delegation.token.max.lifetime.ms long 604800000 medium >=1
    Maximum lifetime of a delegation token, even if renewed.
delegation.token.expiry.time.ms long 86400000 medium >=1
    Lifetime of a delegation token before it must be renewed.
delegation.token.expiry.check.interval.ms long 3600000 low >=1
    Interval at which expired delegation tokens are removed.
add.partitions.to.txn.retry.backoff.max.ms int 100 high >=0
    Maximum backoff before retrying to add partitions to a transaction.
add.partitions.to.txn.retry.backoff.ms int 20 high >=1
    Initial backoff before retrying to add partitions to a transaction.

# barnabas
barnabas.audit.log.path string "" low
    File of the audit log: one JSON line for each request that changes something or is denied; empty for none.
barnabas.audit.log.data boolean false low
    Whether the audit log also has the requests of producers and consumers that write.
barnabas.audit.log.max.bytes long 67108864 low >=4096
    Size at which the file of the audit log is rotated.
barnabas.audit.log.max.files int 10 low >=1
    Number of files of the audit log, with the current one; the oldest is deleted.
barnabas.audit.log.queue.max.bytes long 16777216 low >=65536
    Memory for lines of the audit log that are not written yet; lines beyond it are dropped and counted.
barnabas.faults.listener string "" low only-loopback-address
    HTTP address where tests set fault rules: host:port of this machine, or :port for 127.0.0.1; empty for none.
barnabas.metrics.listener string "" low loopback-address
    HTTP address of metrics in Prometheus' format and of health checks: host:port, or :port for 127.0.0.1; empty for none.
barnabas.metrics.max.groups int 500 low >=0
    Maximum number of groups with metrics of their own.
barnabas.metrics.max.partitions int 2000 low >=0
    Maximum number of partitions, and of committed offsets, with metrics of their own.
barnabas.metrics.max.topics int 1000 low >=0
    Maximum number of topics with metrics of their own.
barnabas.telemetry.receiver string "" low in:|log
    Receiver of metrics that clients push: log (a log line), or empty to discard them.
barnabas.telemetry.memory.max.bytes long 67108864 low >=0
    Memory for the clients that push metrics; those that were silent for longest are forgotten beyond it.
barnabas.quota.memory.max.bytes long 16777216 low >=0
    Memory for the clients that quotas are counted for; those that were silent for longest are forgotten beyond it.
barnabas.fetch.session.max.partitions long 1000000 low >=0
    Maximum number of partitions in all fetch sessions; a fetcher beyond it gets no session.
barnabas.share.session.max.partitions long 1000000 low >=0
    Maximum number of partitions in all share sessions; a member beyond it gets SHARE_SESSION_LIMIT_REACHED.
barnabas.groups.max.count int 250000 low >=0
    Maximum number of groups that a broker coordinates; new ones beyond it are refused.
barnabas.groups.max.member.bytes long 268435456 low >=0
    Memory for the members of all groups that a broker coordinates; new ones beyond it are refused.
barnabas.groups.max.regular.expressions int 10000 low >=0
    Maximum number of regular expressions in subscriptions that a broker coordinates; new ones beyond it are refused.
barnabas.producer.ids.max.per.partition int 100000 low >=1
    Maximum number of producer ids that a partition remembers; idle ones are forgotten first.
barnabas.request.memory.max.bytes long 536870912 low
    Memory for all requests, above which connections are read one after another; 0 or less disables it.
barnabas.request.stall.ms long 10000 low >=1
    Time after which a connection without progress in its request is closed while memory is short.
barnabas.response.memory.max.bytes long 536870912 low
    Memory for unread responses, above which the connection with most of it is closed; 0 or less disables it.
barnabas.decompressed.batch.max.bytes long 134217728 low >=1048576
    Maximum size of the records of a compressed batch that has to be decompressed; larger batches are refused.
barnabas.decompressed.batches.max.count int 2 low >=1
    Maximum number of large batches that are decompressed in memory at the same time; others wait.
barnabas.transactional.ids.max.count int 1000000 low >=0
    Maximum number of transactional ids that a broker coordinates; new ones wait beyond it.
barnabas.transactions.max.open int 100000 low >=0
    Maximum number of ongoing transactions that a broker coordinates; new ones wait beyond it.
"""

_DYNAMIC_TABLE = """\
leader.replication.throttled.rate long 9223372036854775807 medium cluster-wide >=0
    Maximum bytes per second that leaders send to throttled followers.
follower.replication.throttled.rate long 9223372036854775807 medium cluster-wide >=0
    Maximum bytes per second that throttled followers fetch.
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=0
    Maximum bytes per second for moving replicas between log directories.
"""
