"""`barnabas kafka-dump-log`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import struct
from pathlib import Path

import click

from barnabas.cli.kafka.drop_in import KafkaTool
from barnabas.cli.kafka.kafka_dump_log.lines import Decode, DumpError, Mismatches, Options, dump_file
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.operations.records.log_records import LogKind

_DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"
_MAX_INT32 = 2**31 - 1


def _number(code: str, size: int) -> Decode:
    def decode(data: bytes) -> str:
        if len(data) != size:
            raise DumpError(f"a number of {size} bytes was expected, and there are {len(data)}")
        return str(struct.unpack(code, data)[0])

    return decode


_DECODERS: dict[str, Decode] = {
    "StringDecoder": lambda data: data.decode("utf-8", "replace"),
    "LongDecoder": _number(">q", 8),
    "IntegerDecoder": _number(">i", 4),
    "DefaultDecoder": lambda data: data.hex(),
}


@click.command(
    "kafka-dump-log", cls=KafkaTool, short_help="Dump segments, indexes and snapshots as Kafka's script does."
)
@click.option("--files", required=True, multiple=True, metavar="FILE,...", help="The files to dump.")
@click.option("--print-data-log", is_flag=True, help="Print keys and values of records; implied by every decoder.")
@click.option("--deep-iteration", is_flag=True, help="Print the records of batches; implied by --print-data-log.")
@click.option("--offsets-decoder", is_flag=True, help="Records are those of __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Records are those of __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Records are those of the metadata log.")
@click.option("--remote-log-metadata-decoder", is_flag=True, help="Records are those of __remote_log_metadata.")
@click.option("--share-group-state-decoder", is_flag=True, help="Records are those of __share_group_state.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and values, and no control records.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes with their log, without printing them.")
@click.option("--index-sanity-check", is_flag=True, help="Only check whether a broker would rebuild the index.")
@click.option(
    "--max-message-size", type=click.IntRange(1), default=5 * 1024 * 1024, help="Size of the largest batch, in bytes."
)
@click.option("--max-bytes", type=click.IntRange(1), default=_MAX_INT32, help="Number of bytes to read from each log.")
@click.option("--key-decoder-class", default=_DEFAULT_DECODER, metavar="CLASS", help="One of Kafka's own decoders.")
@click.option("--value-decoder-class", default=_DEFAULT_DECODER, metavar="CLASS", help="One of Kafka's own decoders.")
def kafka_dump_log(
    files: tuple[str, ...],
    print_data_log: bool,
    deep_iteration: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    cluster_metadata_decoder: bool,
    remote_log_metadata_decoder: bool,
    share_group_state_decoder: bool,
    skip_record_metadata: bool,
    verify_index_only: bool,
    index_sanity_check: bool,
    max_message_size: int,
    max_bytes: int,
    key_decoder_class: str,
    value_decoder_class: str,
) -> None:
    """Dump segments, indexes and snapshots as Kafka's script of this name does. See also: barnabas dump."""
    asked = {
        LogKind.OFFSETS: offsets_decoder,
        LogKind.TRANSACTIONS: transaction_log_decoder,
        LogKind.METADATA: cluster_metadata_decoder,
        LogKind.REMOTE_LOGS: remote_log_metadata_decoder,
        LogKind.SHARE_GROUPS: share_group_state_decoder,
    }
    kind = next((kind for kind, is_asked in asked.items() if is_asked), LogKind.DATA)
    classes = (key_decoder_class, value_decoder_class)
    decodes_own = kind is not LogKind.DATA or any(name != _DEFAULT_DECODER for name in classes)
    options = Options(
        kind=kind,
        print_data_log=print_data_log or decodes_own,
        deep_iteration=deep_iteration,
        skip_record_metadata=skip_record_metadata,
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
        max_message_size=max_message_size,
        max_bytes=max_bytes,
        decode_key=_decoder(key_decoder_class),
        decode_value=_decoder(value_decoder_class),
    )
    output, mismatches = Output(), Mismatches()

    def warn(text: str) -> None:
        output.flush()
        note(text)

    try:
        for path in (Path(name.strip()) for group in files for name in group.split(",")):
            dump_file(path, options, output.write, warn, mismatches)
    except DumpError as error:
        raise Failure(str(error)) from None
    finally:
        output.flush()
    for line in mismatches.lines():
        note(line)


def _decoder(name: str) -> Decode:
    found = _DECODERS.get(name.rpartition(".")[2])
    if found is None:
        known = ", ".join(_DECODERS)
        raise click.UsageError(f"{name}: Java classes cannot be used here; the decoders are {known}.")
    return found
