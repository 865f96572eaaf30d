"""The settings of a broker or controller, and the checks of a change to them while it runs.

Every setting of Kafka 4.3 is here, whether barnabas acts on it or not, so that a server.properties is read as Kafka
reads it; barnabas' own begin with `barnabas.`. Checks that look at several settings are in `server`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from barnabas.config.definitions import ConfigError, Definition, UpdateMode, parse_table
from barnabas.config.hash_order import hash_order
from barnabas.wire.errors import ErrorCode

# Settings of the authorizer, which Kafka keeps outside of its table: known, and of no type.
AUTHORIZER_SETTINGS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
_PLUGIN_PREFIXES = ("config.providers.", "rlmm.config.", "rsm.config.", "metrics.context.", "client.quota.callback.")

_LISTENER_SETTING = r"listener\.name\.[^.]*\.(.*)"
# Set per mechanism as well: listener.name.<listener>.<mechanism>.<setting>.
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
    """The settings a server.properties may hold."""
    return parse_table(_TABLE)


@cache
def dynamic_definitions() -> Mapping[str, Definition]:
    """The settings that only exist as changes to a running broker: its replication throttles."""
    return parse_table(_DYNAMIC_TABLE)


def find(name: str) -> Definition | None:
    """The definition of a setting, also under a listener's prefix; None when the name means nothing."""
    return definitions().get(base_name(name)) or dynamic_definitions().get(name)


def is_sensitive(name: str) -> bool:
    """Whether the value is hidden, as Kafka hides it: a password, or a setting that nobody knows and that so might be one."""
    definition = find(name)
    return definition is None or definition.sensitive


def base_name(name: str) -> str:
    """The name without the prefix of a listener and mechanism, if it has one."""
    match = re.fullmatch(_LISTENER_SETTING, name)
    if match is None:
        return name
    return next((setting for setting in _MECHANISM_SETTINGS if match[1].endswith(setting)), match[1])


def synonym_names(name: str) -> tuple[str, ...]:
    """The names looked at for this setting, in order; the setting itself is among them."""
    definition = definitions().get(name)
    if definition is not None and definition.synonyms:
        return tuple(synonym.name for synonym in definition.synonyms)
    base = base_name(name)
    return (name,) if base == name else (name, base)


def is_known(name: str) -> bool:
    """Whether a key of server.properties means something to a node, its authorizer or one of its plugins."""
    return (
        name in definitions() or name in AUTHORIZER_SETTINGS or name.startswith(("listener.name.", *_PLUGIN_PREFIXES))
    )


def validate_dynamic(configs: Mapping[str, str | None], *, cluster_wide: bool) -> None:
    """Check a change to one running broker, or to all of them; raises `ConfigError`. Unknown names pass, as in Kafka."""

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
    """What counts of the texts that were stored for one broker, or for all: a controller stores more than a broker takes."""

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
    Keys with this prefix are handed to the remote storage plugin.
remote.log.metadata.manager.impl.prefix string rlmm.config. medium non-empty
    Keys with this prefix are handed to the plugin for remote segment metadata.
remote.log.storage.manager.class.name string - medium non-empty
    Class of the plugin that stores remote segments.
remote.log.storage.manager.class.path string - medium
    Where the remote storage plugin's classes are found.
remote.log.metadata.manager.class.name string \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager medium non-empty
    Class of the plugin that records what remote storage holds.
remote.log.metadata.manager.class.path string - medium
    Where the classes of the remote metadata plugin are found.
remote.log.metadata.manager.listener.name string - medium non-empty
    Broker listener by which the remote metadata plugin connects.
remote.log.metadata.custom.metadata.max.bytes int 128 low >=0
    Largest note, in bytes, that the storage plugin may attach to a remote segment.
remote.log.index.file.cache.total.size.bytes long 1073741824 low cluster-wide >=1
    Disk space for index files fetched back from remote storage.
remote.log.index.file.cache.ttl.ms long 900000 low internal >=-1
    How long an unused index file of a remote segment stays cached; -1 is forever.
remote.log.manager.thread.pool.size int 2 medium >=1
    Threads for remote work that has no pool of its own.
remote.log.manager.copier.thread.pool.size int 10 medium cluster-wide >=1
    Threads that copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size int 10 medium cluster-wide >=1
    Threads that delete expired remote segments.
remote.log.manager.follower.thread.pool.size int 2 medium cluster-wide >=1
    Threads that follow remote state for partitions led elsewhere.
remote.log.manager.task.interval.ms long 30000 low >=1
    Pause between two rounds of copying and cleaning remote segments.
remote.log.manager.task.retry.backoff.ms long 500 low internal >=1
    First pause after remote work fails.
remote.log.manager.task.retry.backoff.max.ms long 30000 low internal >=1
    Longest pause between retries of remote work.
remote.log.manager.task.retry.jitter double 0.2 low internal 0..0.5
    Share by which a retry pause is varied at random.
remote.log.reader.threads int 10 medium cluster-wide >=1
    Threads that read from remote storage for fetches.
remote.log.reader.max.pending.tasks int 100 medium >=1
    Remote reads that may wait before further ones are turned away.
