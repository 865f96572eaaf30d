"""The HTTP listener where tests set faults: rules, isolation, disk, time and leaders, as JSON.

Its one rule: only programs of this machine reach it, and no web page does. It listens on a loopback address, takes no other
name in `Host`, and needs a type of content that a page cannot send to another site.

  GET     /faults              all of it
  POST    /rules               a rule, as in `rules.Rule`
  DELETE  /rules, /rules/1     all rules, or one
  POST    /isolation           {"from": [2, 3], "clients": false}; without `from`: all nodes and clients
  DELETE  /isolation
  POST    /disk                {"full": true} or {"slow_ms": 200}
  DELETE  /disk
  POST    /time                {"advance_ms": 3600000}
  POST    /leader              {"topic": "orders", "partition": 0, "to": 2}
  DELETE  /faults              all rules, isolation and disk
"""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from barnabas.broker.faults.disk import disks
from barnabas.broker.faults.faults import NodeFaults
from barnabas.broker.faults.rules import RuleError, rule_of
from barnabas.broker.http_listener import HttpListener, HttpRequest, Page
from barnabas.config.endpoints import is_loopback
from barnabas.similar_names import did_you_mean
from barnabas.wire import KafkaError

MoveLeader = Callable[[str, int, int | None], Awaitable[int]]

JSON: Final = "application/json"


class FaultsListener(HttpListener):
    """The listener of one node."""

    methods = ("GET", "HEAD", "POST", "DELETE")

    def __init__(self, faults: NodeFaults, move_leader: MoveLeader, sock: socket.socket) -> None:
        super().__init__(sock)
        self._node = faults
        self._faults = faults.faults
        self._move_leader = move_leader
        self._posts: Mapping[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "/rules": self._add_rule,
            "/isolation": self._isolate,
            "/disk": self._set_disk,
            "/time": self._advance,
            "/leader": self._lead,
        }

    async def page(self, request: HttpRequest) -> Page:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        if not is_loopback(host):
            return _page(403, {"error": f"this is for programs on this machine, not for {host!r}"})
        try:
            return _page(200, await self._answer(request))
        except _NoPageError as error:
            return _page(404, {"error": str(error)})
        except RuleError as error:
            return _page(400, {"error": str(error)})
        except (KafkaError, TimeoutError) as error:
            return _page(409, {"error": str(error)})

    async def _answer(self, request: HttpRequest) -> dict[str, Any]:
        path = request.path.rstrip("/")
        if request.method in ("GET", "HEAD") and path == "/faults":
            return self._all()
        if request.method == "POST" and path in self._posts:
            return await self._posts[path](_body(request))
        if request.method == "DELETE" and self._is_removed(path):
            return self._all()
        raise _NoPageError(f"there is no {request.method} {path or '/'}; GET /faults, POST {', '.join(self._posts)}")

    def _all(self) -> dict[str, Any]:
        isolation = self._faults.isolated.get(self._node.node_id)
        condition = disks.condition(next(iter(self._node.log_dirs)))
        return {
            "node": self._node.node_id,
            "rules": [each.as_json() for each in self._faults.rules.all.values()],
            "isolation": None
            if isolation is None
            else {"from": sorted(isolation.node_ids), "clients": isolation.from_clients},
            "disk": {"full": condition.is_full, "slow_ms": condition.slow_ms},
            "time": {"ahead_ms": self._faults.clock.ahead_ms},
        }

    def _is_removed(self, path: str) -> bool:
        """Remove what the path names. Return False if there is no such path."""
        name, _, rule_id = path.removeprefix("/").partition("/")
        if name == "rules" and rule_id.isascii() and rule_id.isdigit():
            self._faults.remove(int(rule_id))
        elif rule_id:
            return False
        elif name == "rules":
            for each in list(self._faults.rules.all):
                self._faults.remove(each)
        elif name == "isolation":
            self._faults.heal(self._node.node_id)
        elif name == "disk":
            self._faults.set_disk(self._node.node_id)
        elif name == "faults":
            self._faults.clear()
        else:
            return False
        return True

    async def _add_rule(self, given: dict[str, Any]) -> dict[str, Any]:
        return self._faults.add(rule_of(given)).as_json()

    async def _isolate(self, given: dict[str, Any]) -> dict[str, Any]:
        _expect(given, "from", "clients")
        node_ids = given.get("from")
        if node_ids is not None and not (isinstance(node_ids, list) and all(map(_is_number, node_ids))):
            raise RuleError(f"from must be a list of node ids, not {node_ids!r}")
        clients = given.get("clients")
        if not isinstance(clients, bool | None):
            raise RuleError(f"clients must be true or false, not {clients!r}")
        self._faults.isolate(self._node.node_id, node_ids, from_clients=clients)
        return self._all()

    async def _set_disk(self, given: dict[str, Any]) -> dict[str, Any]:
        _expect(given, "full", "slow_ms")
        is_full = given.get("full", False)
        if not isinstance(is_full, bool):
            raise RuleError(f"full must be true or false, not {is_full!r}")
        self._faults.set_disk(self._node.node_id, is_full=is_full, slow_ms=given.get("slow_ms", 0))
        return self._all()

    async def _advance(self, given: dict[str, Any]) -> dict[str, Any]:
        _expect(given, "advance_ms")
        self._faults.clock.advance(given.get("advance_ms", 0))
        return self._all()

    async def _lead(self, given: dict[str, Any]) -> dict[str, Any]:
        _expect(given, "topic", "partition", "to")
        topic, partition, to = given.get("topic"), given.get("partition", 0), given.get("to")
        if not isinstance(topic, str) or not _is_number(partition) or not (to is None or _is_number(to)):
            raise RuleError("a leader needs a topic, the number of a partition, and perhaps the id of a broker in `to`")
        return {"topic": topic, "partition": partition, "leader": await self._move_leader(topic, partition, to)}


class _NoPageError(Exception):
    pass


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _expect(given: Mapping[str, Any], *names: str) -> None:
    for name in given:
        if name not in names:
            raise RuleError(f"there is no {name!r} here{did_you_mean(name, names)}")


def _body(request: HttpRequest) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RuleError(f"send JSON, with the header Content-Type: {JSON}")
    try:
        given = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise RuleError(f"this is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise RuleError("the JSON must be an object")
    return given


def _page(status: int, content: dict[str, Any]) -> Page:
    return Page(status, json.dumps(content).encode() + b"\n", JSON)
