"""`barnabas rehearse`: show what would become of a cluster if something happened. Nothing is sent.

Parses arguments and prints. What happens is in `operations.rehearsal.happenings`, the result in `operations.rehearsal.outcome`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection.connecting import run, through_controllers
from barnabas.cli.connection.options import common_options
from barnabas.cli.connection.profiles import BOOTSTRAP_CONTROLLERS, BOOTSTRAP_SERVERS, Connection
from barnabas.cli.terminal.declared_plan import load
from barnabas.cli.terminal.exit_codes import EXIT_NO
from barnabas.cli.terminal.failures import Failure, JudgingCommand, Misunderstood, failures
from barnabas.cli.terminal.output import Column, Output, columns, note, to_json
from barnabas.operations.quantities import bytes_text

if TYPE_CHECKING:
    from barnabas.operations.rehearsal.happenings import Happening
    from barnabas.operations.rehearsal.outcome import BrokerOutcome, PartitionOutcome
    from barnabas.operations.rehearsal.rehearse import Rehearsal, Scene

F = TypeVar("F", bound=Callable[..., Any])

_MAX_ROWS = 30
_COLORS = {
    "offline": "red",
    "belowMinIsr": "yellow",
    "deleted": "red",
    "ok": "green",
    "fenced": "red",
    "dead": "red",
    "missing": "red",
}


def _color(value: Any) -> str | None:
    from barnabas.operations.rehearsal.words import ARROW

    return _COLORS.get(str(value).rpartition(ARROW)[2])


_STEPS = columns(Column("step", title="WHAT HAPPENS"), "records", "refused")
_PARTITIONS = columns(
    *("topic", "partition", "leader", "isr", "replicas"),
    Column("health", style=_color),
    Column("copy", title="TO-COPY"),
)
_BROKERS = columns(
    *(
        "broker",
        "rack",
        Column("status", style=_color),
        "leaders",
        "replicas",
        Column("size"),
        Column("copy", title="TO-COPY"),
    )
)
_JSON = columns("kind")


class _InOrder(JudgingCommand):
    """A command that remembers in which order options were given, because things happen in this order."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, list(args))
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [param.name for param in order if isinstance(param, click.Option) and param.multiple]
        return rest


_ORDER = "barnabas.rehearse.order"