log.local.retention.ms long -2 medium cluster-wide >=-2
    How long tiered topics keep segments on local disk; -2 follows the topic's retention.ms.
log.local.retention.bytes long -2 medium cluster-wide >=-2
    Bytes of a tiered partition kept on local disk; -2 follows the topic's retention.bytes.
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=1
    Ceiling on bytes a second sent to remote storage.
remote.log.manager.copy.quota.window.num int 11 medium >=1
    Samples over which the copy rate is measured.
remote.log.manager.copy.quota.window.size.seconds int 1 medium >=1
    Length of one sample of the copy rate.
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=1
    Ceiling on bytes a second read from remote storage.
remote.log.manager.fetch.quota.window.num int 11 medium >=1
    Samples over which the remote read rate is measured.
remote.log.manager.fetch.quota.window.size.seconds int 1 medium >=1
    Length of one sample of the remote read rate.
remote.fetch.max.wait.ms int 500 medium cluster-wide >=1
    Longest wait of a fetch for remote data.
remote.list.offsets.request.timeout.ms long 30000 medium cluster-wide >=1
    Longest wait of ListOffsets for an answer from remote storage.

# The server
broker.id int -1 high
    Older name of node.id; if both are given they must agree.
message.max.bytes int 1048588 high cluster-wide >=0
    Largest record batch a topic accepts unless it sets its own limit.
num.io.threads int 8 high cluster-wide >=1
    Threads that handle requests.
num.replica.alter.log.dirs.threads int - high
    Threads for moving replicas from one log directory to another; unset is one per directory.
background.threads int 10 high cluster-wide >=1
    Threads for background chores such as deleting files.
request.timeout.ms int 30000 high
    How long this node waits for the answer to a request it sent.
socket.connection.setup.timeout.ms long 10000 medium
    First limit on the time to open a connection; it grows with each failure.
socket.connection.setup.timeout.max.ms long 30000 medium
    Upper bound of the growing limit on the time to open a connection.
config.providers list "" low cluster-wide list+empty
    Names of the providers that resolve ${name:path:key} in values.
authorizer.class.name string "" low non-null
    Class that decides who may do what; empty lets everyone do everything.
early.start.listeners list - high list+empty+null
    Listeners opened before the authorizer is ready; unset means the controller listeners.
broker.rack string - medium
    Rack or zone of this node, for placing replicas and for reading from the nearest one.
controlled.shutdown.enable boolean true medium
    Whether leadership is handed over before this node stops.
delete.topic.enable boolean true high
    Whether topics can be deleted.
compression.type string producer high cluster-wide in:uncompressed|zstd|lz4|snappy|gzip|producer
    Codec in which topics store batches; producer keeps what was sent.
compression.gzip.level int -1 medium cluster-wide gzip-level
    Level when the broker compresses with gzip; -1 is the codec's own default.
compression.lz4.level int 9 medium cluster-wide 1..17
    Level when the broker compresses with lz4.
compression.zstd.level int 3 medium cluster-wide -131072..22
    Level when the broker compresses with zstd.
max.incremental.fetch.session.cache.slots int 1000 medium >=0
    Fetch sessions this node remembers at once.
fetch.max.bytes int 57671680 medium >=1024
    Most bytes in one fetch answer, whatever the client asks for.
max.request.partition.size.limit int 2000 medium >=1
    Most partitions in one answer to DescribeTopicPartitions.
unstable.api.versions.enable boolean false high internal
    Whether unfinished versions of requests are served.
unstable.feature.versions.enable boolean false high internal
    Whether unfinished levels of cluster features may be chosen.

# Roles and the metadata log
process.roles list ! high list:broker|controller
    Roles of this node: broker, controller, or both.
node.id int ! high >=0
    Number of this node, unique in the cluster.
initial.broker.registration.timeout.ms int 60000 medium
    How long a starting broker tries to register before it gives up.
broker.heartbeat.interval.ms int 2000 medium
    Pause between a broker's heartbeats to the controller.
broker.session.timeout.ms int 9000 medium
    A broker silent for this long is fenced.
controller.listener.names list ! high list
    Listeners for controllers; a broker reaches the controllers by the first.
sasl.mechanism.controller.protocol string GSSAPI high
    SASL mechanism by which this node logs in at controllers.
controller.performance.sample.period.ms long 60000 medium internal >=100
    How often the controller reports how long its events took.
controller.performance.always.log.threshold.ms long 2000 medium internal >=0
    Controller events slower than this are always logged.
server.max.startup.time.ms long 9223372036854775807 medium internal >=0
    A node that is not up within this time gives up.
metadata.log.max.record.bytes.between.snapshots long 20971520 high >=1
    Bytes of new metadata records that call for a snapshot.
metadata.log.max.snapshot.interval.ms long 3600000 high >=0
    Longest time between two metadata snapshots when something changed; 0 is no limit.
metadata.log.dir string - high
    Directory of the metadata log; unset means the first log directory.
metadata.log.segment.bytes int 1073741824 high >=8388608
    Size at which a segment of the metadata log is closed.
