"""A bad time for a simulated cluster: crashes, partitions, loss, late disks, snapshots and changes of the voters."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.raft.simulation import CLUSTER_ID, LISTENER, Cluster, Faults, SimNode, directory_of


class Chaos:
    """Does something bad every now and then."""

    def __init__(self, cluster: Cluster, *, voter_changes: bool = False, snapshots: bool = True) -> None:
        self.cluster = cluster
        self.random = cluster.random
        self.proposed = 0
        self.changes: list[list[object]] = []
        self.actions: list[tuple[int, Callable[[], None]]] = [
            (6, self.propose),
            (2, self.crash),
            (3, self.bounce),
            (3, self.strike),
            (3, self.restart),
            (2, self.partition),
            (2, self.heal),
            (1, self.weather),
            (1, self.resign),
            (2, self.jump),
        ]
        if snapshots:
            self.actions.append((1, self.snapshot))
        if voter_changes:
            self.actions.append((2, self.change_voters))

    def run(self, duration_ms: int) -> None:
        end_ms = self.cluster.now_ms + duration_ms
        weights = [weight for weight, _ in self.actions]
        while self.cluster.now_ms < end_ms:
            self.cluster.run(self.random.choice((1, 20, 100, 400)))
            self.random.choices(self.actions, weights)[0][1]()

    def end(self) -> None:
        """Everything is well again."""
        self.cluster.faults = Faults()
        for node in self.cluster.nodes.values():
            if not node.is_up:
                node.start()

    def _any(self) -> SimNode:
        return self.random.choice(list(self.cluster.nodes.values()))

    def propose(self) -> None:
        for node in self.cluster.leaders():
            for _ in range(self.random.randint(1, 4)):
                self.proposed += 1
                node.propose([b"%d.%d" % (self.proposed, part) for part in range(self.random.randint(1, 3))])

    def crash(self) -> None:
        node = self._any()
        if node.is_up:
            node.crash()

    def bounce(self) -> None:
        """Nodes that forget what they did not save, in the middle of whatever they do."""
        for node in self.random.sample(list(self.cluster.nodes.values()), 2):
            if node.is_up:
                node.crash()
                node.start()

    def strike(self) -> None:
        """A leader that has just written something, and then is gone or alone."""
        self.propose()
        self.cluster.run(self.random.choice((0, 5, 20, 60)))
        for node in self.cluster.leaders():
            if self.random.random() < 0.5:
                node.crash()
                if self.random.random() < 0.5:
                    node.start()
            else:
                others = set(self.cluster.nodes) - {node.id}
                friend = self.random.choice(sorted(others))
                self.cluster.faults.blocked |= {(node.id, each) for each in others - {friend}}

    def restart(self) -> None:
        down = [node for node in self.cluster.nodes.values() if not node.is_up]
        if down:
            self.random.choice(down).start()

    def partition(self) -> None:
        ids = list(self.cluster.nodes)
        kind = self.random.randrange(3)
        if kind == 0:  # one way only
            self.cluster.faults.blocked.add((self.random.choice(ids), self.random.choice(ids)))
            return
        side = set(self.random.sample(ids, 1 if kind == 1 else len(ids) // 2))
        self.cluster.faults.blocked |= {(a, b) for a in ids for b in ids if (a in side) != (b in side)}

    def heal(self) -> None:
        self.cluster.faults.blocked.clear()

    def weather(self) -> None:
        blocked = self.cluster.faults.blocked
        self.cluster.faults = self.random.choice(
            (
                Faults(),
                Faults(1, 100, loss=0.05, duplication=0.05, max_flush_ms=50),
                Faults(1, 800, loss=0.2, duplication=0.2, max_flush_ms=300),
                Faults(1, 30, max_flush_ms=3000),
            )
        )
        self.cluster.faults.blocked = blocked

    def resign(self) -> None:
        for node in self.cluster.leaders():
            if node.core is not None:
                node.core.resign(self.cluster.now_ms, node.core.epoch)
                node.process()

    def jump(self) -> None:
        """Clocks that jump ahead, so that several run out of patience at once; and who may forget a vote right after."""
        for node in self.random.sample(list(self.cluster.nodes.values()), 2):
            node.skew_ms += self.random.choice((10, 1000, 4000))
            node.tick()
        self.cluster.run(self.random.choice((0, 10, 30)))
        if self.random.random() < 0.5:
            self.bounce()

    def snapshot(self) -> None:
        self._any().take_snapshot()

    def change_voters(self) -> None:
        for leader in self.cluster.leaders():
            node = self._any()
            assert leader.core is not None
            voters = leader.core.voters.current
            if node.id in voters.ids and len(voters) > 1:
                remove = RemoveRaftVoterRequest(
                    cluster_id=CLUSTER_ID, voter_id=node.id, voter_directory_id=directory_of(node.id)
                )
                self.cluster.ask(leader.id, remove)
            elif node.id not in voters.ids:
                listener = AddRaftVoterRequest.Listener(name=LISTENER, host=f"host{node.id}", port=9093)
                add = AddRaftVoterRequest(
                    cluster_id=CLUSTER_ID,
                    timeout_ms=1000,
                    voter_id=node.id,
                    voter_directory_id=directory_of(node.id),
                    listeners=[listener],
                )
                self.cluster.ask(leader.id, add)
