"""The change of a partition: its leader, its in-sync and eligible leader replicas, and the end of its reassignment.

The one rule: every change of a partition is a PartitionChange, so that elections, eligible leader replicas (KIP-966) and
the end of a reassignment follow the same rules whatever the cause. The cause is known to the callers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.config import resolve
from barnabas.config.resource_type import ConfigResourceType
from barnabas.controller.configs import MIN_INSYNC_REPLICAS, layers_of
from barnabas.controller.leader_choice import Election, choose_leader
from barnabas.controller.operation_size import Versioned
from barnabas.controller.placement import default_directory, is_active
from barnabas.controller.situation import Situation
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import (
    LOST_DIR,
    MIGRATING_DIR,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    UNASSIGNED_DIR,
    Partition,
    Topic,
    TopicPartition,
)
from barnabas.metadata.versions import MetadataVersion
from barnabas.steps import Slices
from barnabas.wire import Uuid
from barnabas.wire.records.metadata import PartitionChangeRecord

UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"


class Rules(NamedTuple):
    """The settings and features that the changes of a topic's partitions depend on."""

    metadata_version: MetadataVersion
    is_elr_enabled: bool
    min_isr: int
    is_unclean_election_enabled: bool
    default_directory: Callable[[int], Uuid]


class PartitionChange:
    """A change of one partition: set the attributes, then call `build` once.

    `is_acceptable_leader` returns whether a broker is alive and has the replica's directory.
    """

    __slots__ = (
        "_directories",
        "_elr",
        "adding",
        "election",
        "is_acceptable_leader",
        "isr",
        "leader_recovery_state",
        "partition",
        "partition_id",
        "removing",
        "replicas",
        "rules",
        "topic_id",
        "uncleanly_stopped",
    )

    def __init__(
        self,
        topic_id: Uuid,
        partition_id: int,
        partition: Partition,
        rules: Rules,
        is_acceptable_leader: Callable[[int], bool],
        election: Election = Election.ONLINE,
    ) -> None:
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.partition = partition
        self.rules = rules
        self.is_acceptable_leader = is_acceptable_leader
        self.election = election
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.removing: Sequence[int] = partition.removing_replicas
        self.adding: Sequence[int] = partition.adding_replicas
        self.leader_recovery_state = partition.leader_recovery_state
        self._directories: dict[int, Uuid] | None = None
        self.uncleanly_stopped = NO_LEADER
        self._elr: Sequence[int] = partition.elr

    @property
    def directories(self) -> dict[int, Uuid]:
        """The directory of each replica. Most changes do not need it."""
        if self._directories is None:
            self._directories = dict(zip(self.partition.replicas, self.partition.directories, strict=True))
        return self._directories

    @directories.setter
    def directories(self, directories: dict[int, Uuid]) -> None:
        self._directories = directories

    def build(self) -> tuple[PartitionChangeRecord, int] | None:
        """Return the record with its version, or None if nothing changes."""
        partition = self.partition
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        self._complete_reassignment()
        self._follow_elr()
        self._elect(record)
        has_other_replicas = self.replicas is not partition.replicas
        if (
            record.leader == NO_LEADER_CHANGE
            and has_other_replicas
            and not set(partition.replicas) <= set(self.replicas)
        ):
            record.leader = partition.leader  # a removed replica learns of its removal by the new leader epoch
        if record.isr is not None or not self.rules.is_elr_enabled:
            self._elr = ()
        if tuple(self._elr) != partition.elr:
            record.eligible_leader_replicas = list(self._elr)
        may_be_empty = self.rules.is_elr_enabled
        if record.isr is None and (self.isr or may_be_empty) and tuple(self.isr) != partition.isr:
            record.isr = list(self.isr)
        self._bump_leader_epoch_of_shrunk_isr(record)
        self._follow_last_known_leader(record)
        if has_other_replicas or self._directories is not None:
            self._assign(record)
        if tuple(self.removing) != partition.removing_replicas:
            record.removing_replicas = list(self.removing)
        if tuple(self.adding) != partition.adding_replicas:
            record.adding_replicas = list(self.adding)
        if self.leader_recovery_state != partition.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        if record.isr is None and record == PartitionChangeRecord(
            topic_id=self.topic_id, partition_id=self.partition_id
        ):
            return None
        return record, self.rules.metadata_version.partition_change_record_version

    def _complete_reassignment(self) -> None:
        """Finish a reassignment once all added replicas are in sync and at least one replica remains."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if self.removing and (not isr or not replicas):
            return
        if not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return  # when the replication factor shrinks, all remaining replicas must be in sync first
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _follow_elr(self) -> None:
        """Update the ELR: replicas that leave an ISR below the minimum have all acknowledged records and may lead."""
        if not self.rules.is_elr_enabled:
            return
        if len(self.isr) >= self.rules.min_isr:
            self._elr = ()
            return
        candidates = {*self._elr, *self.partition.isr} - {*self.isr, self.uncleanly_stopped}
        self._elr = sorted(candidates)

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = choose_leader(
            self.partition,
            self.replicas,
            self.isr,
            self._elr,
            self.election,
            self.is_acceptable_leader,
            is_elr_enabled=self.rules.is_elr_enabled,
        )
        if leader == self.partition.leader:
            return
        if leader in self._elr:
            self.isr = [leader]
            self._elr = [replica for replica in self._elr if replica != leader]
        record.leader = leader
        if is_unclean:
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _bump_leader_epoch_of_shrunk_isr(self, record: PartitionChangeRecord) -> None:
        """Start a new leader epoch, because brokers before 3.6 accept a smaller ISR only with one."""
        if self.rules.metadata_version.is_leader_epoch_bump_required_on_isr_shrink and (
            record.leader == NO_LEADER_CHANGE
            and record.isr is not None
            and not set(self.partition.isr) <= set(record.isr)
        ):
            record.leader = self.partition.leader

    def _follow_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Update the last known ELR, which only has the last leader while there is no leader."""
        if not self.rules.is_elr_enabled:
            return
        known, leader = self.partition.last_known_elr, self.partition.leader
        if record.leader == NO_LEADER and not known and leader != NO_LEADER:
            record.last_known_elr = [leader]
        elif record.leader >= 0 and known:
            record.last_known_elr = []

    def _assign(self, record: PartitionChangeRecord) -> None:
        if not self.replicas:
            return
        partition = self.partition
        if self.rules.metadata_version.is_directory_assignment_supported:
            known = self.directories
            directories = [known[r] if r in known else self.rules.default_directory(r) for r in self.replicas]
            if tuple(directories) != partition.directories:
                record.directories = directories
        if tuple(self.replicas) != partition.replicas:
            record.replicas = list(self.replicas)