metadata.log.segment.ms long 604800000 high
    Age at which a segment of the metadata log is closed.
metadata.max.retention.bytes long 104857600 high
    Size of metadata log and snapshots beyond which old ones are deleted.
metadata.max.retention.ms long 604800000 high
    Age beyond which old metadata segments and snapshots are deleted.
metadata.max.idle.interval.ms int 500 low >=0
    How often an idle controller writes a no-op record; 0 is never.
internal.metadata.log.segment.bytes int - low internal
    For tests: metadata segment size below the usual minimum.
internal.metadata.max.batch.size.in.bytes int 8388608 low internal
    For tests: largest batch of the metadata log.
internal.metadata.delete.delay.millis long 60000 low internal
    For tests: pause before metadata files marked as deleted go.

# Network
listeners list PLAINTEXT://:9092 high per-broker list
    Addresses to listen on, as NAME://host:port; an empty host is every interface.
advertised.listeners list - high list+null
    Addresses that clients are told; unset means those of listeners.
listener.security.protocol.map string \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT low per-broker
    Security protocol of each listener, as NAME:PROTOCOL pairs.
socket.send.buffer.bytes int 102400 high
    Send buffer of server sockets; -1 leaves it to the system.
socket.receive.buffer.bytes int 102400 high
    Receive buffer of server sockets; -1 leaves it to the system.
socket.request.max.bytes int 104857600 high >=1
    Largest request a socket accepts.
socket.listen.backlog.size int 50 medium >=1
    Connections that may wait to be accepted.
max.connections.per.ip int 2147483647 medium cluster-wide >=0
    Connections allowed from one address; 0 needs overrides.
max.connections.per.ip.overrides string "" medium cluster-wide
    Limits for single addresses or hosts, as host:count pairs.
max.connections int 2147483647 medium cluster-wide >=0
    Connections this node accepts at once, over all listeners.
max.connection.creation.rate int 2147483647 medium cluster-wide >=0
    New connections a second this node accepts.
connections.max.idle.ms long 600000 medium
    Connections without traffic for this long are closed; negative is never.
connection.failed.authentication.delay.ms int 100 low >=0
    Pause before a connection that failed to authenticate is closed.
queued.max.requests int 500 high >=1
    Requests that may wait for a handler before reading from sockets stops.
queued.max.request.bytes long -1 medium
    Bytes of waiting requests before reading stops; 0 or less is no limit.
num.network.threads int 3 high cluster-wide >=1
    Threads that read from and write to sockets.

# Replication
controller.socket.timeout.ms int 30000 medium
    Socket timeout towards the controller.
default.replication.factor int 1 medium
    Replicas of a topic created without saying how many.
replica.lag.time.max.ms long 30000 high
    A follower that has not caught up for this long leaves the in-sync set.
replica.socket.timeout.ms int 30000 high
    Socket timeout of a follower's requests to its leader.
replica.socket.receive.buffer.bytes int 65536 high
    Receive buffer of a follower's socket.
replica.fetch.max.bytes int 1048576 medium >=0
    Bytes per partition a follower asks for; one larger batch still passes.
replica.fetch.wait.max.ms int 500 high
    Longest wait of a follower's fetch at the leader.
replica.fetch.backoff.ms int 1000 medium >=0
    Pause after a failed follower fetch.
replica.fetch.min.bytes int 1 high
    Bytes a follower's fetch waits for.
replica.fetch.response.max.bytes int 10485760 medium >=0
    Most bytes in one answer to a follower's fetch.
num.replica.fetchers int 1 high cluster-wide >=1
    Connections for following, per leader node.
replica.high.watermark.checkpoint.interval.ms long 5000 high
    How often high watermarks are written to disk.
fetch.purgatory.purge.interval.requests int 1000 medium
    Waiting fetches after which finished ones are cleared away.
producer.purgatory.purge.interval.requests int 1000 medium
    Waiting produce requests after which finished ones are cleared away.
delete.records.purgatory.purge.interval.requests int 1 medium
    Waiting DeleteRecords requests after which finished ones are cleared away.
auto.leader.rebalance.enable boolean true high
    Whether leadership returns to preferred replicas by itself.
leader.imbalance.check.interval.seconds long 300 high >=1
    How often leadership away from preferred replicas is looked for.
unclean.leader.election.interval.ms long 300000 medium internal >=1
    How often the controller looks for partitions that only an unclean election can help.
unclean.leader.election.enable boolean false high cluster-wide
    Whether a replica outside the in-sync set may lead when no other can, losing records.
security.inter.broker.protocol string PLAINTEXT medium in:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL
    Security protocol between brokers, when no listener is named for it.
inter.broker.listener.name string - medium
    Listener brokers use among themselves.
replica.selector.class string - medium
    Class that picks the replica a consumer should read from.
follower.fetch.last.tiered.offset.enable boolean false medium cluster-wide
    Whether an empty follower begins at the leader's last tiered offset.

# Groups and their offsets
group.coordinator.rebalance.protocols list classic,consumer,streams medium list:consumer|classic|share|streams
    Kinds of groups the coordinator serves.
group.coordinator.threads int 4 high >=1
    Threads of the group coordinator.
