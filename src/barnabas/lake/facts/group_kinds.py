"""The kinds of facts that the records of `__consumer_offsets` give: groups, their members, and committed offsets."""

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
        "Which offset had a group committed for a partition?",
        keys=(
            _GROUP_ID,
            Column("topic", "string", "The topic."),
            Column("partition", "int", "The partition of the topic."),
        ),
        values=(
            Column("committed_offset", "bigint", "The offset from which on the group had still to read."),
            Column(
                "committed_leader_epoch", "int", "The leader epoch of the last record that it read; null: not said."
            ),
            Column("metadata", "string", "What the client added."),
            Column("commit_time", "timestamp", "When the coordinator took it."),
            Column("expire_time", "timestamp", "When it expires; null: as the retention of its group says."),
            Column("topic_id", "string", "The id of the topic; null: not said."),
            Column("record_offset", "bigint", "Where its record stands; before valid_from_offset if in a transaction."),
        ),
    ),
    Kind(
        GROUPS,
        "Which groups were there, of which type, and in which state and epoch?",
        keys=(_GROUP_ID,),
        values=(
            Column("group_type", "string", "classic, consumer, share or streams."),
            Column("protocol_type", "string", "consumer, share, streams, or what the members of a classic group say."),
            Column("state", "string", "Empty, Assigning, Reconciling or Stable, as far as the log has it."),
            Column("members", "int", "How many members it has."),
            Column("generation", "int", "Of a classic group."),
            Column("protocol", "string", "The assignor that a classic group agreed on."),
            Column("leader", "string", "The member that leads a classic group."),
            Column("state_time", "timestamp", "Since when a classic group is in its state."),
            Column("group_epoch", "int", "Of any group but a classic one."),
            Column("assignment_epoch", "int", "The group epoch that the target assignment was made for."),
            Column("assignment_time", "timestamp", "When the target assignment was made."),
            Column("metadata_hash", "bigint", "The hash of what the group knows of its topics."),
            Column("validated_topology_epoch", "int", "Of a streams group."),
        ),
    ),
    Kind(
        MEMBERS,
        "Who was a member of a group, what did it ask for, and what was it to have?",
        keys=(_GROUP_ID, Column("member_id", "string", "The member.")),
        values=(
            Column("group_type", "string", "The type of its group."),
            Column("instance_id", "string", "Of a static member."),
            Column("rack_id", "string", "The rack of the client."),
            Column("client_id", "string", "The id of the client."),
            Column("client_host", "string", "The host of the client."),
            Column("rebalance_timeout_ms", "int", "How long it may take to give partitions up."),
            Column("session_timeout_ms", "int", "How long it may be silent, where the record says so."),
            Column("subscribed_topics", "array<string>", "The topics that it named; null where the log cannot say."),
            Column("subscribed_topic_regex", "string", "The expression for topics that it gave."),
            Column("server_assignor", "string", "The assignor that it asked for."),
            Column("process_id", "string", "The process of a member of a streams group."),
            Column("topology_epoch", "int", "Of a member of a streams group."),
            Column("member_epoch", "int", "The epoch that it has reached."),
            Column("previous_member_epoch", "int", "The epoch that it had before."),
            Column("member_state", "string", "Stable, or what it waits for."),
            Column(
                "assignment", _PARTITIONS, "What it has; of a classic group the names, of others the ids of topics."
            ),
            Column("pending_revocation", _PARTITIONS, "What it has to give up first."),
            Column("target_assignment", _PARTITIONS, "What it is to have."),
            Column("tasks", _TASKS, "What a member of a streams group has; the role is active, standby or warmup."),
            Column("pending_tasks", _TASKS, "What it has to give up first."),
            Column("target_tasks", _TASKS, "What it is to have."),
        ),
    ),
)
