"""Decisions that create topics, delete them and add partitions to them.

An invalid topic fails alone: its row has the error, and nothing is written for it. A request that would write too many
records is rejected as a whole. Partitions count against a quota (`mutation_quotas`). Not supported: policies for new
topics (create.topic.policy.class.name).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.config import topic_names
from barnabas.controller.mutation_quotas import UNBOUNDED, ChargeCounter, Charged, MutationQuota
from barnabas.controller.operation_size import MAX_RECORDS_PER_USER_OPERATION, check_size
from barnabas.controller.placement import default_directory, is_active, place, usable_brokers
from barnabas.controller.situation import Situation
from barnabas.controller.topic_configs import TopicConfigs
from barnabas.metadata.image import MetadataImage
from barnabas.replicated.decision import Result
from barnabas.steps import ROWS_PER_STEP, Slices
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.records.metadata import PartitionRecord, RemoveTopicRecord, TopicRecord

_MAX_SORTED = 1000  # replicas of one partition
MAX_PARTITIONS_PER_REQUEST: Final = 10_000

_DEFAULT: Final = -1  # use the configured number of partitions or replicas

Row = CreateTopicsResponse.CreatableTopicResult
PartitionsRow = CreatePartitionsResponse.CreatePartitionsTopicResult


class _Placement(NamedTuple):
    """Lists shared by the records of all new partitions with the same replicas."""

    replicas: list[int]
    isr: list[int]
    directories: list[Uuid]
    nobody: list[int]


class _Cluster:
    """Lookups that are done once for a request with many topics."""

    __slots__ = ("_placements", "active", "directories", "image", "partition_record_version", "usable")

    def __init__(self, situation: Situation) -> None:
        image, version = situation.image, situation.metadata_version
        self.image = image
        self.usable = usable_brokers(image)
        self.active = {broker_id for broker_id in image.brokers if is_active(image, broker_id)}
        self.directories: dict[int, Uuid] | None = None
        if version.is_directory_assignment_supported:
            self.directories = {broker_id: default_directory(image, broker_id) for broker_id in image.brokers}
        self.partition_record_version = version.partition_record_version
        self._placements: dict[tuple[int, ...], _Placement] = {}

    def placement(self, replicas: tuple[int, ...]) -> _Placement:
        found = self._placements.get(replicas)
        if found is None:
            isr = [replica for replica in replicas if replica in self.active]
            directories = [] if self.directories is None else [self.directories[replica] for replica in replicas]
            found = self._placements[replicas] = _Placement(list(replicas), isr, directories, [])
        return found


def create(
    situation: Situation,
    topics: Sequence[CreateTopicsRequest.CreatableTopic],
    describable: Collection[str] = (),
    validate_only: bool = False,
    quota: MutationQuota = UNBOUNDED,
) -> Slices[Result[Charged[list[Row]]]]:
    """Return a row for each topic, in order. Names must be unique. New partitions count against the quota.

    Rows of `describable` topics have the effective configs and the numbers of partitions and replicas.
    """
    yield from _refuse_too_many(situation, topics)
    configs, cluster = TopicConfigs(situation), _Cluster(situation)
    counter = ChargeCounter(quota)
    records: list[tuple[Message, int]] = []
    rows = []
    for topic in topics:
        try:
            row, new = yield from _create_one(situation, cluster, topic, configs, topic.name in describable, counter)
        except KafkaError as error:
            row, new = Row(name=topic.name, error_code=error.code, error_message=error.message), []
        rows.append(row)
        records += new
        check_size(records)
        yield
    return Result([] if validate_only else records, Charged(rows, counter.charge))


def _refuse_too_many(situation: Situation, topics: Iterable[CreateTopicsRequest.CreatableTopic]) -> Slices[None]:
    total = 0
    for number, topic in enumerate(topics, 1):
        if number % ROWS_PER_STEP == 0:
            yield
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _DEFAULT:
            total += situation.config.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _create_one(
    situation: Situation,
    cluster: _Cluster,
    topic: CreateTopicsRequest.CreatableTopic,
    configs: TopicConfigs,
    describe: bool,
    counter: ChargeCounter,
) -> Slices[tuple[Row, list[tuple[Message, int]]]]:
    """Create one topic. The order of the checks decides which of several errors is returned, as in Kafka."""
    image, name = situation.image, topic.name
    if name in image.topics.ids:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    topic_names.check(name)
    if colliding := image.topics.colliding(name):
        text = f"Topic '{name}' collides with existing topic: {colliding[0]}"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    settings = yield from configs.accept(topic.configs)
    if topic.assignments:
        assignment = yield from _manual_assignment(cluster, topic)
    else:
        assignment = _automatic_assignment(situation, cluster, topic)
    counter.count(len(assignment))
    topic_id = situation.new_uuid()
    row = Row(name=name, topic_id=topic_id, error_message=None)
    if describe:
        row.num_partitions, row.replication_factor = len(assignment), len(assignment[0])
        row.configs = configs.shown(settings)
    else:
        row.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = yield from _partition_records(cluster, topic_id, 0, assignment)
    return row, [(TopicRecord(name=name, topic_id=topic_id), 0), *configs.records(name, settings), *partitions]


def _manual_assignment(cluster: _Cluster, topic: CreateTopicsRequest.CreatableTopic) -> Slices[list[Sequence[int]]]:
    for given, what in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
        if given != _DEFAULT:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    assignment: dict[int, Sequence[int]] = {}
    replication_factor = None
    for each in topic.assignments:
        if each.partition_index in assignment:
            text = f"Found multiple manual partition assignments for partition {each.partition_index}"
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        check_assignment(cluster.image, each.broker_ids, replication_factor)
        _check_someone_is_active(cluster, each.broker_ids, each.partition_index)
        replication_factor = len(each.broker_ids)
        assignment[each.partition_index] = each.broker_ids
        yield
    if sorted(assignment) != list(range(len(assignment))):
        text = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [replicas for _, replicas in sorted(assignment.items())]


def _automatic_assignment(
    situation: Situation, cluster: _Cluster, topic: CreateTopicsRequest.CreatableTopic
) -> list[Sequence[int]]:
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if replicas < _DEFAULT or replicas == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if partitions < _DEFAULT or partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    if partitions == _DEFAULT:
        partitions = situation.config.num_partitions
    if replicas == _DEFAULT:
        replicas = situation.config.default_replication_factor
    try:
        return [*place(cluster.usable, partitions, replicas, situation.random)]
    except KafkaError as error:
        text = f"Unable to replicate the partition {replicas} time(s): {error.message}"
        raise KafkaError(error.code, text) from None


def check_assignment(image: MetadataImage, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Raise INVALID_REPLICA_ASSIGNMENT if these cannot be the replicas of a partition."""
    problem = _problem(image, replicas, replication_factor)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {problem}")


