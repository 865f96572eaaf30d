"""`barnabas decode`: decode bytes of the Kafka protocol as JSON, for debugging clients.

Parses arguments and prints; the work is in `cli/protocol`. Exit code 1: the bytes do not decode as the given message. Exit
code 2: wrong usage.
"""

from __future__ import annotations

import json
import re
import sys
from typing import BinaryIO

import click
from click.shell_completion import CompletionItem

from barnabas import wire
from barnabas.cli.protocol.byte_input import FORMATS, InputError, parse
from barnabas.cli.protocol.decoding import (
    DecodingError,
    Document,
    decode_message,
    decode_record,
    decode_requests,
    decode_responses,
    find_api,
    find_message,
    find_record,
    versions_of,
)
from barnabas.wire.apis import RECORD_NAMES

WHAT_BYTES_ARE = "what the bytes are: MESSAGE VERSION, or --request, --response or --record"


def _complete_message(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    if ctx.params.get("request"):
        return []
    names = wire.message_names()
    if ctx.params.get("response"):
        names = [api.name for api in wire.APIS.values()]
    if ctx.params.get("record"):
        names = [*RECORD_NAMES, *names]
    return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


def _complete_version(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    try:
        name = str(ctx.params.get("message"))
        name = find_api(name).response if ctx.params.get("response") else find_message(name)
    except DecodingError:
        return []
    return [CompletionItem(str(v)) for v in versions_of(name) if str(v).startswith(incomplete)]


@click.command(no_args_is_help=True)
@click.argument("message", required=False, shell_complete=_complete_message)
@click.argument("version", required=False, shell_complete=_complete_version)
@click.argument("hex", nargs=-1)
@click.option("--request", is_flag=True, help="Decode a request with its header, which names API and version.")
@click.option("--response", is_flag=True, help="Decode a response with its header; MESSAGE is the API's name or key.")
@click.option(
    "--record", is_flag=True, help="Decode a framed record; MESSAGE is its name or group.  [default: metadata]"
)
@click.option("--api", help="API name or key with --response, instead of MESSAGE.")
@click.option("--version", "api_version", type=int, help="API version with --response, instead of VERSION.")
@click.option("-f", "--file", type=click.File("rb"), help="File to read instead of HEX; - is standard input.")
@click.option(
    "--from", "form", type=click.Choice(FORMATS), default="auto", show_default=True, help="Format of the input."
)
@click.option(
    "--framed/--unframed", default=None, help="Whether a 4-byte size precedes each message.  [default: detected]"
)
@click.option("--records", "open_records", is_flag=True, help="Also decode the record batches in the message.")
@click.option("--compact", is_flag=True, help="Print each JSON document on one line.")
def decode(
    message: str | None,
    version: str | None,
    hex: tuple[str, ...],
    request: bool,
    response: bool,
    record: bool,
    api: str | None,
    api_version: int | None,
    file: BinaryIO | None,
    form: str,
    framed: bool | None,
    open_records: bool,
    compact: bool,
) -> None:
    """Decode bytes of the Kafka protocol as JSON.

    The input is HEX (spaces, colons and 0x are ignored), a file, or standard input. Files and standard input may hold hex
    or binary data. Names are not case-sensitive.

    \b
    Examples:
      barnabas decode ApiVersionsRequest 3 "03 6d 65 02 31 00"
      barnabas decode --request --file frame.bin
      barnabas decode --response Metadata 12 < response.hex
      barnabas decode --request --records --file produce.bin
      barnabas decode --record 01:0c:00:0e:6b:72:61:66:74:2e:76:65:72:73:69:6f:6e:00:01:00
      barnabas decode --record group 000100016700017400000000
    """
    words = [word for word in (message, version, *hex) if word is not None]
    if request + response + record > 1:
        raise click.UsageError("Only one of --request, --response and --record can be given.")
    if framed is not None and not (request or response):
        raise click.UsageError("--framed and --unframed can only be used with --request or --response.")
    if (api is not None or api_version is not None) and not response:
        raise click.UsageError("--api and --version can only be used with --response.")
    if not (request or response or record) and words and _is_hex(words[0]) and len(words[0]) > 4:
        raise click.UsageError(f"Specify {WHAT_BYTES_ARE}.")
    try:
        if request:
            documents = decode_requests(_bytes(words, file, form), framed, open_records)
        elif response:
            api_name = api or _next(words, "the API: barnabas decode --response API VERSION HEX")
            number = _version(words) if api_version is None else api_version
            documents = decode_responses(find_api(api_name), number, _bytes(words, file, form), framed, open_records)
        elif record:
            name = find_record(words.pop(0)) if words and not _is_hex(words[0]) else "metadata"
            documents = [decode_record(name, _bytes(words, file, form))]
        else:
            name = find_message(_next(words, WHAT_BYTES_ARE))
            number = _version(words)
            documents = [decode_message(name, number, _bytes(words, file, form), open_records)]
    except (DecodingError, InputError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for document in documents:
        click.echo(_shown(document, compact))


def _next(words: list[str], what: str) -> str:
    if not words:
        raise click.UsageError(f"Specify {what}.")
    return words.pop(0)


def _version(words: list[str]) -> int:
    word = _next(words, "the version of the message")
    if not word.isdecimal():
        raise click.UsageError(f"{word!r} is not a version: the arguments are MESSAGE VERSION HEX.")
    return int(word)


def _is_hex(word: str) -> bool:
    return word == "-" or re.fullmatch(r"(?:0[xX]|\\x|[0-9a-fA-F\s:,;_-])+", word) is not None


def _bytes(words: list[str], file: BinaryIO | None, form: str) -> bytes:
    if file is not None and words:
        raise click.UsageError(f"{words[0]!r} and --file cannot both be given.")
    if file is not None:
        return parse(file.read(), form)
    if words and words != ["-"]:
        return parse(" ".join(words).encode("utf-8", "surrogateescape"), "hex" if form == "auto" else form)
    if sys.stdin is None or (not words and sys.stdin.isatty()):
        raise click.UsageError("Nothing to decode: give HEX or --file FILE, or pipe bytes into the command.")
    return parse(sys.stdin.buffer.read(), form)


def _shown(document: Document, compact: bool) -> str:
    encoding = sys.stdout.encoding or "ascii"
    text = json.dumps(document, indent=None if compact else 2, ensure_ascii=not encoding.lower().startswith("utf"))
    # Control characters are escaped: a terminal would execute them.
    return re.sub("[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text)
