"""`barnabas cluster`: brokers and controllers, features, API versions, and whether a broker can be stopped.

Parses arguments and prints rows; the checks are in `operations.safe_to_stop` and `operations.quorum.health`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import common_options, dry_run_option, yes_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.node import local_cluster
from barnabas.cli.terminal.changes import announce, confirm, show_results
from barnabas.cli.terminal.command_groups import CommandGroup
from barnabas.cli.terminal.exit_codes import EXIT_FAILED, EXIT_NO
from barnabas.cli.terminal.failures import JudgingCommand
from barnabas.cli.terminal.output import Column, Format, Output, columns, note
from barnabas.cli.terminal.watch import watch_option, watched
from barnabas.config.internal_topics import CLUSTER_METADATA_TOPIC
from barnabas.operations.quantities import bytes_text
from barnabas.similar_names import did_you_mean
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import ClusterDescription
    from barnabas.client.admin.features import FeatureUpdate, UpgradeType
    from barnabas.client.cluster import Cluster
    from barnabas.operations.quorum.active_controller import ActiveController
    from barnabas.operations.safe_to_stop import StopReport

Rows = list[dict[str, Any]]

_FENCED = Column("isFenced", "FENCED", style=lambda value: "red" if value else None)
_BROKER_COLUMNS = columns("id", "host", "port", "rack", _FENCED)
_CONTROLLER_COLUMNS = columns("id", "host", "port", Column("isActive", "ACTIVE"))
_FEATURE_COLUMNS = columns(
    "feature",
    Column("supportedMinVersion", "MIN"),
    Column("supportedMaxVersion", "MAX"),
    Column("finalizedVersionLevel", "LEVEL"),
    Column("metadataVersion", "VERSION"),
    "epoch",
)
_EFFECT = Column("effect", style=lambda value: "red" if value in ("offline", "quorumLost") else "yellow")
_STOP_COLUMNS = columns("topic", "partition", _EFFECT, "replicas", "isr", Column("minInsyncReplicas", "MIN-ISR"))
_SKEWED_PERCENT = 20
"""Skew that is shown in colour."""
_TOPICS_OF_A_REASON = 10
"""Topics that a reason of safe-to-stop names; the others are counted."""


@click.group(cls=CommandGroup, short_help="Show nodes and features; run a cluster on this machine.")
def cluster() -> None:
    """Show brokers, controllers, features and API versions; check whether a broker can be stopped; run a cluster here.

    \b
    Examples:
      barnabas cluster up --nodes 3
      barnabas cluster describe
      barnabas cluster describe --bootstrap-controller localhost:9093
      barnabas cluster brokers
      barnabas cluster features
      barnabas cluster upgrade --release-version 4.3 --dry-run
      barnabas cluster safe-to-stop 2 && systemctl stop kafka
      barnabas cluster api-versions --node 1 Fetch Produce
    """


for _command in local_cluster.COMMANDS:
    cluster.add_command(_command)


# --- nodes


@cluster.command("describe")
@click.option("--authorized-operations", is_flag=True, help="Also show the operations you are authorized for.")
@common_options
def describe(authorized_operations: bool, connection: Connection, output: Output) -> None:
    """Show the cluster id, the brokers and the active controller. With --bootstrap-controller, show the controllers.

    The active controller is the leader of the metadata quorum; it may be a node that is not a broker. Fenced brokers are
    included if the cluster can list them (Kafka 4.0 and newer).

    \b
    Examples:
      barnabas cluster describe
      barnabas cluster describe --authorized-operations -o json
    """

    async def ask(cluster: Cluster) -> tuple[ClusterDescription, ActiveController]:
        from barnabas.client.admin.brokers import Brokers
        from barnabas.operations.quorum.active_controller import find_active_controller

        brokers = Brokers(cluster)
        has_fenced = not cluster.settings.bootstrap_controllers and await brokers.can_list_fenced_brokers()
        described = await brokers.describe_cluster(
            include_fenced_brokers=has_fenced, include_authorized_operations=authorized_operations
        )
        return described, await find_active_controller(cluster)

    found, active = run(connection, ask)
    if active.id is None:
        note(f"warning: the active controller is not known: {active.problem}")
    rows = [
        {"id": node.id, "host": node.host, "port": node.port, "isActive": node.id == active.id}
        if found.has_controllers
        else {"id": node.id, "host": node.host, "port": node.port, "rack": node.rack, "isFenced": node.is_fenced}
        for node in found.nodes
    ]
    head: dict[str, Any] = {"clusterId": found.cluster_id, "controllerId": active.id}
    if found.authorized_operations is not None:
        head["authorizedOperations"] = sorted(operation.name for operation in found.authorized_operations)
    kind = "controllers" if found.has_controllers else "brokers"
    if output.format is Format.TABLE:
        output.one(head)
        output.title(kind)
        output.rows(_CONTROLLER_COLUMNS if found.has_controllers else _BROKER_COLUMNS, rows)
    elif output.format is Format.TSV:
        output.rows(_CONTROLLER_COLUMNS if found.has_controllers else _BROKER_COLUMNS, rows)
    else:
        output.one({**head, kind: rows})


def _percent(value: float) -> str:
    return f"{value:+.0f}%" if value else "0%"


def _skewed(value: float | None) -> str | None:
    return "yellow" if value is not None and abs(value) > _SKEWED_PERCENT else None


def _bad(count: int | None) -> str | None:
    return "red" if count else None


_LOAD_COLUMNS = columns(
    "broker",
    Column("status", style=lambda value: None if value == "ok" else "red"),
    "rack",
    "leaders",
    Column("leaderSkewPercent", "SKEW", style=_skewed, show=_percent),
    "replicas",
    Column("replicaSkewPercent", "SKEW", style=_skewed, show=_percent),
    Column("underReplicated", style=_bad),
    Column("outOfSync", style=_bad),
    Column("sizeBytes", "DISK-USED", show=bytes_text),
    Column("usableBytes", "USABLE", show=bytes_text),
    Column("totalBytes", "TOTAL", show=bytes_text),
)


@cluster.command("brokers", short_help="Show leaders, replicas, skew and disks of each broker.")
@watch_option
@common_options
def brokers(watch: float | None, connection: Connection, output: Output) -> None:
    """Show the load of each broker: leaders, replicas, replicas out of sync, and disks.

    SKEW is the difference from the mean of all running brokers. UNDER-REPLICATED counts the partitions that the broker leads
    and that lack in-sync replicas, OUT-OF-SYNC its own replicas that are not in sync. DISK-USED is the size of its logs.

    \b
    Examples:
      barnabas cluster brokers
      barnabas cluster brokers --watch 5
      barnabas cluster brokers -o json
    """
    from barnabas.operations.broker_loads import BrokerLoad, look_at_brokers

    def row(load: BrokerLoad) -> dict[str, Any]:
        return {
            "broker": load.broker_id,
            "host": load.node.host if load.node else None,
            "port": load.node.port if load.node else None,
            "rack": load.node.rack if load.node else None,
            "status": load.status.value,
            "leaders": load.leaders,
            "leaderSkewPercent": load.leader_skew_percent,
            "replicas": load.replicas,
            "replicaSkewPercent": load.replica_skew_percent,
            "underReplicated": load.under_replicated,
            "outOfSync": load.out_of_sync,
            "sizeBytes": load.disk.used_bytes,
            "usableBytes": load.disk.usable_bytes,
            "totalBytes": load.disk.total_bytes,
        }

    async def show(cluster: Cluster) -> None:
        loads = await look_at_brokers(cluster)
        output.rows(_LOAD_COLUMNS, map(row, loads))
        for load in loads:
            if load.disk_error is not None:
                note(f"warning: broker {load.broker_id}: disks: {load.disk_error.code.name}: {load.disk_error.message}")

    run(connection, lambda cluster: watched(output, watch, lambda: show(cluster)))


@cluster.command("unregister")
@click.argument("broker", type=int)
@yes_option
@dry_run_option
@common_options
def unregister(broker: int, yes: bool, dry_run: bool, connection: Connection, output: Output) -> None:
    """Unregister a broker that was stopped and will not come back.

    A running broker registers itself again. The broker stays in the replica lists of its partitions: move them first.

    \b
    Examples:
      barnabas cluster unregister 4
    """

    async def work(cluster: Cluster) -> dict[int, KafkaError | None]:
        from barnabas.client.admin.brokers import Brokers

        announce([f"unregister broker {broker}"], dry_run=dry_run)
        if dry_run:
            return {}
        confirm(f"Unregister broker {broker}?", yes=yes)
        try:
            await Brokers(cluster).unregister_broker(broker)
        except KafkaError as error:
            return {broker: error}
        return {broker: None}

    show_results(output, ["brokerId"], run(connection, work), lambda key, _: {"brokerId": key})


@cluster.command("api-versions", short_help="Show the API versions that each node serves.")
@click.argument("apis", nargs=-1, metavar="[API...]")
@click.option("--node", "nodes", type=int, multiple=True, help="Only this node; may be repeated.")
@common_options
def api_versions(apis: tuple[str, ...], nodes: tuple[int, ...], connection: Connection, output: Output) -> None:
    """Show the API versions that each node serves, and the version this client uses (USABLE).

    \b
    Examples:
      barnabas cluster api-versions
      barnabas cluster api-versions --node 1 Fetch Produce
    """
    from barnabas.cli.protocol.decoding import DecodingError, find_api
    from barnabas.client.versions import NodeVersions, common_range
    from barnabas.wire import APIS

    try:
        wanted = {find_api(name).name for name in apis}
    except DecodingError as error:
        raise click.UsageError(str(error)) from None

    async def ask(cluster: Cluster) -> Mapping[int, NodeVersions | KafkaError]:
        from barnabas.client.admin.brokers import Brokers

        return await Brokers(cluster).api_versions(nodes or None)

    failed: dict[int, KafkaError] = {}
    answers = sorted(run(connection, ask).items())
    with output.table(
        columns("nodeId", "apiKey", "api", Column("minVersion", "MIN"), Column("maxVersion", "MAX"), "usable")
    ) as table:
        for node_id, found in answers:
            if isinstance(found, KafkaError):
                failed[node_id] = found
                continue
            for key, offered in sorted(found.ranges.items()):
                api = APIS.get(key)
                if wanted and (api is None or api.name not in wanted):
                    continue
                first, last = common_range(api, offered) if api is not None else (0, -1)
                row = {"nodeId": node_id, "apiKey": key, "api": None if api is None else api.name}
                usable = last if first <= last else None
                table.add({**row, "minVersion": offered.first, "maxVersion": offered.last, "usable": usable})
    for node_id, problem in failed.items():
        note(f"Error: node {node_id}: {problem.code.name}: {problem.message}")
    if failed:
        raise SystemExit(EXIT_FAILED)


# --- features


@cluster.command("features", short_help="Show supported and finalized feature levels.")
@click.option("--node", type=int, help="Id of the node to ask; nodes may differ during an upgrade.")
@common_options
def features(node: int | None, connection: Connection, output: Output) -> None:
    """Show the feature levels that a node supports, and the finalized level of the cluster.

    \b
    Examples:
      barnabas cluster features
      barnabas cluster features --node 2 -o json
    """
    from barnabas.client.admin.features import FeatureMetadata, Features
    from barnabas.metadata.versions import METADATA_VERSION
    from barnabas.operations.features import level_text

    async def ask(cluster: Cluster) -> FeatureMetadata:
        return await Features(cluster).describe_features(node_id=node)

    found = run(connection, ask)
    rows = []
    for name, (first, last) in sorted(found.supported_features.items()):
        level = found.level(name)
        row = {"feature": name, "supportedMinVersion": first, "supportedMaxVersion": last}
        version = level_text(name, level) if name == METADATA_VERSION else None
        row |= {"finalizedVersionLevel": level, "metadataVersion": version, "epoch": found.finalized_features_epoch}
        rows.append(row)
    output.rows(_FEATURE_COLUMNS, rows)


_LEVELS = click.argument("levels", nargs=-1, metavar="[FEATURE=LEVEL...]")
_RELEASE = click.option(
    "--release-version", metavar="VERSION", help="Set every feature to the level of a new cluster of this release."
)


@cluster.command("upgrade")
@_LEVELS
@_RELEASE
@yes_option
@dry_run_option
@common_options
def upgrade(
    levels: tuple[str, ...],
    release_version: str | None,
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Raise feature levels, all of the given ones or none.

    A raised level cannot always be lowered again. The cluster validates the change first; --dry-run stops there.

    \b
    Examples:
      barnabas cluster upgrade group.version=1
      barnabas cluster upgrade metadata.version=4.3-IV0 --dry-run
      barnabas cluster upgrade --release-version 4.3
    """
    from barnabas.client.admin.features import UpgradeType

    updates = _updates(levels, release_version, UpgradeType.UPGRADE)
    _change_features(updates, "raise", yes, dry_run, connection, output)