def _problem(image: MetadataImage, replicas: Sequence[int], replication_factor: int | None) -> str | None:
    if not replicas:
        return "an empty replica list."
    before = None
    # More than there are brokers include an unknown one, or one twice, so that the others need not be looked at.
    for broker_id in sorted(replicas[: max(len(image.brokers) + 1, _MAX_SORTED)]):
        if broker_id not in image.brokers:
            return f"broker {broker_id}, but no such broker is registered."
        if broker_id == before:
            return f"the broker {broker_id} more than once."
        before = broker_id
    if replication_factor not in (None, len(replicas)):
        return (
            f"a partition with {len(replicas)} replica(s), but this is not consistent with previous partitions, "
            f"which have {replication_factor} replica(s)."
        )
    return None


def _check_someone_is_active(cluster: _Cluster, replicas: Iterable[int], partition_id: int) -> None:
    if cluster.active.isdisjoint(replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {partition_id} are fenced or in "
            "controlled shutdown.",
        )


def _partition_records(
    cluster: _Cluster, topic_id: Uuid, first: int, assignment: Iterable[Sequence[int]]
) -> Slices[list[tuple[Message, int]]]:
    """Return the records of new partitions. The leader of each is its first active replica."""
    version = cluster.partition_record_version
    records: list[tuple[Message, int]] = []
    for partition_id, replicas in enumerate(assignment, first):
        placed, isr, directories, nobody = cluster.placement(tuple(replicas))
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=placed,
            isr=isr,
            removing_replicas=nobody,
            adding_replicas=nobody,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=directories,
        )
        records.append((record, version))
        if partition_id % ROWS_PER_STEP == 0:
            yield
    return records


def create_partitions(
    situation: Situation,
    topics: Iterable[CreatePartitionsRequest.CreatePartitionsTopic],
    validate_only: bool = False,
    quota: MutationQuota = UNBOUNDED,
) -> Slices[Result[Charged[list[PartitionsRow]]]]:
    """Return a row for each topic, in order. Names must be unique. New partitions count against the quota."""
    cluster, counter = _Cluster(situation), ChargeCounter(quota)
    records: list[tuple[Message, int]] = []
    rows = []
    for topic in topics:
        row = PartitionsRow(name=topic.name)
        try:
            limit = MAX_RECORDS_PER_USER_OPERATION - len(records)
            records += yield from _add_partitions(situation, cluster, topic, limit, counter)
        except KafkaError as error:
            row.error_code = error.code
            row.error_message = None if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error.message
        rows.append(row)
        yield
    return Result([] if validate_only else records, Charged(rows, counter.charge))


def _add_partitions(
    situation: Situation,
    cluster: _Cluster,
    wanted: CreatePartitionsRequest.CreatePartitionsTopic,
    limit: int,
    counter: ChargeCounter,
) -> Slices[list[tuple[Message, int]]]:
    image = situation.image
    topic = image.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if wanted.count == count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if wanted.count < count:
        text = f"The topic {topic.name} currently has {count} partition(s); {wanted.count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    additional, assignments = wanted.count - count, wanted.assignments
    if assignments is not None and len(assignments) != additional:
        text = (
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    if additional > limit:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    counter.count(additional)
    replication_factor = len(topic.partitions[0].replicas)
    assignment: list[Sequence[int]]
    if assignments is None:
        assignment = [*place(cluster.usable, additional, replication_factor, situation.random)]
    else:
        assignment = [each.broker_ids for each in assignments]
        for partition_id, replicas in enumerate(assignment, count):
            check_assignment(image, replicas, replication_factor)
            _check_someone_is_active(cluster, replicas, partition_id)
            yield
    return (yield from _partition_records(cluster, topic.topic_id, count, assignment))


def delete(
    situation: Situation, topic_ids: Iterable[Uuid], quota: MutationQuota = UNBOUNDED
) -> Slices[Result[Charged[dict[Uuid, KafkaError | None]]]]:
    """Return the error for each id, or None if the topic is deleted. Its partitions count against the quota.

    Its configs are removed by replay.
    """
    counter = ChargeCounter(quota)
    records: list[tuple[Message, int]] = []
    errors: dict[Uuid, KafkaError | None] = {}
    for topic_id in topic_ids:
        yield
        topic = situation.image.topics.by_id.get(topic_id)
        if topic is None:
            errors[topic_id] = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        try:
            counter.count(len(topic.partitions))
        except KafkaError as error:
            errors[topic_id] = error
            continue
        records.append((RemoveTopicRecord(topic_id=topic_id), 0))
        errors[topic_id] = None
    check_size(records)
    return Result(records, Charged(errors, counter.charge))
