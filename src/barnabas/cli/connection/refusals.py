"""What a cluster refused during a command: an operation without permission, a change of a read-only node, an unknown name.

Its one rule: responses are watched while the command runs, because an error code names neither the request nor the resource.
Advice is made of them when the command shows its error; only then, and only if it helps, the cluster is asked once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.security.acl import ResourceType
from barnabas.security.required_operations import REFUSALS, required_operation
from barnabas.similar_names import similar_names
from barnabas.wire.errors import ErrorCode, KafkaError, MalformedError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.settings import ClientSettings
    from barnabas.wire.message import Message

T = TypeVar("T")

_MAX_REFUSALS = 1000
_MAX_NAMES = 5
_PATIENCE_S = 10.0
_ANONYMOUS = "User:ANONYMOUS"
_NAMES = ("name", "topic_name", "topic", "group_id", "transactional_id", "resource_name", "key")
"""Fields of rows that name a resource."""


class Refusal(NamedTuple):
    """An error code of a row of a response, and the name of the resource, if it is known."""

    api: str
    code: ErrorCode
    name: str | None


class Refusals:
    """Refusals that a cluster returned to one command."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._seen: dict[Refusal, None] = {}

    def see(self, request: Message, response: Any) -> None:
        """Take the refusals of a response; a callback of the client."""
        api = type(request).__name__.removesuffix("Request")
        for number, name in _rows(response, _name_in(request)):
            if number in _WATCHED and len(self._seen) < _MAX_REFUSALS:
                self._seen[Refusal(api, ErrorCode(number), name)] = None

    def advice(self, code: ErrorCode) -> str | None:
        """Return what to do about an error, or None if nothing is known about it."""
        refused = [each for each in self._seen if each.code is code]
        if code is ErrorCode.POLICY_VIOLATION and refused:
            text = self._ask_again(_read_only_text)
            return None if text is None else f"{text}. Connect to a node of the running cluster to change something"
        if code in _LISTED and refused:
            return _hint(
                _LISTED[code], [each.name for each in refused if each.name], self._ask_again(_LISTED[code].find)
            )
        if code not in REFUSALS:
            return None
        api = refused[-1].api if refused else ""
        names = [each.name for each in refused if each.api == api and each.name]
        return permission_advice(api, REFUSALS[code], names, principal_of(self._settings))

    def _ask_again(self, ask: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T | None:
        """Ask the cluster with a new client, for ten seconds at most. Returns None if that fails.

        In a thread, because a command may show an error while its event loop runs.
        """
        from barnabas.client.cluster import Cluster

        async def main() -> T:
            async with asyncio.timeout(_PATIENCE_S), Cluster(self._settings) as cluster:
                return await ask(cluster)

        with ThreadPoolExecutor(1) as thread:
            try:
                return thread.submit(lambda: asyncio.run(main())).result()
            except (OSError, KafkaError, MalformedError, UnsupportedVersionError):
                return None


async def _read_only_text(cluster: Cluster) -> str | None:
    """Return the explanation of a read-only node, or None.

    It is in the response to a heartbeat. Other nodes reject one without a group, and change nothing.
    """
    from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

    found: Any = await cluster.send(ConsumerGroupHeartbeatRequest())
    return found.error_message if found.error_code == ErrorCode.POLICY_VIOLATION else None


# --- names that do not exist


class _Listed(NamedTuple):
    """A kind of names: the command that lists them, and a function that returns all."""

    advice: str
    find: Callable[[Cluster], Coroutine[Any, Any, list[str]]]


async def _topics(cluster: Cluster) -> list[str]:
    return list((await cluster.metadata(None)).topics)


async def _groups(cluster: Cluster) -> list[str]:
    from barnabas.client.admin.groups import Groups

    return [group.group_id for group in await Groups(cluster).list_groups()]


async def _transactional_ids(cluster: Cluster) -> list[str]:
    from barnabas.client.admin.transactions import Transactions

    return [each.transactional_id for each in await Transactions(cluster).list_transactions()]


_LISTED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _Listed(
        "list topics with: barnabas topics list (it omits topics that you may not DESCRIBE)", _topics
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: _Listed("list groups with: barnabas groups list", _groups),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: _Listed("list ids with: barnabas transactions list", _transactional_ids),
}


def _hint(listed: _Listed, missing: Iterable[str], known: Sequence[str] | None) -> str:
    """Name the existing names that resemble the missing ones, and the command that lists all."""
    close = dict.fromkeys(each for name in missing for each in similar_names(name, known or ()) if each != name)
    hint = f"did you mean {' or '.join(list(close)[:_MAX_NAMES])}? Or " if close else ""
    return hint + listed.advice


# --- permissions


_WATCHED = frozenset({*REFUSALS, *_LISTED, ErrorCode.POLICY_VIOLATION})


def principal_of(settings: ClientSettings) -> str | None:
    """Return the principal of a client as far as its settings tell: None if a certificate or a token decides."""
    credentials = settings.credentials
    if credentials is not None:
        from barnabas.client.settings import TokenOptions

        if isinstance(credentials, TokenOptions) or credentials.is_token:
            return None
        return f"User:{credentials.username}"
    has_key = any(settings.get(name) is not None for name in ("ssl.keystore.location", "ssl.keystore.key"))
    return None if settings.security_protocol == "SSL" and has_key else _ANONYMOUS


def permission_advice(api: str, resource_type: ResourceType, names: Sequence[str], principal: str | None) -> str:
    """Name the missing permission, and the command with which an administrator grants it.

    >>> permission_advice("DeleteTopics", ResourceType.TOPIC, ["orders"], "User:eve")
    'User:eve lacks the permission DELETE on topic orders. Ask an administrator (who needs ALTER on the cluster) to run: \
barnabas acls create --allow User:eve --operation delete --resource topic:orders'
    """
    operation = required_operation(api, resource_type)
    kind = resource_type.name.lower().replace("_", "-")
    if resource_type is ResourceType.CLUSTER:
        resources, shown = kind, "the cluster"
    else:
        resources = " --resource ".join(f"{kind}:{name}" for name in list(names)[:_MAX_NAMES] or ["NAME"])
        shown = f"{kind} {', '.join(names[:_MAX_NAMES])}" if names else f"the {kind}"
    what = "a permission" if operation is None else f"the permission {operation.name}"
    asked = "OPERATION" if operation is None else operation.name.lower().replace("_", "-")
    return (
        f"{principal or 'the principal of this client'} lacks {what} on {shown}. Ask an administrator (who needs ALTER on "
        f"the cluster) to run: barnabas acls create --allow {principal or 'PRINCIPAL'} --operation {asked} "
        f"--resource {resources}"
    )


def _name_in(value: Any) -> str | None:
    for field in _NAMES:
        name = getattr(value, field, None)
        if isinstance(name, str) and name:
            return name
    return None


def _rows(value: Any, name: str | None) -> Iterator[tuple[int, str | None]]:
    """Yield the error codes of a response with the name of their resource. Rows inside a row with a code are skipped."""
    for field in type(value).__slots__:
        rows = getattr(value, field)
        if not isinstance(rows, list) or not rows or not hasattr(rows[0], "unknown_tagged_fields"):
            continue
        for row in rows:
            of_row = _name_in(row) or name
            if hasattr(row, "error_code"):
                yield row.error_code, of_row
            else:
                yield from _rows(row, of_row)
    if getattr(value, "error_code", 0):
        yield value.error_code, name