class PartitionChanges:
    """Creates changes for the partitions of one situation. The settings of a topic are looked up once."""

    def __init__(self, situation: Situation) -> None:
        self.image = situation.image
        self.metadata_version = situation.metadata_version
        self._layers = layers_of(situation.image, situation.config)
        self._rules: dict[Uuid, Rules] = {}
        self._defaults: tuple[int, bool] | None = None

    def begin(
        self,
        topic: Topic,
        partition_id: int,
        election: Election | None = None,
        may_lead: Callable[[int], bool] | None = None,
    ) -> PartitionChange:
        """Start a change of an existing partition. `may_lead` overrides which brokers in the image are alive."""
        partition, image, rules = topic.partitions[partition_id], self.image, self.rules_of(topic)
        if election is None:
            election = Election.UNCLEAN if rules.is_unclean_election_enabled else Election.ONLINE

        def is_acceptable_leader(replica: int) -> bool:
            alive = is_active(image, replica) if may_lead is None else may_lead(replica)
            return alive and has_online_directory(image, replica, partition.directory(replica))

        return PartitionChange(topic.topic_id, partition_id, partition, rules, is_acceptable_leader, election)

    def rules_of(self, topic: Topic) -> Rules:
        rules = self._rules.get(topic.topic_id)
        if rules is None:
            image = self.image
            min_isr, is_unclean_enabled = self._settings_of(topic.name)
            rules = self._rules[topic.topic_id] = Rules(
                self.metadata_version,
                image.is_elr_enabled,
                min(min_isr, len(topic.partitions[0].replicas)),
                is_unclean_enabled,
                lambda broker_id: default_directory(image, broker_id),
            )
        return rules

    def _settings_of(self, topic_name: str) -> tuple[int, bool]:
        own = self.image.config(ConfigResourceType.TOPIC, topic_name)
        if MIN_INSYNC_REPLICAS in own or UNCLEAN_LEADER_ELECTION in own:
            return self._resolve(own)
        if self._defaults is None:
            self._defaults = self._resolve({})
        return self._defaults

    def _resolve(self, own: Mapping[str, str]) -> tuple[int, bool]:
        min_isr = resolve.topic_value(MIN_INSYNC_REPLICAS, own, self._layers)
        is_unclean_enabled = resolve.topic_value(UNCLEAN_LEADER_ELECTION, own, self._layers)
        assert isinstance(min_isr, int)
        return min_isr, bool(is_unclean_enabled)

    def updates(
        self,
        partitions: Iterable[TopicPartition],
        *,
        removed: int = NO_LEADER,
        added: int = NO_LEADER,
        uncleanly_stopped: int = NO_LEADER,
    ) -> Slices[list[Versioned]]:
        """Return the changes when a broker is removed, added, or has lost data that it had not flushed.

        The image still shows the broker's old state: a removed broker can no longer lead, and an added one already can.
        """
        image = self.image

        def may_lead(replica: int) -> bool:
            return replica not in (removed, uncleanly_stopped) and (replica == added or is_active(image, replica))

        records: list[Versioned] = []
        for topic, partition_id, partition in partitions:
            yield
            change = self.begin(topic, partition_id, may_lead=may_lead)
            change.uncleanly_stopped = uncleanly_stopped
            change.isr = [replica for replica in partition.isr if replica not in (removed, uncleanly_stopped)]
            built = change.build()
            if built is not None:
                records.append(built)
        return records


def has_online_directory(image: MetadataImage, broker_id: int, directory: Uuid | None) -> bool:
    """Whether a replica in this directory can be served. A directory that is not assigned yet counts as online."""
    broker = image.brokers.get(broker_id)
    if broker is None or directory is None or directory == LOST_DIR:
        return False
    return directory in (UNASSIGNED_DIR, MIGRATING_DIR) or not broker.log_dirs or directory in broker.log_dirs