group.coordinator.background.threads int 2 high >=1
    Threads for slow group work such as assignors and regular expressions.
group.coordinator.append.linger.ms int -1 medium >=-1
    How long group records wait to be written together; -1 adapts to load.
offsets.commit.timeout.ms int 5000 high >=1
    How long an offset commit waits for its replicas.
offsets.load.buffer.size int 5242880 high >=1
    Bytes per read when loading group state.
offsets.topic.replication.factor short 3 high >=1
    Replicas of __consumer_offsets; its creation waits for that many brokers.
offsets.topic.num.partitions int 50 high >=1
    Partitions of __consumer_offsets; not to be changed later.
offsets.topic.segment.bytes int 104857600 high >=1
    Segment size of __consumer_offsets.
offsets.topic.compression.codec int 0 high
    Codec number for __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
group.coordinator.cached.buffer.max.bytes int 1048588 medium cluster-wide >=524288
    Largest write buffer that the group coordinator keeps for reuse.
offset.metadata.max.bytes int 4096 high
    Longest note allowed with a committed offset.
offsets.retention.minutes int 10080 high >=1
    How long offsets outlive the last member of their group.
offsets.retention.check.interval.ms long 600000 high >=1
    How often expired offsets are looked for.
group.min.session.timeout.ms int 6000 medium
    Shortest session a classic group member may ask for.
group.max.session.timeout.ms int 1800000 medium
    Longest session a classic group member may ask for.
group.initial.rebalance.delay.ms int 3000 medium
    How long a new classic group waits for more members before its first assignment.
group.max.size int 2147483647 medium >=1
    Most members of a classic group.
group.consumer.session.timeout.ms int 45000 medium >=1
    Consumer group members silent for this long are removed.
group.consumer.min.session.timeout.ms int 45000 medium >=1
    Smallest session timeout a consumer group may set.
group.consumer.max.session.timeout.ms int 60000 medium >=1
    Largest session timeout a consumer group may set.
group.consumer.heartbeat.interval.ms int 5000 medium >=1
    How often members of a consumer group send a heartbeat.
group.consumer.min.heartbeat.interval.ms int 5000 medium >=1
    Smallest heartbeat interval a consumer group may set.
group.consumer.max.heartbeat.interval.ms int 15000 medium >=1
    Largest heartbeat interval a consumer group may set.
group.consumer.max.size int 2147483647 medium >=1
    Most members of a consumer group.
group.consumer.assignors list uniform,range medium list
    Assignors for consumer groups, by name or class; the first is used unless a member asks otherwise.
group.consumer.migration.policy string bidirectional medium nocase:DISABLED|DOWNGRADE|UPGRADE|BIDIRECTIONAL
    Which conversions between classic and consumer groups with members are allowed.
group.consumer.assignment.interval.ms int 1000 medium cluster-wide >=0
    Shortest time between two assignments of a consumer group.
group.consumer.min.assignment.interval.ms int 0 medium >=0
    Smallest assignment interval a consumer group may set.
group.consumer.max.assignment.interval.ms int 15000 medium >=0
    Largest assignment interval a consumer group may set.
group.consumer.regex.refresh.interval.ms int 600000 medium internal >=10000
    How often subscriptions by regular expression are matched against topics again.
group.share.session.timeout.ms int 45000 medium >=1
    Share group members silent for this long are removed.
group.share.min.session.timeout.ms int 45000 medium >=1
    Smallest session timeout a share group may set.
group.share.max.session.timeout.ms int 60000 medium >=1
    Largest session timeout a share group may set.
group.share.heartbeat.interval.ms int 5000 medium >=1
    How often members of a share group send a heartbeat.
group.share.min.heartbeat.interval.ms int 5000 medium >=1
    Smallest heartbeat interval a share group may set.
group.share.max.heartbeat.interval.ms int 15000 medium >=1
    Largest heartbeat interval a share group may set.
group.share.max.size int 200 medium 1..1000
    Most members of a share group.
group.share.assignors list simple medium list
    The one assignor for share groups, by name or class.
group.share.assignment.interval.ms int 1000 medium cluster-wide >=0
    Shortest time between two assignments of a share group.
group.share.min.assignment.interval.ms int 0 medium >=0
    Smallest assignment interval a share group may set.
group.share.max.assignment.interval.ms int 15000 medium >=0
    Largest assignment interval a share group may set.
group.share.initialize.retry.interval.ms int 30000 low internal >=1
    Pause before initializing share partitions is tried again.
group.streams.session.timeout.ms int 45000 medium >=1
    Streams group members silent for this long are removed.
group.streams.min.session.timeout.ms int 45000 medium >=1
    Smallest session timeout a streams group may set.
group.streams.max.session.timeout.ms int 60000 medium >=1
    Largest session timeout a streams group may set.
group.streams.heartbeat.interval.ms int 5000 medium >=1
    How often members of a streams group send a heartbeat.
group.streams.min.heartbeat.interval.ms int 5000 medium >=1
    Smallest heartbeat interval a streams group may set.
group.streams.max.heartbeat.interval.ms int 15000 medium >=1
    Largest heartbeat interval a streams group may set.
