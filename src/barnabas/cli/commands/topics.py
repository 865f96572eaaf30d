"""`barnabas topics`: list, describe, create, alter and delete topics.

Parses arguments and prints. Requests are in `client.admin.topics`, the status of partitions in `operations.topics.facts`,
changes in `operations.topics.changes`, partition counts in `operations.topics.partition_count`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection.completion import complete_topic, complete_topic_config
from barnabas.cli.connection.config_resources import note_misspelt_settings
from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, never_asks_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.connection.target_cluster import target_cluster, target_options
from barnabas.cli.terminal.changes import carry_out, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_NO, EXIT_OK
from barnabas.cli.terminal.failures import Failure, JudgingCommand, failure_of
from barnabas.cli.terminal.output import Column, Format, Output, Progress, columns, note, utc_time
from barnabas.cli.terminal.parsing import time_ms
from barnabas.cli.terminal.repeated_options import unique_keys
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.operations.quantities import bytes_text, parse_bytes
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.topics import CreatedTopic
    from barnabas.client.cluster import Cluster
    from barnabas.operations.reassignments.replication_factor import ReplicaChange
    from barnabas.operations.topics.changes import CopiedSettings, NamedTopic
    from barnabas.operations.topics.facts import Found, PartitionFacts, TopicFacts
    from barnabas.wire import Uuid

_TOPICS = click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=complete_topic)
_SOME_TOPICS = click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topic)
_COLORS = {"offline": "red", "under-min-isr": "red", "under-replicated": "yellow"}

F = TypeVar("F", bound=Callable[..., Any])


def _pattern(ctx: click.Context, param: click.Parameter, value: str | None) -> re.Pattern[str] | None:
    try:
        return None if value is None else re.compile(value)
    except re.error as error:
        raise click.BadParameter(f"{value!r} is not a regular expression: {error}", ctx, param) from None


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    try:
        found = None if value is None else parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    if found == 0:
        raise click.BadParameter("must be greater than 0", ctx, param)
    return found


def _configs(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    found = []
    for text in value:
        name, sign, setting = text.partition("=")
        if not sign or not name.strip():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", ctx, param)
        found.append((name.strip(), setting.strip()))
    return unique_keys(found, "--config")


def _config_option(text: str) -> Callable[[F], F]:
    return click.option(
        "--config",
        "configs",
        multiple=True,
        callback=_configs,
        metavar="NAME=VALUE",
        shell_complete=complete_topic_config,
        help=text,
    )


def _assignments(ctx: click.Context, param: click.Parameter, value: str | None) -> list[list[int]] | None:
    if value is None:
        return None
    try:
        found = [[int(broker) for broker in brokers.split(":")] for brokers in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not an assignment such as 1:2,2:3 (the brokers of two partitions)", ctx, param
        ) from None
    for brokers in found:
        if len(set(brokers)) < len(brokers):
            raise click.BadParameter(f"{':'.join(map(str, brokers))} contains a broker twice", ctx, param)
    return found


_PATTERN = click.option(
    "--pattern",
    callback=_pattern,
    metavar="REGEX",
    help="Topics whose whole name matches this regular expression.",
)
_INTERNAL = click.option("--internal", is_flag=True, help="Include internal topics.")
_ASSIGNMENT = click.option(
    "--replica-assignment",
    "assignments",
    callback=_assignments,
    metavar="BROKER:BROKER,...",
    help="Broker ids of each new partition, preferred leader first.",
)


@click.group(cls=CommandGroup, short_help="List, describe, create, alter and delete topics.")
def topics() -> None:
    """List, describe, create, alter and delete topics.

    \b
    Examples:
      barnabas topics list --pattern 'orders.*'
      barnabas topics describe orders
      barnabas topics describe --under-replicated --exit-code
      barnabas topics create orders --partitions 12 --config retention.ms=86400000
      barnabas topics alter orders --partitions 24 --dry-run
      barnabas topics copy orders orders-new --records
      barnabas topics copy-settings orders orders-new
      barnabas topics idle --since 30d
      barnabas topics plan-partitions --throughput 100MB --producer-throughput 10MB --consumers 6
    """


# --- showing


@topics.command("list")
@_PATTERN
@_INTERNAL
@watch_option
@common_options
def list_(
    connection: Connection, output: Output, pattern: re.Pattern[str] | None, internal: bool, watch: float | None
) -> None:
    """List topics.

    \b
    Examples:
      barnabas topics list
      barnabas topics list --internal -o tsv | cut -f 1
    """

    async def show(cluster: Cluster) -> None:
        from barnabas.client.admin.topics import Topics

        found = await Topics(cluster).list_topics(include_internal=internal)
        output.rows(
            columns("name", Column("numPartitions", "PARTITIONS"), "replicationFactor", "isInternal", "topicId"),
            (
                {
                    "name": topic.name,
                    "topicId": _id_text(topic.topic_id),
                    "isInternal": topic.is_internal,
                    "numPartitions": topic.num_partitions,
                    "replicationFactor": topic.replication_factor,
                }
                for topic in found
                if pattern is None or pattern.fullmatch(topic.name)
            ),
        )

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


@topics.command("describe", cls=JudgingCommand, short_help="Show the partitions of topics, and their status.")
@_TOPICS
@click.option("--id", "by_id", is_flag=True, help="Treat TOPIC as a topic id.")
@_PATTERN
@_INTERNAL
@click.option("--under-replicated", is_flag=True, help="Only partitions with a replica that is not in sync.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a live leader.")
@click.option(
    "--under-min-isr", is_flag=True, help="Only partitions with fewer in-sync replicas than min.insync.replicas."
)
@click.option("--at-min-isr", is_flag=True, help="Only partitions with exactly min.insync.replicas in-sync replicas.")
@click.option("--configs/--no-configs", default=True, show_default=True, help="Also request the settings of topics.")
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 2 if the status of a partition is not ok; with filters, if one is shown.",
)
@watch_option
@common_options
def describe(
    connection: Connection,
    output: Output,
    topics: tuple[str, ...],
    by_id: bool,
    pattern: re.Pattern[str] | None,
    internal: bool,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    at_min_isr: bool,
    configs: bool,
    exit_code: bool,
    watch: float | None,
) -> None:
    """Show the partitions of topics: of all, or of the given ones with their settings.

    STATUS is the first of these that applies: offline, under-min-isr, under-replicated, ok.

    \b
    Examples:
      barnabas topics describe orders payments
      barnabas topics describe --under-replicated --unavailable --exit-code
      barnabas topics describe orders -o json --no-configs
    """
    filters = [
        name
        for name, is_asked in (
            ("is_under_replicated", under_replicated),
            ("is_unavailable", unavailable),
            ("is_under_min_isr", under_min_isr),
            ("is_at_min_isr", at_min_isr),
        )
        if is_asked
    ]
    with_configs = configs or under_min_isr or at_min_isr
    # For the status one setting is enough. Tables show the others only above topics given by name.
    shows_configs = output.format not in (Format.TABLE, Format.TSV) or (output.is_for_people and topics and not filters)
    config_keys = None if shows_configs else ("min.insync.replicas",)
    exit_codes = [0]

    async def show(cluster: Cluster) -> None:
        found = await _look(cluster, topics, by_id, pattern, internal or bool(topics), with_configs, config_keys)
        if filters:
            count = _show_partitions(output, found.topics, filters)
        else:
            _show_topics(output, found.topics, in_blocks=bool(topics))
            count = sum(each.status != "ok" for topic in found.topics for each in topic.partitions) if exit_code else 0
        _show_errors(found.errors)
        exit_codes.append(EXIT_FAILED if found.errors else EXIT_NO if exit_code and count else EXIT_OK)

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))
    sys.exit(exit_codes[-1])


async def _look(
    cluster: Cluster,
    topics: tuple[str, ...],
    by_id: bool,
    pattern: re.Pattern[str] | None,
    internal: bool,
    with_configs: bool,
    config_keys: tuple[str, ...] | None,
) -> Found:
    from barnabas.client.admin.topics import Topics
    from barnabas.operations.topics.facts import Found, facts_of, look_at

    if by_id:
        described = await Topics(cluster).describe_topics(_ids(topics))
        errors = {str(each): result for each, result in described.items() if isinstance(result, KafkaError)}
        there = [result for result in described.values() if not isinstance(result, KafkaError)]
        return Found(await facts_of(cluster, there, with_configs=with_configs, config_keys=config_keys), errors)
    names: list[str] | None = list(topics) or None
    if pattern is not None:
        listed = await Topics(cluster).list_topics(include_internal=internal)
        names = [*topics, *(topic.name for topic in listed if pattern.fullmatch(topic.name))]
    found = await look_at(cluster, names, with_configs=with_configs, config_keys=config_keys)
    return found._replace(topics=[facts for facts in found.topics if internal or not facts.topic.is_internal])


def _brokers(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "-"


_PARTITION_COLUMNS = columns(
    *("partition", "leader", "leaderEpoch", Column("replicas", show=_brokers), Column("isr", show=_brokers)),
    Column("status", style=_COLORS.get),
)
_ALL_COLUMNS = columns("topic", *_PARTITION_COLUMNS)


def _show_topics(output: Output, found: Iterable[TopicFacts], in_blocks: bool) -> None:
    if not in_blocks or not output.is_for_people:
        _show_rows(output, ((topic, topic.partitions) for topic in found))
        return
    for topic in found:
        output.title(_headline(topic))
        output.rows(_PARTITION_COLUMNS, _partition_rows(topic, topic.partitions))


def _show_partitions(output: Output, found: Iterable[TopicFacts], filters: Iterable[str]) -> int:
    shown = (
        (topic, [each for each in topic.partitions if any(getattr(each, name) for name in filters)]) for topic in found
    )
    return _show_rows(output, ((topic, few) for topic, few in shown if few))


def _show_rows(output: Output, found: Iterable[tuple[TopicFacts, Sequence[PartitionFacts]]]) -> int:
    """Show one row per partition; as JSON and YAML one object per topic. Returns the number of partitions."""
    if output.format in (Format.TABLE, Format.TSV):
        return output.rows(_ALL_COLUMNS, (row for topic, some in found for row in _partition_rows(topic, some)))
    count = 0
    with output.table(_ALL_COLUMNS) as table:
        for topic, some in found:
            count += len(some)
            table.add(_topic_row(topic, some))
    return count


def _headline(facts: TopicFacts) -> str:
    topic = facts.topic
    count = len(topic.partitions)
    words = [topic.name, f"{count} partition{'s' * (count != 1)}", f"replication factor {topic.replication_factor}"]
    if topic.is_internal:
        words.append("internal")
    if topic_id := _id_text(topic.topic_id):
        words.append(f"id {topic_id}")
    if isinstance(facts.settings, KafkaError):
        words.append(f"settings: {facts.settings.code.name}")
    elif facts.settings is not None and (overrides := facts.settings.overrides()):
        words.append(" ".join(f"{name}={value}" for name, value in overrides.items()))
    return ", ".join(words)


def _topic_row(facts: TopicFacts, partitions: Iterable[PartitionFacts]) -> dict[str, Any]:
    topic, settings = facts.topic, facts.settings
    row: dict[str, Any] = {
        "topic": topic.name,
        "topicId": _id_text(topic.topic_id),
        "isInternal": topic.is_internal,
        "numPartitions": len(topic.partitions),
        "replicationFactor": topic.replication_factor,
        "partitions": [
            {name: value for name, value in each.items() if name != "topic"}
            for each in _partition_rows(facts, partitions)
        ],
    }
    if settings is not None and not isinstance(settings, KafkaError):
        row["configs"] = settings.overrides()
    return row


def _partition_rows(facts: TopicFacts, partitions: Iterable[PartitionFacts]) -> Iterator[dict[str, Any]]:
    for found in partitions:
        partition, moving = found.partition, found.reassignment
        yield {
            "topic": facts.topic.name,
            "partition": partition.partition_index,
            "leader": partition.leader_id if partition.leader_id >= 0 else None,
            "leaderEpoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "offlineReplicas": partition.offline_replicas,
            "eligibleLeaderReplicas": partition.eligible_leader_replicas,
            "lastKnownElr": partition.last_known_elr,
            "addingReplicas": moving.adding_replicas if moving else (),
            "removingReplicas": moving.removing_replicas if moving else (),
            "status": found.status,
        }


def _show_errors(errors: Mapping[str, KafkaError]) -> None:
    for name, error in errors.items():
        failure_of(error, f"topic {name}").show()


def _id_text(topic_id: Uuid | None) -> str | None:
    return str(topic_id) if topic_id is not None and any(topic_id) else None


def _ids(texts: Iterable[str]) -> list[Uuid]:
    from barnabas.wire import Uuid

    try:
        return [Uuid.parse(text) for text in texts]
    except ValueError as error:
        raise Failure(str(error), advice="see the ids of topics with: barnabas topics list") from None


@topics.command("idle")
@click.option(
    "--since",
    callback=time_ms,
    default="7d",
    show_default=True,
    metavar="TIME|AGE",
    help="Only topics without a record newer than this.",
)
@_PATTERN
@_INTERNAL
@click.option("--all", "show_all", is_flag=True, help="Include topics that are not idle.")
@common_options
def idle(
    connection: Connection,
    output: Output,
    since: int,
    pattern: re.Pattern[str] | None,
    internal: bool,
    show_all: bool,
) -> None:
    """List topics whose newest record is older than a time: candidates for deletion.

    SIZE is the sum of all replicas. GROUPS is the number of groups with committed offsets in the topic: with 0, no group reads
    it. A topic without records has no LAST-RECORD. It is idle if it was CREATED before that time. The metadata log has that
    time, and controllers serve it to principals with CLUSTER_ACTION. Without it, the topic is listed with a note that it may
    be new.

    \b
    Examples:
      barnabas topics idle --since 30d
      barnabas topics idle --since 2026-01-01 -o tsv | cut -f 1
    """

    async def look(cluster: Cluster) -> list[dict[str, Any]]:
        from barnabas.client.admin.topics import Topics
        from barnabas.operations.topics.idle import look_at_activity

        listed = await Topics(cluster).list_topics(include_internal=internal)
        fitting = [topic for topic in listed if pattern is None or pattern.fullmatch(topic.name)]
        found = await look_at_activity(cluster, fitting, since)
        found.sort(key=lambda each: (each.last_timestamp or 0, each.topic.name))
        errors = {each.topic.name: each.error for each in found if each.error is not None}
        _show_errors(errors)
        if new := [each.topic.name for each in found if each.may_be_new]:
            note(f"topics without records may be new, their creation time is unknown: {', '.join(new)}")
        return [
            {
                "name": each.topic.name,
                "lastTimestamp": each.last_timestamp,
                "createdTimestamp": each.created_ms,
                "idle": each.is_idle,
                "numPartitions": each.topic.num_partitions,
                "records": each.records,
                "sizeBytes": each.size_bytes,
                "groups": each.groups,
            }
            for each in found
            if each.error is None and (each.is_idle or show_all)
        ]

    shown = (
        *columns("name", Column("lastTimestamp", "LAST-RECORD", show=utc_time), Column("numPartitions", "PARTITIONS")),
        *columns("records", Column("sizeBytes", "SIZE", show=bytes_text), "groups"),
        *columns(Column("createdTimestamp", "CREATED", show=utc_time)),
    )
    output.rows((*shown, Column("idle")) if show_all else shown, run(connection, look))


@topics.command("plan-partitions")
@click.option(
    "--throughput", required=True, callback=_bytes, metavar="BYTES", help="Peak throughput of the topic, per second."
)
@click.option(
    "--producer-throughput",
    callback=_bytes,
    metavar="BYTES",
    help="Maximum that producers can write to one partition, per second.",
)
@click.option(
    "--consumer-throughput",
    callback=_bytes,
    metavar="BYTES",
    help="Maximum that one consumer can read from a partition, per second.",
)
@click.option("--consumers", type=click.IntRange(1), help="Number of members of the largest group.")
@click.option(
    "--growth",
    type=click.FloatRange(min=1),
    default=1.0,
    show_default=True,
    help="Factor by which throughput may grow.",
)
@click.option("--topic", shell_complete=complete_topic, help="Existing topic to compare with.")
@common_options
def plan_partitions(
    connection: Connection,
    output: Output,
    throughput: int,
    producer_throughput: int | None,
    consumer_throughput: int | None,
    consumers: int | None,
    growth: float,
    topic: str | None,
) -> None:
    """Compute the number of partitions that a topic should have.

    Measure the throughput of one partition with your own records, compression and machines. Connects to a cluster only with
    --topic.

    \b
    Examples:
      barnabas topics plan-partitions --throughput 100MB --producer-throughput 10MB --consumer-throughput 20MB
      barnabas topics plan-partitions --throughput 5MB --consumers 12 --growth 2 --topic orders
    """
    from barnabas.operations.topics.partition_count import Load, plan_partitions

    if not (producer_throughput or consumer_throughput or consumers):
        raise click.UsageError("Give at least one of --producer-throughput, --consumer-throughput and --consumers.")
    present = None
    if topic is not None:
        from barnabas.operations.topics.changes import partition_count

        present = run(connection, lambda cluster: partition_count(cluster, topic))
    plan = plan_partitions(Load(throughput, producer_throughput, consumer_throughput, consumers, growth), present)
    if output.is_for_people:
        output.write(f"{plan.partitions} partitions")
        for reason in plan.reasons:
            output.write(f"  because {reason}")
        for warning in plan.warnings:
            output.write(f"  note: {warning}")
        output.flush()
    else:
        row = {"numPartitions": plan.partitions, "present": present, "reasons": plan.reasons, "warnings": plan.warnings}
        output.one(row)


# --- changing


@topics.command("create")
@click.argument("names", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--partitions", type=click.IntRange(1), help="Number of partitions.  [default: num.partitions of the cluster]"
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, 32767),
    help="Number of replicas per partition.  [default: default.replication.factor of the cluster]",
)
@_ASSIGNMENT
@_config_option("Topic setting; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that exist already.")
@never_asks_option
@dry_run_option
@common_options
def create(
    connection: Connection,
    output: Output,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    assignments: list[list[int]] | None,
    configs: dict[str, str],
    if_not_exists: bool,
    dry_run: bool,
) -> None:
    """Create topics with the same settings. The cluster validates them first: if it rejects one, none is created.

    \b
    Examples:
      barnabas topics create orders --partitions 12 --replication-factor 3
      barnabas topics create orders --config cleanup.policy=compact --dry-run
      barnabas topics create orders --replica-assignment 1:2,2:3,3:1
    """
    from barnabas.client.admin.topics import NewTopic
    from barnabas.config.topic import definitions
    from barnabas.operations.topics.changes import propose_creation

    if assignments is not None and (partitions is not None or replication_factor is not None):
        raise click.UsageError("--replica-assignment cannot be combined with --partitions or --replication-factor.")
    new = [NewTopic(name, partitions, replication_factor, configs, assignments) for name in dict.fromkeys(names)]

    async def work(cluster: Cluster) -> Mapping[str, CreatedTopic | KafkaError]:
        return await carry_out(await propose_creation(cluster, new, if_not_exists=if_not_exists), dry_run=dry_run)

    note_misspelt_settings(configs, definitions())
    show_results(
        output,
        ("name", Column("numPartitions", "PARTITIONS"), "replicationFactor", "topicId"),
        run(connection, work),
        lambda name, made: {
            "name": name,
            "numPartitions": _told(made.num_partitions) if made else None,
            "replicationFactor": _told(made.replication_factor) if made else None,
            "topicId": _id_text(made.topic_id) if made and not dry_run else None,
        },
    )


def _told(number: int) -> int | None:
    return number if number >= 0 else None


@topics.command("alter")
@_SOME_TOPICS
@click.option("--partitions", type=click.IntRange(1), help="New total number of partitions; it can only be increased.")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="New number of replicas per partition.")
@_ASSIGNMENT
@dry_run_option
@yes_option
@common_options
def alter(
    connection: Connection,
    output: Output,
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    assignments: list[list[int]] | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Add partitions, or change the replication factor. For settings, see: barnabas configs set.

    After partitions are added, records with the same key may go to another partition than before; the command asks for
    confirmation. Changing the replication factor starts a reassignment: see its progress with barnabas reassign status.

    \b
    Examples:
      barnabas topics alter orders --partitions 24 --dry-run
      barnabas topics alter orders --partitions 24 --yes
      barnabas topics alter orders payments --replication-factor 3
    """
    if (partitions is None) == (replication_factor is None):
        raise click.UsageError("Give either --partitions or --replication-factor.")
    if assignments is not None and partitions is None:
        raise click.UsageError("--replica-assignment can only be used with --partitions.")
    from barnabas.operations.reassignments.replication_factor import propose_replication_factor
    from barnabas.operations.topics.changes import propose_partitions

    names = list(dict.fromkeys(topics))
    if partitions is not None:
        count = partitions

        async def add(cluster: Cluster) -> Mapping[str, KafkaError | None]:
            return await carry_out(
                await propose_partitions(cluster, names, count, assignments), dry_run=dry_run, yes=yes
            )

        shown = ("name", Column("numPartitions", "PARTITIONS"))
        show_results(output, shown, run(connection, add), lambda name, _: {"name": name, "numPartitions": count})
        return
    factor = replication_factor or 1

    async def move(cluster: Cluster) -> Mapping[tuple[str, int], ReplicaChange]:
        return await carry_out(await propose_replication_factor(cluster, names, factor), dry_run=dry_run, yes=yes)

    moves = run(connection, move)
    show_results(
        output,
        ("topic", "partition", "replicas"),
        {key: move.error for key, move in moves.items()},
        lambda key, _: {"topic": key[0], "partition": key[1], "replicas": moves[key].replicas},
    )


