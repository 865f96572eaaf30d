"""What a cluster refused during a command: the operation, the resource, the principal, and a node that is read-only.

Its one rule: responses are watched while the command runs, because an error code names neither the request nor the resource.
Advice is made of them when the command shows its error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.security.acl import ResourceType
from barnabas.security.required_operations import REFUSALS, required_operation
from barnabas.wire.errors import ErrorCode, KafkaError, UnsupportedVersionError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.settings import ClientSettings
    from barnabas.wire.message import Message

_MAX_REFUSALS = 1000
_MAX_NAMES = 5
_PATIENCE_MS = 2_000
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
        self._read_only: str | None = None

    def see(self, request: Message, response: Any) -> None:
        """Take the refusals of a response; a callback of the client."""
        api = type(request).__name__.removesuffix("Request")
        for number, name in _rows(response, _name_in(request)):
            if number in _WATCHED and len(self._seen) < _MAX_REFUSALS:
                self._seen[Refusal(api, ErrorCode(number), name)] = None

    async def conclude(self, cluster: Cluster) -> None:
        """Find out whether a change was refused because the node is read-only. Sends nothing if no change was refused.

        A read-only node explains itself in the response to a heartbeat; other nodes reject one without a group.
        """
        if not any(each.code is ErrorCode.POLICY_VIOLATION for each in self._seen):
            return
        from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

        with contextlib.suppress(OSError, KafkaError, UnsupportedVersionError, RuntimeError):
            found = await cluster.send(ConsumerGroupHeartbeatRequest(), timeout_ms=_PATIENCE_MS)
            if found.error_code == ErrorCode.POLICY_VIOLATION:
                self._read_only = found.error_message

    def advice(self, code: ErrorCode) -> str | None:
        """Return what to do about an error, or None if nothing is known about it."""
        if code is ErrorCode.POLICY_VIOLATION and self._read_only is not None:
            return f"{self._read_only}. Connect to a node of the running cluster to change something"
        if code not in REFUSALS:
            return None
        refused = [each for each in self._seen if each.code is code]
        api = refused[-1].api if refused else ""
        names = [each.name for each in refused if each.api == api and each.name]
        return permission_advice(api, REFUSALS[code], names, principal_of(self._settings))


_WATCHED = frozenset({*REFUSALS, ErrorCode.POLICY_VIOLATION})


def principal_of(settings: ClientSettings) -> str | None:
    """Return the principal of a client as far as its settings tell: None if a certificate or a token decides."""
    if settings.credentials is not None:
        return None if settings.credentials.is_token else f"User:{settings.credentials.username}"
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
