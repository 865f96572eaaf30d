"""Raft requests to other voters: one connection per node, in the newest version that both sides support."""

from __future__ import annotations

import logging

from barnabas.broker.own_connections import NOT_PROTECTED, OwnConnections
from barnabas.client.connection import Connection
from barnabas.client.errors import AuthenticationError, TlsError
from barnabas.config.endpoints import address_text
from barnabas.raft.voters import Node
from barnabas.wire import APIS, KafkaError, Message
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_log = logging.getLogger(__name__)


class RaftTransport:
    """Implements `raft.driver.Transport`."""

    def __init__(self, node_id: int, connections: OwnConnections = NOT_PROTECTED) -> None:
        self._client_id = f"raft-client-{node_id}"
        self._open = connections.open
        self._connections: dict[tuple[str, int], tuple[Connection, dict[int, int]]] = {}
        self._problems: dict[tuple[str, int], str] = {}

    @property
    def problem(self) -> str:
        """Why another node could not be talked to: a login or certificate that was refused by either side."""
        return next(iter(self._problems.values()), "")

    async def send(self, destination: Node, request: Message) -> Message:
        key = request.schema().key
        assert key is not None
        connection, newest = await self._connect(destination.host, destination.port)
        if key not in newest:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{destination} does not serve {APIS[key].name}")
        response: Message = await connection.call(request, newest[key])
        return response

    async def _connect(self, host: str, port: int) -> tuple[Connection, dict[int, int]]:
        found = self._connections.get((host, port))
        if found is not None and found[0].is_open:
            return found
        try:
            connection = await self._open(host, port, self._client_id)
        except (AuthenticationError, TlsError) as error:
            if self._problems.get((host, port)) != str(error):
                _log.error("this node cannot talk to the controller at %s: %s", address_text(host, port), error)
            self._problems[host, port] = str(error)
            raise
        self._problems.pop((host, port), None)
        software = ApiVersionsRequest(client_software_name="barnabas", client_software_version="raft")
        versions: ApiVersionsResponse = await connection.call(software, 3)
        newest = {
            row.api_key: min(row.max_version, APIS[row.api_key].versions.last)
            for row in versions.api_keys
            if row.api_key in APIS and row.min_version <= APIS[row.api_key].versions.last
        }
        self._connections[host, port] = connection, newest
        return connection, newest

    def close(self) -> None:
        for connection, _ in self._connections.values():
            connection.close()
