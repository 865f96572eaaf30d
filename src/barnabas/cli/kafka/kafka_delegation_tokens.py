"""`barnabas kafka-delegation-tokens`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_dates import date_format
from barnabas.cli.kafka.java_text import exception_text, padded
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note
from barnabas.security.principal import KafkaPrincipal, parse_principal
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_ACTIONS = ("create", "renew", "expire", "describe")
_REQUIRED = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
}
_INVALID = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renew", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}
_HEADINGS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)
_DATE = date_format("yyyy-MM-dd'T'HH:mm")
_BASE64 = re.compile(r"[A-Za-z0-9+/=]")


class _Token(NamedTuple):
    """A token, as its columns."""

    token_id: str
    hmac: bytes
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: Sequence[KafkaPrincipal]
    issued_ms: int
    expires_ms: int
    max_ms: int


@click.command(
    "kafka-delegation-tokens",
    cls=JavaTool,
    short_help="Create, renew, expire and describe tokens as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="REQUIRED: Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="REQUIRED: Properties file with the login of the client.")
@click.option("--create", is_flag=True, help="Create a token.")
@click.option("--renew", is_flag=True, help="Extend the life of a token.")
@click.option("--expire", is_flag=True, help="End the life of a token.")
@click.option("--describe", is_flag=True, help="Show tokens.")
@click.option(
    "--owner-principal", multiple=True, metavar="TYPE:NAME", help="The owner of the token, or of tokens to show."
)
@click.option("--renewer-principal", multiple=True, metavar="TYPE:NAME", help="A principal that may renew the token.")
@click.option("--max-life-time-period", metavar="MS", help="Life of the token; -1 takes the broker's maximum.")
@click.option("--renew-time-period", metavar="MS", help="Time to add; -1 takes the broker's default.")
@click.option("--expiry-time-period", metavar="MS", help="Time until the token expires; -1 is at once.")
@click.option("--hmac", metavar="BASE64", help="The HMAC of the token.")
@click.pass_context
def kafka_delegation_tokens(ctx: click.Context, /, **values: Any) -> None:
    """Create, renew, expire and describe delegation tokens as Kafka's script of this name does."""
    action = _checked_action(ctx, values)
    try:
        connection = connection_of(values["bootstrap_server"], values["command_config"])
        renewers, owners = (
            [parse_principal(text.strip()) for text in values[f"{each}_principal"]] for each in ("renewer", "owner")
        )
        if action == "create":
            lifetime_ms = _number(values, "max-life-time-period")
            shown = f"{_list(renewers)} , max-life-time-period :{lifetime_ms}"
            click.echo(f"Calling create token operation with renewers :{shown}")
            token = run(connection, lambda cluster: _create(cluster, owners, renewers, lifetime_ms))
            click.echo(f"Created delegation token with tokenId : {token.token_id}")
            _show([token])
        elif action == "describe":
            who = f"owners: {_list(owners)}" if owners else "current user."
            click.echo(f"Calling describe token operation for {who}")
            tokens = run(connection, lambda cluster: _describe(cluster, owners))
            click.echo(f"Total number of tokens : {len(tokens)}", nl=False)
            _show(tokens)
        else:
            period = "renew-time-period" if action == "renew" else "expiry-time-period"
            period_ms = _number(values, period)
            shown = f"{values['hmac']} , {action}-time-period :{period_ms}"
            click.echo(f"Calling {action} token operation with hmac :{shown}")
            hmac = _decoded(values["hmac"])
            expires_ms = run(connection, lambda cluster: _extend(cluster, action, hmac, period_ms))
            click.echo(f"Completed {action} operation. New expiry date : {_date(expires_ms)}", nl=False)
    except ValueError as error:
        _failed(str(error))
    except Failure as failure:
        cause = failure.__cause__
        _failed(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)