@cluster.command("downgrade")
@_LEVELS
@_RELEASE
@click.option("--unsafe", is_flag=True, help="Allow a downgrade that may lose metadata permanently.")
@yes_option
@dry_run_option
@common_options
def downgrade(
    levels: tuple[str, ...],
    release_version: str | None,
    unsafe: bool,
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
) -> None:
    """Lower feature levels, all of the given ones or none. Level 0 disables a feature.

    \b
    Examples:
      barnabas cluster downgrade group.version=0
      barnabas cluster downgrade --release-version 4.2 --dry-run
    """
    from barnabas.client.admin.features import UpgradeType

    kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    _change_features(_updates(levels, release_version, kind), "lower", yes, dry_run, connection, output, unsafe=unsafe)


def _updates(levels: Sequence[str], release_version: str | None, upgrade_type: UpgradeType) -> dict[str, FeatureUpdate]:
    from barnabas.operations.features import (
        parse_named_level,
        parse_release,
        updates_for_release,
        updates_of,
    )

    if bool(levels) == (release_version is not None):
        raise click.UsageError("Give either FEATURE=LEVEL or --release-version.")
    try:
        if release_version is not None:
            return updates_for_release(parse_release(release_version), upgrade_type)
        return updates_of(map(parse_named_level, levels), upgrade_type)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _change_features(
    updates: Mapping[str, FeatureUpdate],
    verb: str,
    yes: bool,
    dry_run: bool,
    connection: Connection,
    output: Output,
    *,
    unsafe: bool = False,
) -> None:
    from barnabas.client.admin.features import Features

    async def work(cluster: Cluster) -> dict[str, KafkaError | None]:
        features = Features(cluster)
        before = await features.describe_features()
        for name in updates.keys() - before.supported_features.keys():
            note(f"there is no feature {name}{did_you_mean(name, before.supported_features)}")
        announce(
            (
                f"{verb} {name} from {before.level(name)} to {update.max_version_level}"
                for name, update in updates.items()
                if before.level(name) != update.max_version_level
            ),
            dry_run=dry_run,
        )
        checked = await features.update_features(updates, validate_only=True)
        if dry_run or any(isinstance(result, KafkaError) for result in checked.values()):
            return checked
        question = "Metadata may be lost permanently. Continue?" if unsafe else "This may be irreversible. Continue?"
        confirm(question, yes=yes)
        return await features.update_features(updates)

    results = run(connection, work)
    show_results(
        output, ["feature", "level"], results, lambda key, _: {"feature": key, "level": updates[key].max_version_level}
    )


