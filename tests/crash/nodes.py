"""Nodes of one cluster, each a process with a directory of its own, reached through links that can fail."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tools.apache_kafka import HOST, Barnabas, free_ports

from barnabas.raft import formatting
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire import random_uuid
from tests.crash.links import Link, Links
from tests.crash.test_log_kill import BUSY

NODE_IDS = (1, 2, 3)
REPLICATED = {
    **{name: value for name, value in BUSY.items() if not name.startswith("log.cleaner")},
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "200",
}


class Nodes:
    """Brokers, of which the first three are controllers too: a static quorum.

    A `is_dynamic` quorum begins with these three, and the other nodes are controllers that join it by themselves.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        node_ids: Iterable[int] = NODE_IDS,
        racks: Mapping[int, str] | None = None,
        with_links: bool = False,
        is_dynamic: bool = False,
    ) -> None:
        self.node_ids = tuple(node_ids)
        self.voters = self.node_ids[:3]
        self.links = Links() if with_links else None
        self.links_of: dict[int, list[Link]] = {}
        free = free_ports(3 * len(self.node_ids))
        ports = {each: (free[3 * at], free[3 * at + 1], free[3 * at + 2]) for at, each in enumerate(self.node_ids)}
        reached = {each: (clients, controllers) for each, (clients, controllers, _) in ports.items()}
        if self.links is not None:
            for each, pair in reached.items():
                self.links_of[each] = [self.links.add(port) for port in pair]
            reached = {each: (links[0].port, links[1].port) for each, links in self.links_of.items()}
        self.bootstrap = ",".join(f"{HOST}:{clients}" for clients, _ in reached.values())
        voters = ",".join(f"{each}@{HOST}:{reached[each][1]}" for each in self.voters)
        servers = ",".join(f"{HOST}:{reached[each][1]}" for each in self.node_ids)
        directories = {each: random_uuid(Random()) for each in self.node_ids}
        first = VoterSet(
            Voter(ReplicaKey(each, directories[each]), (Endpoint("CONTROLLER", HOST, reached[each][1]),))
            for each in self.voters
        )
        self._control = {each: control for each, (_, _, control) in ports.items()}
        self.nodes: dict[int, Barnabas] = {}
        cluster_id = str(random_uuid(Random()))
        for each, (clients, controllers, control) in ports.items():
            own = {
                "node.id": str(each),
                "listeners": f"PLAINTEXT://{HOST}:{clients}",
                "advertised.listeners": f"PLAINTEXT://{HOST}:{reached[each][0]}",
                "controller.listener.names": "CONTROLLER",
                "process.roles": "broker",
                "barnabas.faults.listener": f"{HOST}:{control}",
            }
            if is_dynamic:
                own["controller.quorum.bootstrap.servers"] = servers
                own["controller.quorum.auto.join.enable"] = str(each not in self.voters).lower()
            else:
                own["controller.quorum.voters"] = voters
            if is_dynamic or each in self.voters:
                own["process.roles"] = "broker,controller"
                own["listeners"] += f",CONTROLLER://{HOST}:{controllers}"
                own["advertised.listeners"] += f",CONTROLLER://{HOST}:{reached[each][1]}"
            if racks is not None:
                own["broker.rack"] = racks[each]
            node = Barnabas({**REPLICATED, **(settings or {}), **own}, directory=directory / str(each))
            node.address = (HOST, clients)
            self.nodes[each] = node
            data = node.directory / "data"
            bootstrap = formatting.bootstrap_records(formatting.effective_features())
            known = first if is_dynamic and each in self.voters else None
            wanted = formatting.Formatting(cluster_id, each, data, {data: directories[each]}, bootstrap, known)
            formatting.write_format(wanted, lambda: time.time_ns() // 1_000_000)

    def start(self, *node_ids: int) -> None:
        wanted = node_ids or self.node_ids
        with ThreadPoolExecutor(len(wanted)) as threads:  # none is ready without another
            list(threads.map(lambda each: self.nodes[each].start(), wanted))

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()
        if self.links is not None:
            self.links.close()
            self.links = None

    # --- trouble

    def pause(self, node_id: int, seconds: float) -> None:
        """Stop a process as it is (SIGSTOP), and let it go on."""
        pid = self.nodes[node_id].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)

    def restart(self, node_id: int, away_s: float = 0.0, *, kill: bool = False) -> None:
        node = self.nodes[node_id]
        if kill:
            node.kill()
        else:
            assert node.stop(60) == 0, node.log.read_text()[-2000:]
        time.sleep(away_s)
        node.start()

    def disturb(self, node_id: int, how: str, seconds: float, delay_s: float = 0.0) -> None:
        """Cut, hold or slow the links to a node for some time. It still reaches the others."""
        assert self.links is not None
        for link in self.links_of[node_id]:
            if how == "slow":
                link.delay_s = delay_s
            else:
                self.links.call(link.cut if how == "cut" else link.hold)
        try:
            time.sleep(seconds)
        finally:
            for link in self.links_of[node_id]:
                self.links.call(link.heal)

    def fill_disk(self, node_id: int, seconds: float) -> None:
        """Let every write that needs room fail. The node ends, because it has no other log dir; then there is room."""
        self._post(node_id, "/disk", {"full": True})
        node = self.nodes[node_id]
        assert node._process is not None
        node._process.wait(60)
        node.kill()
        time.sleep(seconds)
        node.start()

    def _post(self, node_id: int, path: str, body: Mapping[str, object]) -> None:
        url = f"http://{HOST}:{self._control[node_id]}{path}"
        request = urllib.request.Request(
            url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    # --- what is on disk

    def logs_differ(self, topics: list[str]) -> bool:
        """Whether the logs of these topics are not the same bytes on all nodes."""
        found = []
        for node in self.nodes.values():
            data = node.directory / "data"
            found.append(
                {
                    f"{path.parent.name}/{path.name}": path.read_bytes()
                    for topic in topics
                    for path in data.glob(f"{topic}-[0-9]/*.log")
                }
            )
        return any(each != found[0] or not each for each in found)

    def tracebacks(self) -> str:
        """What the logs say of a mistake in the program, or nothing."""
        for node in self.nodes.values():
            said = node.log.read_text()
            if "Traceback" in said:
                return said[max(said.index("Traceback") - 500, 0) :][:3000]
        return ""