def _happens(name: str, metavar: str, text: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(f"--{name}", multiple=True, metavar=metavar, help=text, **attributes)


@click.command("rehearse", cls=_InOrder, short_help="Show what would become of a cluster if something happened.")
@click.argument("source", required=False, type=click.Path(exists=True, path_type=Path), metavar="[SOURCE]")
@_happens("kill", "NODE", "The node dies at once, as by kill -9.", type=int)
@_happens("kill-rack", "RACK", "All nodes of the rack die at once.")
@_happens("stop", "NODE", "The node stops cleanly.", type=int)
@_happens("start", "NODE", "The node returns and catches up.", type=int)
@_happens("start-rack", "RACK", "All nodes of the rack return.")
@_happens("fail-log-dir", "NODE:ID", "A log dir of the broker fails; ID is its directory id.")
@_happens("unregister", "NODE", "The broker is unregistered.", type=int)
@_happens("reassign", "FILE", "Reassignment in the format of kafka-reassign-partitions.", type=click.Path(exists=True))
@_happens("apply", "FILE", "A file or folder that declares the cluster is applied.", type=click.Path(exists=True))
@_happens("delete-topic", "TOPIC", "The topic is deleted.")
@_happens("elect", "TYPE", "Leaders are elected.", type=click.Choice(["preferred", "unclean"]))
@click.option("--delete", is_flag=True, help="With --apply, also delete what is not declared, as `apply --delete`.")
@click.option(
    "--at-once", is_flag=True, help="Leave out what takes a while: followers catching up, periodic elections."
)
@click.option("--records", "with_records", is_flag=True, help="Show the records that would be written.")
@click.option("--all", "everything", is_flag=True, help=f"Show all partitions, not only {_MAX_ROWS}, the worst first.")
@click.option(
    "--server-properties",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Settings of a controller.  [default: those of a running broker, or Kafka's defaults]",
)
@common_options
def rehearse(
    source: Path | None,
    delete: bool,
    at_once: bool,
    with_records: bool,
    everything: bool,
    server_properties: Path | None,
    connection: Connection,
    output: Output,
    **given: tuple[Any, ...],
) -> None:
    """Show what the controller would decide, and what would become of the cluster, if something happened.

    The decisions are those of a controller of barnabas, made on a copy of the metadata; those of Apache Kafka 4.3 are the same.
    Nothing is sent. Options happen in the order in which they are given. After each, followers catch up, and at the end the
    periodic elections are held. Exits with 2 if a partition would be worse than before, or something would be refused.

    The metadata is that of the running cluster, or of SOURCE: a snapshot (*.checkpoint), the directory of a metadata log, or a
    log dir that contains one. Sizes and the quorum are known of a running cluster only.

    \b
    Examples:
      barnabas rehearse --kill 3
      barnabas rehearse --kill-rack a --kill 4 --records
      barnabas rehearse --reassign plan.json --kill 2
      barnabas rehearse --apply cluster.yaml -o json
      barnabas rehearse backup/__cluster_metadata-0 --stop 1 --start 1
    """
    from barnabas.operations.rehearsal.rehearse import rehearse as carry_out

    ctx = click.get_current_context()
    happenings = list(_happenings(ctx, given, delete))
    if not happenings:
        raise Misunderstood("Give something that happens, such as --kill 3.", ctx)
    if delete and not given["apply"]:
        raise Misunderstood("--delete needs --apply.", ctx)
    scene = _scene(source, connection, server_properties)
    with failures():
        found = carry_out(scene, happenings, at_once=at_once)
    if output.is_for_people:
        _show(output, found, with_records=with_records, everything=everything)
    else:
        output.rows(_JSON, _rows(found))
    if found.refusals or found.outcome.worse:
        sys.exit(EXIT_NO)


# --- what happens


def _happenings(ctx: click.Context, given: dict[str, tuple[Any, ...]], delete: bool) -> Iterator[Happening]:
    values = {name: iter(each) for name, each in given.items()}
    for name in ctx.meta[_ORDER]:
        if name in values:
            yield _happening(name, next(values[name]), delete)


def _happening(name: str, value: Any, delete: bool) -> Happening:
    from barnabas.operations.rehearsal.asked import happening
    from barnabas.operations.rehearsal.declared import Apply

    if name == "reassign":
        return _reassignment(Path(value))
    if name == "apply":
        return Apply(load([value]), delete)
    option = name.replace("_", "-")
    try:
        return happening(option, str(value))
    except ValueError as error:
        text = f"Invalid value for '--{option}': {error}."
        raise Misunderstood(text, click.get_current_context()) from None


def _reassignment(path: Path) -> Happening:
    from barnabas.operations.reassignments.files import ReassignmentFileError, check_executable, parse_reassignment
    from barnabas.operations.rehearsal.happenings import Reassign

    try:
        found = parse_reassignment(path.read_text(encoding="utf-8"))
        check_executable(found)
    except (OSError, UnicodeDecodeError, ReassignmentFileError, ValueError) as error:
        raise Failure(str(error), resource=str(path)) from None
    return Reassign(found.targets, str(path))


# --- the cluster


def _scene(source: Path | None, connection: Connection, properties: Path | None) -> Scene:
    from barnabas.config import server
    from barnabas.config.values import ConfigError
    from barnabas.operations.metadata_image import load_files, read_image
    from barnabas.operations.rehearsal.live import look_around
    from barnabas.operations.rehearsal.rehearse import Scene

    config = None
    if properties is not None:
        try:
            config = server.load(properties.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            raise Failure(str(error), resource=str(properties)) from None
    if source is not None:
        if any(_is_given(connection, name) for name in (BOOTSTRAP_CONTROLLERS, BOOTSTRAP_SERVERS)):
            raise Misunderstood("Give either SOURCE or a running cluster.", click.get_current_context())
        with failures():
            loaded = load_files(source)
        if loaded.problem is not None:
            note(f"warning: {loaded.problem}")
        return Scene(loaded.image, config or server.load())
    around = run(connection, look_around)
    for warning in around.warnings:
        note(f"warning: {warning}")
    image = run(through_controllers(connection), read_image)
    return Scene(image, config or around.config, around.voters, around.sizes)


def _is_given(connection: Connection, name: str) -> bool:
    setting = connection.settings.get(name)
    return setting is not None and setting.origin in ("--bootstrap-controller", "--bootstrap-server", "-X")


# --- output


def _show(output: Output, found: Rehearsal, *, with_records: bool, everything: bool) -> None:
    from barnabas.operations.rehearsal import words

    output.rows(_STEPS, ({"step": s.what, "records": len(s.records), "refused": len(s.refusals)} for s in found.steps))
    for refusal in found.refusals:
        note(f"refused: {refusal}")
    if with_records:
        output.title("Records")
        rows = (
            {"step": each.step, "record": f"{each.type} {to_json(each.values)}"} for each in words.records_of(found)
        )
        output.rows(columns("step", "record"), rows)
    partitions = words.worst_first(found)
    shown = partitions if everything else partitions[:_MAX_ROWS]
    if partitions:
        output.title("Partitions")
        output.rows(_PARTITIONS, map(_partition_row, shown))
        if more := len(partitions) - len(shown):
            note(f"and {more:,} more partitions (--all shows them)")
    output.title("Brokers")
    output.rows(_BROKERS, map(_broker_row, found.outcome.brokers))
    note(words.summary(found))


def _partition_row(each: PartitionOutcome) -> dict[str, Any]:
    from barnabas.operations.rehearsal.words import notes_of, then

    before, after = each.before, each.after
    return {
        "topic": each.topic,
        "partition": each.partition,
        "leader": then(before.leader, after.leader),
        "isr": then(before.isr, after.isr),
        "replicas": then(before.replicas, after.replicas),
        "health": ", ".join([after.health.value, *notes_of(each)]),
        "copy": None if each.bytes_to_copy is None else bytes_text(each.bytes_to_copy) if each.bytes_to_copy else "-",
    }


def _broker_row(each: BrokerOutcome) -> dict[str, Any]:
    from barnabas.operations.rehearsal.words import then

    before, after = each.before, each.after
    sizes = [None if size is None else bytes_text(size) for size in (before.bytes, after.bytes)]
    return {
        "broker": each.broker_id,
        "rack": each.rack,
        "status": then(before.status, after.status),
        "leaders": then(before.leaders, after.leaders),
        "replicas": then(before.replicas, after.replicas),
        "size": then(*sizes),
        "copy": bytes_text(each.bytes_in) if each.bytes_in else None,
    }


def _rows(found: Rehearsal) -> Iterator[dict[str, Any]]:
    from barnabas.operations.rehearsal.words import records_of

    for step in found.steps:
        yield {"kind": "step", "step": step.what, "records": len(step.records), "refused": step.refusals}
    for record in records_of(found):
        yield {
            "kind": "record",
            "step": record.step,
            "type": record.type,
            "version": record.version,
            "record": record.values,
        }
    for each in found.outcome.partitions:
        yield {
            "kind": "partition",
            "topic": each.topic,
            "partition": each.partition,
            "before": _state(each.before),
            "after": _state(each.after),
            "isWorse": each.is_worse,
            "mayLoseRecords": each.may_lose_records,
            "bytesToCopy": each.bytes_to_copy,
        }
    for broker in found.outcome.brokers:
        yield {
            "kind": "broker",
            "broker": broker.broker_id,
            "rack": broker.rack,
            "before": broker.before._asdict(),
            "after": broker.after._asdict(),
            "bytesIn": broker.bytes_in,
        }


def _state(state: Any) -> dict[str, Any]:
    return {
        "leader": state.leader,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "eligibleLeaderReplicas": list(state.elr),
        "health": state.health.value,
        "isReassigning": state.is_reassigning,
    }