group.streams.max.size int 2147483647 medium >=1
    Most members of a streams group.
group.streams.num.standby.replicas int 0 medium >=0
    Standby copies of each streams task.
group.streams.max.standby.replicas int 2 medium >=0
    Most standby copies a streams group may set.
group.streams.initial.rebalance.delay.ms int 3000 medium >=0
    How long a new streams group waits for more members before its first assignment.
group.streams.assignment.interval.ms int 1000 medium cluster-wide >=0
    Shortest time between two assignments of a streams group.
group.streams.min.assignment.interval.ms int 0 medium >=0
    Smallest assignment interval a streams group may set.
group.streams.max.assignment.interval.ms int 15000 medium >=0
    Largest assignment interval a streams group may set.

# Logs
log.cleaner.threads int 1 medium cluster-wide >=0
    Threads that compact logs.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 medium cluster-wide
    Ceiling on the cleaner's reading and writing, in bytes a second.
log.cleaner.dedupe.buffer.size long 134217728 medium cluster-wide
    Memory for finding duplicate keys, over all cleaner threads.
log.cleaner.io.buffer.size int 524288 medium cluster-wide >=0
    Memory for the cleaner's buffers, over all cleaner threads.
log.cleaner.io.buffer.load.factor double 0.9 medium cluster-wide
    How full the duplicate finder may get, from 0 to 1.
log.cleaner.backoff.ms long 15000 medium cluster-wide >=0
    Pause of the cleaner when there is nothing to do.
log.cleaner.min.cleanable.ratio double 0.5 medium cluster-wide 0..1
    Share of uncleaned log at which a log is worth compacting.
log.cleaner.enable boolean true medium
    Whether logs are compacted at all.
log.cleaner.delete.retention.ms long 86400000 medium cluster-wide >=0
    How long tombstones stay in compacted logs.
log.cleaner.min.compaction.lag.ms long 0 medium cluster-wide >=0
    Records younger than this are never compacted.
log.cleaner.max.compaction.lag.ms long 9223372036854775807 medium cluster-wide >=1
    Records older than this are compacted even if little else calls for it.
num.partitions int 1 medium >=1
    Partitions of a topic created without saying how many.
log.dir list /tmp/kafka-logs high list
    Directories for logs, used when log.dirs is not set.
log.dirs list - high list+null
    Directories for logs, separated by commas.
cordoned.log.dirs list "" medium per-broker list+empty+null
    Log directories that get no new replicas; * is all of them.
log.segment.bytes int 1073741824 high cluster-wide >=1048576
    Size at which a segment is closed.
log.roll.ms long - high cluster-wide <- log.roll.ms log.roll.hours
    Age at which a segment is closed; unset means log.roll.hours.
log.roll.hours int 168 high >=1 <- log.roll.ms log.roll.hours
    Age in hours at which a segment is closed.
log.roll.jitter.ms long - high cluster-wide <- log.roll.jitter.ms log.roll.jitter.hours
    Most that a segment's closing is brought forward at random; unset means log.roll.jitter.hours.
log.roll.jitter.hours int 0 high >=0 <- log.roll.jitter.ms log.roll.jitter.hours
    Most, in hours, that a segment's closing is brought forward at random.
log.retention.ms long - high cluster-wide <- log.retention.ms log.retention.minutes log.retention.hours
    Age at which segments are deleted; -1 is never; unset means log.retention.minutes.
log.retention.minutes int - high <- log.retention.ms log.retention.minutes log.retention.hours
    Age in minutes at which segments are deleted; unset means log.retention.hours.
log.retention.hours int 168 high <- log.retention.ms log.retention.minutes log.retention.hours
    Age in hours at which segments are deleted; negative is never.
log.retention.bytes long -1 high cluster-wide
    Size of a partition beyond which old segments are deleted; -1 is no limit.
log.retention.check.interval.ms long 300000 medium >=1
    How often segments to delete are looked for.
log.cleanup.policy list delete medium cluster-wide list+empty:compact|delete
    What happens to old records: delete, compact, both, or nothing when empty.
log.index.size.max.bytes int 10485760 medium cluster-wide >=4
    Largest offset index of a segment.
log.index.interval.bytes int 4096 medium cluster-wide >=0
    Bytes of log between two entries of the offset index.
log.flush.interval.messages long 9223372036854775807 high cluster-wide >=1
    Records after which a log is forced to disk.
log.segment.delete.delay.ms long 60000 high cluster-wide >=0
    Pause between taking a segment out of the log and deleting its files.
log.flush.scheduler.interval.ms long 9223372036854775807 high
    How often the need to force logs to disk is looked at.
log.flush.interval.ms long - high cluster-wide <- log.flush.interval.ms log.flush.scheduler.interval.ms
    Longest time records wait to be forced to disk; unset means log.flush.scheduler.interval.ms.
log.flush.offset.checkpoint.interval.ms int 60000 high >=0
    How often it is recorded up to where logs are safely on disk.
log.flush.start.offset.checkpoint.interval.ms int 60000 high >=0
    How often the log start offsets are recorded.