# --- stopping a broker


@cluster.command("safe-to-stop", cls=JudgingCommand, short_help="Check whether a broker can be stopped.")
@click.argument("broker", type=int)
@click.option("--verbose", is_flag=True, help="Also list every affected partition.")
@common_options
def safe_to_stop(broker: int, verbose: bool, connection: Connection, output: Output) -> None:
    """Check whether a broker can be stopped without losing availability. Exits with 0 if it can, with 2 if not.

    Shows the verdict, then the reasons: partitions that would be offline, or would have fewer in-sync replicas than
    min.insync.replicas, so that producers with acks=all get errors. If the node is a voter, also checks that the metadata
    quorum keeps its majority. The other formats list every affected partition.

    \b
    Examples:
      barnabas cluster safe-to-stop 2
      barnabas cluster safe-to-stop 2 --verbose
      barnabas cluster safe-to-stop 2 -o json && systemctl stop kafka
    """
    from barnabas.operations.safe_to_stop import judge_stop, reasons

    report = run(connection, lambda cluster: judge_stop(cluster, broker))
    why = reasons(report, _TOPICS_OF_A_REASON)
    verdict = f"broker {broker} {'can' if report.is_safe else 'cannot'} be stopped"
    if output.is_for_people:
        output.title(verdict)
        for reason in why:
            output.write(f"- {reason}")
        output.flush()
        if verbose and report.affected:
            output.title("partitions")
            output.rows(_STOP_COLUMNS, _stop_rows(report))
    else:
        output.rows(_STOP_COLUMNS, _stop_rows(report))
        note(f"{verdict}: {'; '.join(why)}" if why else verdict)
    if report.is_fenced:
        note(f"broker {broker} is fenced: it leads no partition and is in no ISR")
    for warning in report.warnings:
        note(f"warning: {warning}")
    if not report.is_safe:
        raise SystemExit(EXIT_NO)


def _stop_rows(report: StopReport) -> Rows:
    rows: Rows = []
    for each in report.affected:
        row = {"topic": each.topic, "partition": each.partition.partition_index, "effect": each.effect.value}
        row |= {"replicas": list(each.partition.replicas), "isr": list(each.partition.isr)}
        rows.append({**row, "minInsyncReplicas": each.min_insync_replicas, "text": str(each)})
    if report.quorum_loss is not None:
        row = {"topic": CLUSTER_METADATA_TOPIC, "partition": 0, "effect": "quorumLost", "replicas": report.voters}
        text = f"the metadata quorum would be lost: {report.quorum_loss}"
        rows.append({**row, "isr": None, "minInsyncReplicas": None, "text": text})
    return rows