@topics.command("delete")
@_TOPICS
@click.option("--id", "by_id", is_flag=True, help="Treat TOPIC as a topic id.")
@_PATTERN
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@dry_run_option
@yes_option
@common_options
def delete(
    connection: Connection,
    output: Output,
    topics: tuple[str, ...],
    by_id: bool,
    pattern: re.Pattern[str] | None,
    if_exists: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete topics and all their records. This cannot be undone. Asks for confirmation. A pattern never matches internal
    topics.

    \b
    Examples:
      barnabas topics delete orders
      barnabas topics delete --pattern 'test-.*' --dry-run
      barnabas topics delete --id 4TpA1PLsQSOmQ3ASGk7SnQ --yes
    """
    if not topics and pattern is None:
        raise click.UsageError("Give topics or --pattern.")
    from barnabas.operations.topics.changes import propose_deletion

    wanted: list[str | Uuid] = [*(_ids(topics) if by_id else topics)]

    async def work(cluster: Cluster) -> Mapping[NamedTopic, KafkaError | None]:
        proposal = await propose_deletion(cluster, wanted, pattern, if_exists=if_exists)
        return await carry_out(proposal, dry_run=dry_run, yes=yes)

    show_results(
        output,
        ("name", "topicId"),
        run(connection, work),
        lambda each, _: {"name": each.name, "topicId": _id_text(each.topic_id)},
    )


@topics.command("copy", short_help="Copy a topic, with or without its records.")
@click.argument("source", metavar="SOURCE", shell_complete=complete_topic)
@click.argument("name", metavar="TARGET")
@click.option(
    "--records", "with_records", is_flag=True, help="Also copy records, up to the end that the topic has now."
)
@click.option("--max-records", type=click.IntRange(0), metavar="N", help="Copy at most N records.")
@click.option("--max-bytes", callback=_bytes, metavar="BYTES", help="Copy at most so many bytes, such as 500MB.")
@click.option("--from", "from_ms", callback=time_ms, metavar="TIME|AGE", help="Copy records from this time on.")
@click.option("--until", "until_ms", callback=time_ms, metavar="TIME|AGE", help="Copy records before this time.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Copy committed records only, or also those of open and aborted transactions.",
)
@click.option("--partitions", type=click.IntRange(1), help="Number of partitions.  [default: as SOURCE]")
@click.option("--replication-factor", type=click.IntRange(1, 32767), help="Number of replicas.  [default: as SOURCE]")
@_config_option("Setting of TARGET that differs from SOURCE; may be repeated.")
@click.option("--existing", is_flag=True, help="Copy records into a topic that exists; its settings stay.")
@click.option(
    "--compression-type",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Compression of the copied records.",
)
@target_options
@dry_run_option
@yes_option
@common_options
def copy(
    connection: Connection,
    output: Output,
    source: str,
    name: str,
    with_records: bool,
    max_records: int | None,
    max_bytes: int | None,
    from_ms: int | None,
    until_ms: int | None,
    isolation_level: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: dict[str, str],
    existing: bool,
    compression_type: str,
    target: Connection | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Create a topic with the settings, partitions and replication factor of another, and with --records copy its records.

    Keys, values, headers and timestamps are kept. With as many partitions as SOURCE, records stay in their partition;
    otherwise keys decide. Offsets differ if SOURCE has gaps: see barnabas groups copy. With --to-bootstrap-server or
    --to-profile, TARGET is in another cluster.

    \b
    Examples:
      barnabas topics copy orders orders-new --dry-run
      barnabas topics copy orders orders-new --records
      barnabas topics copy orders orders-sample --records --max-records 1000 --from 1h
      barnabas topics copy orders orders --records --to-profile staging --replication-factor 1
    """
    from barnabas.operations.topics.copying import CopiedTopic, Copy, RecordRange, propose_copy

    only_with_records = {"max-records": max_records, "max-bytes": max_bytes, "from": from_ms, "until": until_ms}
    for option, value in {**only_with_records, "existing": existing or None}.items():
        if value is not None and not with_records:
            raise click.UsageError(f"--{option} can only be used with --records.")
    if existing and (partitions or replication_factor or configs):
        raise click.UsageError("--existing cannot be combined with --partitions, --replication-factor or --config.")
    records = RecordRange(from_ms, until_ms, max_records, max_bytes, isolation_level) if with_records else None
    wanted = Copy(
        source, name, partitions, replication_factor, configs, records, existing, compression_type=compression_type
    )
    started: list[Progress] = []

    async def work(cluster: Cluster) -> Mapping[str, CopiedTopic]:
        async with target_cluster(cluster, target) as other:
            with ExitStack() as stack:

                def progressed(done: int, total: int) -> None:
                    if not started:
                        started.append(stack.enter_context(Progress("copying", total)))
                    started[0].update(done)

                proposal = await propose_copy(cluster, other, wanted, progressed)
                return await carry_out(proposal, dry_run=dry_run, yes=yes)

    try:
        made = run(connection, work, is_long=with_records)
    except KeyboardInterrupt:
        if started:
            note(f"interrupted: {name} has only some of the records of {source}")
        raise
    show_results(
        output,
        (
            *("topic", Column("numPartitions", "PARTITIONS"), "replicationFactor", "records"),
            Column("sizeBytes", "SIZE", show=bytes_text),
        ),
        {topic: each.error for topic, each in made.items()},
        lambda topic, _: {
            "topic": topic,
            "numPartitions": made[topic].partitions,
            "replicationFactor": made[topic].replication_factor,
            "records": made[topic].records,
            "sizeBytes": made[topic].size_bytes,
        },
    )


@topics.command("copy-settings")
@click.argument("source", metavar="FROM", shell_complete=complete_topic)
@click.argument("targets", nargs=-1, required=True, metavar="TO...", shell_complete=complete_topic)
@click.option("--exact", is_flag=True, help="Also unset settings of TO that are not set for FROM.")
@yes_option
@dry_run_option
@common_options
def copy_settings(
    connection: Connection,
    output: Output,
    source: str,
    targets: tuple[str, ...],
    exact: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Copy the settings of one topic to others. Throttled replicas are not copied, because they name partitions.

    A change that deletes records of the others asks for confirmation.

    \b
    Examples:
      barnabas topics copy-settings orders orders-new
      barnabas topics copy-settings orders orders-new payments --exact --dry-run
    """
    from barnabas.operations.topics.changes import propose_copied_settings

    async def work(cluster: Cluster) -> Mapping[str, CopiedSettings]:
        proposal = await propose_copied_settings(cluster, source, targets, exact=exact)
        return await carry_out(proposal, dry_run=dry_run, yes=yes)

    copied = run(connection, work)
    show_results(
        output,
        ("name", "changes"),
        {name: each.error for name, each in copied.items()},
        lambda name, _: {"name": name, "changes": copied[name].changes},
    )