log.preallocate boolean false medium cluster-wide
    Whether new segment files get their full size at once.
num.recovery.threads.per.data.dir int 2 high cluster-wide >=1
    Threads per log directory for loading at start and flushing at stop.
auto.create.topics.enable boolean true high
    Whether asking for an unknown topic may create it.
min.insync.replicas int 1 high cluster-wide >=1
    In-sync replicas without which acks=all is refused.
log.message.timestamp.type string CreateTime medium cluster-wide in:CreateTime|LogAppendTime
    Whose time a record carries: CreateTime, or LogAppendTime for the broker's clock.
log.message.timestamp.before.max.ms long 9223372036854775807 medium cluster-wide >=0
    How far a record's time may lie behind the broker's clock.
log.message.timestamp.after.max.ms long 3600000 medium cluster-wide >=0
    How far a record's time may lie ahead of the broker's clock.
create.topic.policy.class.name class - low
    Class that may refuse a new topic.
alter.config.policy.class.name class - low
    Class that may refuse a change of settings.
log.dir.failure.timeout.ms long 30000 low >=1
    A broker stops if it cannot report a failed log directory within this time.
log.initial.task.delay.ms long 30000 low internal >=0
    Pause after start before the periodic log tasks begin.

# Share groups
group.share.delivery.count.limit int 5 medium 2..10
    Times a record is delivered before a share group gives it up.
group.share.max.delivery.count.limit int 10 medium 5..25
    Largest delivery limit a share group may set.
group.share.min.delivery.count.limit int 2 medium 2..5
    Smallest delivery limit a share group may set.
group.share.record.lock.duration.ms int 30000 medium 1000..3600000
    How long a share consumer holds the records it acquired.
group.share.min.record.lock.duration.ms int 15000 medium 1000..30000
    Shortest lock a share group may set.
group.share.max.record.lock.duration.ms int 60000 medium 30000..3600000
    Longest lock a share group may set.
group.share.partition.max.record.locks int 2000 medium 100..10000
    Records of a share partition that may be in flight.
group.share.max.partition.max.record.locks int 4000 medium 2000..10000
    Largest in-flight limit a share group may set.
group.share.min.partition.max.record.locks int 100 medium 100..2000
    Smallest in-flight limit a share group may set.
share.fetch.purgatory.purge.interval.requests int 1000 medium
    Waiting share fetches after which finished ones are cleared away.
group.share.max.share.sessions int 2000 medium >=1
    Share sessions this node remembers at once.
group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister medium internal
    Class that stores the state of share partitions.
share.coordinator.state.topic.num.partitions int 50 high >=1
    Partitions of __share_group_state; not to be changed later.
share.coordinator.state.topic.replication.factor short 3 high >=1
    Replicas of __share_group_state; its creation waits for that many brokers.
share.coordinator.state.topic.min.isr short 2 high >=1
    In-sync replicas that __share_group_state needs for a write.
share.coordinator.state.topic.segment.bytes int 104857600 high >=1
    Segment size of __share_group_state.
share.coordinator.threads int 1 medium >=1
    Threads of the share coordinator.
share.coordinator.snapshot.update.records.per.snapshot int 500 medium 0..500
    Updates of a share partition's state between two of its snapshots.
share.coordinator.load.buffer.size int 5242880 high >=1
    Bytes per read when loading share state.
share.coordinator.state.topic.compression.codec int 0 high
    Codec number for __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
share.coordinator.append.linger.ms int -1 medium >=-1
    How long share state records wait to be written together; -1 adapts to load.
share.coordinator.write.timeout.ms int 5000 high >=1
    How long a write of share state waits for its replicas.
share.coordinator.state.topic.prune.interval.ms int 300000 low internal >=1
    How often share state that is no longer needed is deleted.
share.coordinator.cold.partition.snapshot.interval.ms int 300000 low internal >=1
    How often idle share partitions get a snapshot.
share.coordinator.cached.buffer.max.bytes int 1048588 medium cluster-wide >=524288
    Largest write buffer that the share coordinator keeps for reuse.

# Transactions
transaction.state.log.min.isr int 2 high >=1
    In-sync replicas that __transaction_state needs for a write.
transaction.state.log.load.buffer.size int 5242880 high >=1
    Bytes per read when loading transaction state.
transaction.state.log.replication.factor short 3 high >=1
    Replicas of __transaction_state; its creation waits for that many brokers.
transaction.state.log.num.partitions int 50 high >=1
    Partitions of __transaction_state; not to be changed later.
transaction.state.log.segment.bytes int 104857600 high >=1
    Segment size of __transaction_state.
transaction.partition.verification.enable boolean true low cluster-wide
    Whether a partition checks that it is part of the transaction written to it.
producer.id.expiration.ms int 86400000 low cluster-wide >=1
    How long the state of an idle producer id is kept.
producer.id.expiration.check.interval.ms int 600000 low internal >=1
    How often expired producer ids are looked for.
transactional.id.expiration.ms int 604800000 high >=1
    How long an unused transactional id is remembered.
transaction.max.timeout.ms int 900000 high >=1
    Longest transaction a producer may ask for.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 low >=1
    How often transactions past their timeout are looked for and aborted.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 low >=1
    How often expired transactional ids are looked for and forgotten.