def _checked_action(ctx: click.Context, values: dict[str, Any]) -> str:
    """Return the action, or exit as Kafka's tool does if the options do not fit together."""

    def has(option: str) -> bool:
        return values[option.replace("-", "_")] not in (None, False, ())

    actions = [each for each in _ACTIONS if has(each)]
    if len(actions) != 1:
        refuse(ctx, "Command must include exactly one action: --create, --renew, --expire or --describe")
    (action,) = actions
    for option in ("bootstrap-server", "command-config", *_REQUIRED.get(action, ())):
        if not has(option):
            refuse(ctx, f'Missing required argument "[{option}]"')
    for option in _INVALID[action]:
        if has(option):
            refuse(ctx, f'Option "[{action}]" can\'t be used with option "[{option}]"')
    if not Path(values["command_config"]).exists():
        _failed(values["command_config"])
    return action


def _failed(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _number(values: dict[str, Any], option: str) -> int:
    text = values[option.replace("-", "_")]
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"Cannot parse argument '{text}' of option {option}")
    return int(text)


def _decoded(text: str) -> bytes:
    """Decode base64. Raises ValueError with Java's message."""
    for char in text:
        if not _BASE64.fullmatch(char):
            raise ValueError(f"Illegal base64 character {ord(char):x}")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise ValueError("Input byte array has wrong 4-byte ending unit") from None


def _list(principals: Sequence[KafkaPrincipal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _date(moment_ms: int) -> str:
    return _DATE(datetime.fromtimestamp(moment_ms / 1000).astimezone())


def _show(tokens: Sequence[_Token]) -> None:
    click.echo("\n" + padded(_HEADINGS, _WIDTHS))
    for token in tokens:
        who = (token.owner, token.requester, _list(token.renewers))
        times = map(_date, (token.issued_ms, token.expires_ms, token.max_ms))
        cells = (token.token_id, base64.b64encode(token.hmac).decode(), *who, *times)
        click.echo("\n" + padded(cells, _WIDTHS))


# --- requests


async def _create(
    cluster: Cluster, owners: Sequence[KafkaPrincipal], renewers: Sequence[KafkaPrincipal], lifetime_ms: int
) -> _Token:
    from barnabas.client.routing import controller

    renewer = CreateDelegationTokenRequest.CreatableRenewers
    response: CreateDelegationTokenResponse = await cluster.call(
        CreateDelegationTokenRequest(
            owner_principal_type=owners[0].type if owners else None,
            owner_principal_name=owners[0].name if owners else None,
            renewers=[renewer(principal_type=each.type, principal_name=each.name) for each in renewers],
            max_lifetime_ms=lifetime_ms,
        ),
        controller(),
        repeat=False,
    )
    owner = KafkaPrincipal(response.principal_type, response.principal_name)
    requester = KafkaPrincipal(response.token_requester_principal_type, response.token_requester_principal_name)
    return _Token(
        response.token_id,
        response.hmac,
        owner,
        requester if requester.name else owner,  # brokers before Kafka 3.3 do not name it
        renewers,
        response.issue_timestamp_ms,
        response.expiry_timestamp_ms,
        response.max_timestamp_ms,
    )


async def _describe(cluster: Cluster, owners: Sequence[KafkaPrincipal]) -> list[_Token]:
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    response: DescribeDelegationTokenResponse = await cluster.call(
        DescribeDelegationTokenRequest(
            owners=[owner(principal_type=each.type, principal_name=each.name) for each in owners]
        )
    )
    found = []
    for row in response.tokens:
        principal = KafkaPrincipal(row.principal_type, row.principal_name)
        requester = KafkaPrincipal(row.token_requester_principal_type, row.token_requester_principal_name)
        renewers = [KafkaPrincipal(each.principal_type, each.principal_name) for each in row.renewers]
        times = (row.issue_timestamp, row.expiry_timestamp, row.max_timestamp)
        found.append(
            _Token(row.token_id, row.hmac, principal, requester if requester.name else principal, renewers, *times)
        )
    return found


async def _extend(cluster: Cluster, action: str, hmac: bytes, period_ms: int) -> int:
    """Renew or expire a token, and return the time when it now expires."""
    from barnabas.client.routing import controller

    request = (
        RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        if action == "renew"
        else ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    )
    response: RenewDelegationTokenResponse | ExpireDelegationTokenResponse = await cluster.call(request, controller())
    return response.expiry_timestamp_ms
