"""What is done to a mixed cluster while Kafka's Java clients and librdkafka work.

Controllers of either kind lead, join and leave the voters; brokers of either kind join, lead, are emptied and unregistered;
the features are upgraded. At the end all replicas are the same bytes, and all nodes have the same metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.apache_kafka import HOST, VERSION

from barnabas.client import sync
from barnabas.client.admin.features import FeatureUpdate
from barnabas.client.admin.quorum import QuorumInfo, ReplicaState
from barnabas.metadata.versions import LATEST_VERSION, METADATA_VERSION
from barnabas.wire import KafkaError
from tests.crash.clients import wait_until
from tests.interop.conftest import jars
from tests.interop.mixed import FIRST_VERSION, Mix
from tests.interop.mixed_clients import Clients
from tests.interop.test_mixed_life import INTERNAL, administered, all_in_sync, move, replicas_of

pytestmark = pytest.mark.interop

NODES = {1: "barnabas broker,controller", 2: "apache broker,controller", 3: "barnabas broker,controller"}
JOINING = {4: "apache broker,controller", 5: "barnabas broker,controller"}


def quorum_of(admin: sync.Admin) -> QuorumInfo:
    while True:
        try:
            return admin.describe_quorum()
        except KafkaError:  # the controller is moving
            continue


def elect_another(mix: Mix, admin: sync.Admin, topics: list[str]) -> tuple[int, int]:
    """Stop the leader of the metadata until another one leads. Return both."""
    old = quorum_of(admin).leader_id
    mix.kill(old)
    wait_until(lambda: quorum_of(admin).leader_id not in (old, -1), f"another leader than {old}", 60)
    new = quorum_of(admin).leader_id
    mix.start(old)
    wait_until(lambda: all_in_sync(admin, topics), f"all in sync after the kill of {old}", 120)
    return old, new


def observer(admin: sync.Admin, node_id: int) -> ReplicaState:
    found: list[ReplicaState] = []

    def is_there() -> bool:
        found[:] = [each for each in quorum_of(admin).observers if each.replica_id == node_id]
        return bool(found)

    wait_until(is_there, f"{node_id} observes the metadata", 60)
    return found[0]


def wait_unregistered(admin: sync.Admin, node_id: int) -> None:
    def is_gone() -> bool:
        return node_id not in {each.id for each in admin.describe_cluster().nodes}

    wait_until(is_gone, f"{node_id} is unregistered")


def retried(change: Callable[..., None], *arguments: object) -> None:
    """Change the voters, however often that has to be tried while the leader moves."""

    def is_done() -> bool:
        try:
            change(*arguments)
        except KafkaError as error:
            assert error.code.retriable or error.code.name in ("NOT_CONTROLLER", "UNKNOWN_SERVER_ERROR"), error
            return False
        return True

    wait_until(is_done, f"{change} {arguments}", 60)


def test_voters_brokers_and_features_change_under_clients(tmp_path: Path) -> None:
    jars(VERSION)
    with Mix(tmp_path, NODES, version=FIRST_VERSION) as mix, administered(mix) as admin:
        assert admin.describe_features().finalized_features[METADATA_VERSION] == FIRST_VERSION
        clients = Clients(mix.bootstrap, tmp_path / "clients")
        try:
            clients.go_on("the start")
            topics = [*clients.topics, *INTERNAL]

            # The features.
            (error,) = admin.update_features({METADATA_VERSION: FeatureUpdate(LATEST_VERSION)}).values()
            assert error is None, error
            clients.go_on("the upgrade")

            # Either kind leads the metadata.
            kinds: list[bool] = []
            while len(set(kinds)) < 2:
                assert len(kinds) < 8, "only one kind is ever elected"
                _, new = elect_another(mix, admin, topics)
                kinds.append(mix.local.node(new).is_apache)
                clients.go_on(f"{new} leads")

            # A broker and controller of either kind joins, votes, and holds and leads replicas. One of the first leaves for it.
            for node_id, text in JOINING.items():
                mix.add(node_id, text)
                state = observer(admin, node_id)
                endpoint = ("CONTROLLER", HOST, mix.local.node(node_id).ports["CONTROLLER"])
                retried(admin.add_raft_voter, node_id, state.replica_directory_id, [endpoint])
                clients.go_on(f"{node_id} votes")
            places = replicas_of(admin, topics)
            for gone, new in ((2, 4), (3, 5)):  # a node of each kind is replaced by one of the same kind
                away = {key: tuple(new if each == gone else each for each in ids) for key, ids in places.items()}
                move(admin, away)
                places = {key: tuple(sorted(ids, key=lambda each: each != new)) for key, ids in away.items()}
                move(admin, places)
                clients.go_on(f"{new} leads instead of {gone}")
                state = next(each for each in quorum_of(admin).voters if each.replica_id == gone)
                retried(admin.remove_raft_voter, gone, state.replica_directory_id)
                mix.stop(gone)
                admin.unregister_broker(gone)
                wait_unregistered(admin, gone)
                clients.go_on(f"{gone} is gone")
            assert {each.replica_id for each in quorum_of(admin).voters} == {1, 4, 5}
            clients.finish()
            print({name: clients.ledger.counts(name) for name in clients.ledger.names})
        finally:
            clients.close()
        wait_until(lambda: all_in_sync(admin, topics), "all in sync at the end", 120)
        mix.assert_replicas_equal({f"{topic}-{index}": ids for (topic, index), ids in places.items()})
        mix.stop(1, 4, 5)
        image = mix.assert_metadata_equal()
        assert image.features[METADATA_VERSION] == LATEST_VERSION
        assert mix.complaints() == []