transaction.two.phase.commit.enable boolean false low
    Whether producers may prepare a transaction and decide it later.

# The quorum
controller.quorum.voters list "" high quorum-voters
    Fixed voters of the metadata quorum, as id@host:port; empty for a dynamic quorum.
controller.quorum.bootstrap.servers list "" high quorum-servers
    Addresses by which a dynamic quorum is found, as host:port.
controller.quorum.election.timeout.ms int 1000 high >=0
    How long a candidate waits for votes before it starts another election.
controller.quorum.fetch.timeout.ms int 2000 high >=0
    How long a voter goes without the leader before it calls an election, and a leader without voters.
controller.quorum.election.backoff.max.ms int 1000 high >=0
    Longest pause before the next election after a lost one.
controller.quorum.append.linger.ms int 25 medium >=0
    How long the leader gathers records before it writes them.
controller.quorum.request.timeout.ms int 2000 medium >=0
    How long a request within the quorum may take.
controller.quorum.retry.backoff.ms int 20 low >=0
    Pause before a failed request within the quorum is sent again.
controller.quorum.auto.join.enable boolean false low
    Whether a controller that is not yet a voter joins the quorum by itself.
controller.quorum.fetch.snapshot.max.bytes int 1048576 low >=1
    Most bytes of a snapshot in one answer.
controller.quorum.fetch.max.bytes int 1048576 low >=1
    Most bytes of the metadata log in one answer.

# Metrics and quotas
metrics.num.samples int 2 low >=1
    Samples kept for each metric.
metrics.sample.window.ms long 30000 low >=1
    Length of one sample of a metric.
metric.reporters list org.apache.kafka.common.metrics.JmxReporter low cluster-wide list+empty
    Classes that report metrics.
metrics.recording.level string INFO low
    Most detailed level of metrics recorded: INFO, DEBUG or TRACE.
kafka.metrics.reporters list "" low list+empty
    Classes that report the older server metrics.
kafka.metrics.polling.interval.secs int 10 low >=1
    How often the older metrics reporters poll.
telemetry.max.bytes int 1048576 low >=1
    Largest push of metrics accepted from a client.
quota.window.num int 11 low >=1
    Samples over which client quotas are measured.
replication.quota.window.num int 11 low >=1
    Samples over which the replication throttle is measured.
alter.log.dirs.replication.quota.window.num int 11 low >=1
    Samples over which moves between log directories are measured.
controller.quota.window.num int 11 low >=1
    Samples over which the rate of metadata changes is measured.
quota.window.size.seconds int 1 low >=1
    Length of one sample of client quotas.
replication.quota.window.size.seconds int 1 low >=1
    Length of one sample of the replication throttle.
alter.log.dirs.replication.quota.window.size.seconds int 1 low >=1
    Length of one sample of moves between log directories.
controller.quota.window.size.seconds int 1 low >=1
    Length of one sample of the rate of metadata changes.
client.quota.callback.class class - low
    Class that decides the quota of each client.

# Security
connections.max.reauth.ms long 0 medium
    Authenticated connections must authenticate again within this time; 0 is never.
sasl.server.max.receive.size int 524288 medium
    Largest SASL message accepted before authentication is done.
security.providers string - low
    Java security providers to register.
principal.builder.class class \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder medium per-broker
    Class that names the principal of a connection.
ssl.client.auth string none medium per-broker in:required|requested|none
    Whether clients must show a certificate: required, requested or none.
ssl.principal.mapping.rules string DEFAULT low
    Rules that make a short principal name of a certificate's subject.
ssl.allow.dn.changes boolean false low
    Whether a new certificate may have another subject.
ssl.allow.san.changes boolean false low
    Whether a new certificate may lack alternative names the old one had.
ssl.protocol string TLSv1.3 medium per-broker
    TLS version to prefer.
ssl.provider string - medium per-broker
    Java provider for TLS.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium per-broker list+empty
    TLS versions that are accepted.
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
    How a server's name is checked against its certificate; empty turns it off.
ssl.secure.random.implementation string - low per-broker
    Java source of randomness for TLS.
ssl.cipher.suites list "" medium per-broker list+empty
    Cipher suites that are accepted; empty is all that the library offers.
ssl.engine.factory.class class - low per-broker
    Class that makes TLS engines.
sasl.mechanism.inter.broker.protocol string GSSAPI medium per-broker
    SASL mechanism between brokers.
sasl.enabled.mechanisms list GSSAPI medium per-broker list+empty
    SASL mechanisms clients may use.
sasl.server.callback.handler.class class - medium
    Class that checks credentials on the server's side.
sasl.kerberos.principal.to.local.rules list DEFAULT medium per-broker list+empty
    Rules that make a short name of a Kerberos principal.
sasl.jaas.config password - medium per-broker
    Login modules and their options; usually set per listener and mechanism.
sasl.client.callback.handler.class class - medium
    Class that supplies credentials on the client's side.
sasl.login.class class - medium
    Class that logs in.
sasl.login.callback.handler.class class - medium
    Class that supplies credentials for the login.
