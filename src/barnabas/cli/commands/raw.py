"""`barnabas raw`: send any request as JSON to any node; print the response as `barnabas decode` does.

Parses arguments and prints; `cli.protocol.raw_requests` chooses version and fields. Exit code 1: there was no answer, or it
contains error codes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

import click
from click.shell_completion import CompletionItem

from barnabas.cli.connection.connecting import run
from barnabas.cli.connection.options import connection_options, never_asks_option
from barnabas.cli.connection.profiles import Connection
from barnabas.cli.terminal.failures import Failure, ItemsFailed
from barnabas.cli.terminal.output import Format, Output, note
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas import wire
    from barnabas.client.cluster import Cluster
    from barnabas.client.routing import Destination


def _complete_api(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from barnabas.wire import APIS

    names = (api.name for api in APIS.values())
    return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


@click.command(no_args_is_help=True, short_help="Send any request as JSON, and show the response.")
@click.argument("api", shell_complete=_complete_api)
@click.argument("body", required=False, metavar="[JSON]")
@click.option("-f", "--file", type=click.File("r"), help="File with the request; - is standard input.")
@click.option(
    "--to",
    "to",
    default="any",
    show_default=True,
    metavar="TARGET",
    help="Node to send to: any, controller, node:ID, leader:TOPIC:PARTITION, or the coordinator of group:ID,"
    " transaction:ID or share:KEY.",
)
@click.option(
    "--version",
    type=click.IntRange(0),
    help="API version.  [default: the newest that client, node and the given fields allow]",
)
@click.option("--records", "open_records", is_flag=True, help="Also decode the record batches in the response.")
@click.option("--compact", is_flag=True, help="Print the response on one line.")
@click.option(
    "--timeout-ms", type=click.IntRange(1), help="Timeout in milliseconds.  [default: request.timeout.ms of the client]"
)
@click.option("--example", is_flag=True, help="Print an example request with all fields, without sending it.")
@click.option("--dry-run", is_flag=True, help="Print the request and its bytes as hex, without sending it.")
@never_asks_option
@connection_options
def raw(
    api: str,
    body: str | None,
    file: TextIO | None,
    to: str,
    version: int | None,
    open_records: bool,
    compact: bool,
    timeout_ms: int | None,
    example: bool,
    dry_run: bool,
    connection: Connection,
) -> None:
    """Send a request given as JSON, and show the response as JSON.

    API is a name or an API key. The JSON has the form that barnabas decode prints: omitted fields have their defaults, bytes
    are base64. Give it as an argument, as a file, or with - on standard input; without it, all fields have their defaults.
    The request is sent once and never retried. Exits with 1 if the response contains error codes.

    \b
    Examples:
      barnabas raw ListGroups
      barnabas raw Metadata '{"topics": [{"name": "orders"}]}' --version 12
      barnabas raw DescribeQuorum --to controller \\
          '{"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}'
      barnabas raw CreateTopics --example > request.json
      barnabas raw CreateTopics --file request.json --to controller
      barnabas decode --request --file frame.bin | barnabas raw Fetch --to leader:orders:0 -
    """
    from barnabas.cli.protocol.decoding import DecodingError, find_api
    from barnabas.cli.protocol.raw_requests import RawError, parse_body, parse_destination
    from barnabas.cli.protocol.raw_requests import example as example_of

    try:
        found = find_api(api)
    except DecodingError as error:
        raise Failure(str(error), advice="list APIs with: barnabas cluster api-versions") from None
    try:
        if version is not None and version not in found.versions:
            raise click.UsageError(f"{found.name} has versions {found.versions}, not {version}.")
        if example:
            _print(example_of(found, found.versions.last if version is None else version), compact)
            return
        destination = parse_destination(to)
        content, said = parse_body(_text(body, file))
        asked = version if version is not None else said
        document = run(
            connection,
            lambda cluster: _exchange(cluster, found, content, asked, destination, timeout_ms, open_records, dry_run),
        )
    except (RawError, DecodingError) as error:
        raise Failure(str(error), advice=f"see its fields with: barnabas raw {found.name} --example") from None
    if document is None:
        return
    _print(document, compact)
    if document.get("errors"):
        raise ItemsFailed(ErrorCode[name] for name in document["errors"].values() if name in ErrorCode.__members__)


async def _exchange(
    cluster: Cluster,
    api: wire.Api,
    content: dict[str, Any],
    version: int | None,
    to: Destination,
    timeout_ms: int | None,
    open_records: bool,
    dry_run: bool,
) -> dict[str, Any] | None:
    from barnabas import wire
    from barnabas.cli.protocol.decoding import message_document
    from barnabas.cli.protocol.raw_requests import RawError, best_request, request_in
    from barnabas.client.routing import Coordinator
    from barnabas.client.versions import common_range

    if isinstance(to, Coordinator):
        await cluster.coordinators([to.key], to.type)  # wait until there is a coordinator
    key = wire.message_class(api.request).schema().key
    if version is None:
        common = common_range(api, (await cluster.versions(to)).ranges.get(key or 0))
        if common.first > common.last:
            raise RawError(
                f"the node serves no version of {api.name} that this client supports; --version sends it anyway"
            )
        request, version = best_request(api, content, common)
    else:
        request = request_in(api, content, version)
    note(f"{'would send' if dry_run else 'sending'} {api.request} v{version}")
    if dry_run:
        return {"message": api.request, "version": version, "hex": wire.encode(request, version).hex(" ")}
    if api.name == "Produce" and getattr(request, "acks", None) == 0:
        await cluster.post(request, to, version=version)
        note("no response: acks is 0")
        return None
    response = await cluster.send(request, to, version=version, timeout_ms=timeout_ms)
    return message_document(response, version, open_records)


def _text(body: str | None, file: TextIO | None) -> str:
    if file is not None and body not in (None, "-"):
        raise click.UsageError("JSON and --file cannot both be given.")
    if file is not None:
        return file.read()
    return sys.stdin.read() if body == "-" else body or ""


def _print(document: dict[str, Any], compact: bool) -> None:
    if not compact:
        Output(Format.JSON).one(document)
        return
    with Output(Format.JSONL).table(()) as table:
        table.add(document)
