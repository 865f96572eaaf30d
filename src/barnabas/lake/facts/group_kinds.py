"""Kinds of facts from the records of `__consumer_offsets`: groups, their members, and committed offsets."""

from __future__ import annotations

from typing import Final

from barnabas.lake.declared_column import Column
from barnabas.lake.facts.schema import Kind

OFFSETS: Final = "group_offsets"
GROUPS: Final = "groups"
MEMBERS: Final = "group_members"

_GROUP_ID: Final = Column("group_id", "string", "The group.")
_PARTITIONS: Final = "array<struct<topic: string, topic_id: string, partitions: array<int>>>"
_TASKS: Final = "array<struct<role: string, subtopology_id: string, partitions: array<int>>>"

KINDS: Final = (
    Kind(
        OFFSETS,
        "Which offset had each group committed for each partition?",
        keys=(
            _GROUP_ID,
            Column("topic", "string", "The topic."),
            Column("partition", "int", "The partition of the topic."),
        ),
        values=(
            Column("committed_offset", "bigint", "The committed offset: the next one that the group reads."),
            Column("committed_leader_epoch", "int", "The leader epoch of the last record read; null: not given."),
            Column("metadata", "string", "Metadata that the client added."),
            Column("commit_time", "timestamp", "When the coordinator received it."),
            Column("expire_time", "timestamp", "When it expires; null: by the retention of its group."),
            Column("topic_id", "string", "The id of the topic; null: not given."),
            Column("record_offset", "bigint", "The offset of its record; in a transaction before valid_from_offset."),
        ),
    ),
    Kind(
        GROUPS,
        "Which groups existed, of which type, and in which state and epoch?",
        keys=(_GROUP_ID,),
        values=(
            Column("group_type", "string", "classic, consumer, share or streams."),
            Column("protocol_type", "string", "consumer, share, streams, or the protocol type of a classic group."),
            Column("state", "string", "Empty, Assigning, Reconciling or Stable, as far as the log shows it."),
            Column("members", "int", "Number of members."),
            Column("generation", "int", "The generation of a classic group."),
            Column("protocol", "string", "The assignor chosen in a classic group."),
            Column("leader", "string", "The member that leads a classic group."),
            Column("state_time", "timestamp", "Since when a classic group has been in its state."),
            Column("group_epoch", "int", "The group epoch; null in a classic group."),
            Column("assignment_epoch", "int", "The group epoch of the target assignment."),
            Column("assignment_time", "timestamp", "When the target assignment was computed."),
            Column("metadata_hash", "bigint", "The hash of the metadata of the group's topics."),
            Column("validated_topology_epoch", "int", "The validated topology epoch of a streams group."),
            Column(
                "topology_topics",
                "array<string>",
                "The topics of a streams group's topology: those that it reads, repartition topics and changelogs.",
            ),
        ),
    ),
    Kind(
        MEMBERS,
        "Who was a member of a group, with which subscription and which assignment?",
        keys=(_GROUP_ID, Column("member_id", "string", "The member.")),
        values=(
            Column("group_type", "string", "The type of its group."),
            Column("instance_id", "string", "The instance id of a static member."),
            Column("rack_id", "string", "The rack of the client."),
            Column("client_id", "string", "The id of the client."),
            Column("client_host", "string", "The host of the client."),
            Column("rebalance_timeout_ms", "int", "Time allowed for giving up partitions."),
            Column("session_timeout_ms", "int", "The session timeout, if the record has one."),
            Column("subscribed_topics", "array<string>", "The subscribed topics; null if the log does not show them."),
            Column("subscribed_topic_regex", "string", "The subscribed regular expression."),
            Column("server_assignor", "string", "The requested assignor."),
            Column("process_id", "string", "The process of a member of a streams group."),
            Column("topology_epoch", "int", "The topology epoch of a member of a streams group."),
            Column("member_epoch", "int", "The current member epoch."),
            Column("previous_member_epoch", "int", "The previous member epoch."),
            Column("member_state", "string", "Stable, or what the member waits for."),
            Column(
                "assignment", _PARTITIONS, "The assigned partitions; topics by name in classic groups, by id in others."
            ),
            Column("pending_revocation", _PARTITIONS, "Partitions that it has to give up first."),
            Column("target_assignment", _PARTITIONS, "The target assignment."),
            Column("tasks", _TASKS, "The tasks of a member of a streams group; the role is active, standby or warmup."),
            Column("pending_tasks", _TASKS, "Tasks that it has to give up first."),
            Column("target_tasks", _TASKS, "The target assignment of tasks."),
        ),
    ),
)