sasl.kerberos.service.name string - medium per-broker
    Kerberos service name of the brokers.
sasl.kerberos.kinit.cmd string /usr/bin/kinit medium per-broker
    Path of the kinit command.
sasl.kerberos.ticket.renew.window.factor double 0.8 medium per-broker
    Share of a Kerberos ticket's life after which it is renewed.
sasl.kerberos.ticket.renew.jitter double 0.05 medium per-broker
    Share by which the time of a ticket's renewal is varied at random.
sasl.kerberos.min.time.before.relogin long 60000 medium per-broker
    Shortest time between two Kerberos logins.
sasl.login.refresh.window.factor double 0.8 medium per-broker
    Share of a token's life after which it is refreshed.
sasl.login.refresh.window.jitter double 0.05 medium per-broker
    Share by which the time of a token's refresh is varied at random.
sasl.login.refresh.min.period.seconds short 60 medium per-broker
    Shortest time before a token is refreshed.
sasl.login.refresh.buffer.seconds short 300 medium per-broker
    Time before a token's end that a refresh should leave.
sasl.login.connect.timeout.ms int - low
    Time to connect to the token service.
sasl.login.read.timeout.ms int - low
    Time to wait for the token service's answer.
sasl.login.retry.backoff.max.ms long 10000 low
    Longest pause between attempts to log in.
sasl.login.retry.backoff.ms long 100 low
    First pause between attempts to log in.
sasl.oauthbearer.jwt.retriever.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever medium
    Class that obtains tokens.
sasl.oauthbearer.jwt.validator.class class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator medium
    Class that checks tokens.
sasl.oauthbearer.scope string - medium
    Scope to ask for in a token.
sasl.oauthbearer.client.credentials.client.id string - medium
    Client id for the token service.
sasl.oauthbearer.client.credentials.client.secret password - medium
    Client secret for the token service.
sasl.oauthbearer.assertion.algorithm string RS256 medium nocase:ES256|RS256
    Signature algorithm of assertions sent to the token service.
sasl.oauthbearer.assertion.claim.aud string - medium
    Audience claimed in assertions.
sasl.oauthbearer.assertion.claim.exp.seconds int 300 low 0..86400
    How long an assertion is valid.
sasl.oauthbearer.assertion.claim.iss string - medium
    Issuer claimed in assertions.
sasl.oauthbearer.assertion.claim.jti.include boolean false medium
    Whether assertions carry a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 low 0..3600
    How far before now an assertion begins to be valid.
sasl.oauthbearer.assertion.claim.sub string - medium
    Subject claimed in assertions.
sasl.oauthbearer.assertion.file string - medium
    File with a ready assertion.
sasl.oauthbearer.assertion.private.key.file string - medium
    File of the key that signs assertions.
sasl.oauthbearer.assertion.private.key.passphrase password - medium
    Passphrase of the key that signs assertions.
sasl.oauthbearer.assertion.template.file string - medium
    File with headers and claims for assertions.
sasl.oauthbearer.scope.claim.name string scope low
    Name of the token's claim that holds the scope.
sasl.oauthbearer.sub.claim.name string sub low
    Name of the token's claim that holds the subject.
sasl.oauthbearer.token.endpoint.url string - medium
    Address of the token service.
sasl.oauthbearer.jwks.endpoint.url string - medium
    Address of the keys that sign tokens.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 low
    How often the keys that sign tokens are fetched anew.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 low
    First pause between attempts to fetch keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 low
    Longest pause between attempts to fetch keys.
sasl.oauthbearer.clock.skew.seconds int 30 low
    Difference of clocks tolerated when tokens are checked.
sasl.oauthbearer.expected.audience list "" high list+empty
    Audiences of which a token must name one; empty is no check.
sasl.oauthbearer.expected.issuer string - high
    Issuer a token must name; unset is no check.
delegation.token.secret.key password - medium
    Secret that signs delegation tokens, the same on every node; unset turns them off.
delegation.token.max.lifetime.ms long 604800000 medium >=1
    Longest life of a delegation token, renewed or not.
delegation.token.expiry.time.ms long 86400000 medium >=1
    Life of a delegation token until it must be renewed.
delegation.token.expiry.check.interval.ms long 3600000 low >=1
    How often expired delegation tokens are looked for.
add.partitions.to.txn.retry.backoff.max.ms int 100 high >=0
    Longest pause before adding partitions to a busy transaction is tried again.
add.partitions.to.txn.retry.backoff.ms int 20 high >=1
    First pause before adding partitions to a busy transaction is tried again.

# barnabas
barnabas.telemetry.receiver string "" low in:|log
    What becomes of metrics that clients push: nothing when empty, or a line in the log.
"""

_DYNAMIC_TABLE = """\
leader.replication.throttled.rate long 9223372036854775807 medium cluster-wide >=0
    Bytes a second that throttled leaders send to followers.
follower.replication.throttled.rate long 9223372036854775807 medium cluster-wide >=0
    Bytes a second that throttled followers fetch.
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 medium cluster-wide >=0
    Bytes a second for moving replicas between log directories.
"""
