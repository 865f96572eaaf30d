"""Clusters of Apache Kafka and barnabas at work: clients go on while leaders and replicas move across and nodes are killed.

The features are upgraded meanwhile. At the end all replicas are the same bytes, and all nodes have the same metadata.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from barnabas.client import sync
from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.features import FeatureUpdate
from barnabas.metadata.versions import LATEST_VERSION, METADATA_VERSION
from barnabas.wire import ErrorCode, KafkaError
from tests.crash.clients import create_topic, wait_until
from tests.crash.loads import Group, Load, Stream, Transactions, settled_first
from tests.crash.test_log_kill import Crew
from tests.interop.java_program import compiled, printed
from tests.interop.mixed import FIRST_VERSION, Mix
from tests.interop.test_java_clients import SCENARIOS

pytestmark = pytest.mark.interop

MIXES = {
    "under a controller of Apache Kafka": {
        101: "apache controller",
        1: "barnabas broker",
        2: "barnabas broker",
        3: "apache broker",
    },
    "under a controller of barnabas": {
        101: "barnabas controller",
        1: "barnabas broker",
        2: "apache broker",
        3: "apache broker",
    },
    "with a mixed quorum": {
        1: "barnabas broker,controller",
        2: "apache broker,controller",
        3: "barnabas broker,controller",
    },
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
BROKERS = (1, 2, 3)
# What Kafka's Java clients do first, with the leaders of their partitions and their coordinators on all brokers.
JAVA = (
    "records",
    "transactions",
    "exactly-once-classic",
    "exactly-once-consumer",
    "group-cooperative",
    "group-consumer",
)
Places = Mapping[tuple[str, int], tuple[int, ...]]


@contextlib.contextmanager
def administered(mix: Mix) -> Iterator[sync.Admin]:
    with sync.Admin({"bootstrap.servers": mix.bootstrap, "default.api.timeout.ms": "90000"}) as admin:
        yield admin


def replicas_of(admin: sync.Admin, topics: list[str]) -> dict[tuple[str, int], tuple[int, ...]]:
    return {
        (str(topic), each.partition_index): each.replicas
        for topic, found in admin.describe_topics(topics).items()
        if not isinstance(found, KafkaError)
        for each in found.partitions
    }


def all_in_sync(admin: sync.Admin, topics: list[str]) -> bool:
    found = admin.describe_topics(topics)
    return all(
        not isinstance(each, KafkaError)
        and all(set(one.isr) == set(one.replicas) and one.leader_id >= 0 for one in each.partitions)
        for each in found.values()
    )


def move(admin: sync.Admin, targets: Places) -> None:
    """Reassign, wait until it is done, and elect the first replica."""
    for key, error in admin.alter_partition_reassignments(targets).items():
        assert error is None, (key, error)
    wait_until(lambda: not admin.list_partition_reassignments(), f"the reassignment to {targets}", 120)
    lead(admin, targets)


def lead(admin: sync.Admin, targets: Places) -> None:
    """Elect the first replica of each partition, once it is in sync."""
    topics = sorted({topic for topic, _ in targets})
    wait_until(lambda: all_in_sync(admin, topics), f"all replicas of {topics} in sync", 120)
    for key, error in admin.elect_leaders(ElectionType.PREFERRED, list(targets)).items():
        assert error is None or error.code is ErrorCode.ELECTION_NOT_NEEDED, (key, error)
    wanted = {key: each[0] for key, each in targets.items()}
    wait_until(lambda: leaders_of(admin, topics).items() >= wanted.items(), f"the leaders {wanted}", 60)


def leaders_of(admin: sync.Admin, topics: list[str]) -> dict[tuple[str, int], int]:
    return {
        (str(topic), each.partition_index): each.leader_id
        for topic, found in admin.describe_topics(topics).items()
        if not isinstance(found, KafkaError)
        for each in found.partitions
    }


def rotated(places: Places, turns: int) -> dict[tuple[str, int], tuple[int, ...]]:
    """The same replicas with another one first, so that leaders go to the next broker."""
    return {key: (*each[turns % len(each) :], *each[: turns % len(each)]) for key, each in places.items()}


def loads_of(random: Random) -> list[Load]:
    stream = Stream("stream", random, enable_idempotence=True, compression_type="lz4")
    groups = [Group(f"group-{protocol}", random, stream, protocol) for protocol in ("classic", "consumer")]
    return [stream, Transactions("transactions", random), *groups]


def settle(crew: Crew) -> None:
    """Let all come to rest and check each record."""
    for load in crew.loads:
        load.restarted()
    for load in settled_first(crew.loads):
        if not isinstance(load, Group):
            crew.rest(load)
        load.settle()
        crew.rest(load)
    for load in crew.loads:
        load.check()


@pytest.mark.parametrize("nodes", MIXES.values(), ids=[each.replace(" ", "-") for each in MIXES])
def test_clients_go_on_while_leaders_and_replicas_move_and_nodes_are_killed(
    tmp_path: Path, nodes: Mapping[int, str]
) -> None:
    java = compiled("Clients", tmp_path / "classes")
    loads = loads_of(Random(1))
    topics = ["stream", "transactions-left", "transactions-right", *INTERNAL]
    with Mix(tmp_path, nodes, version=FIRST_VERSION) as mix, administered(mix) as admin:
        assert {(each.id, each.is_fenced) for each in admin.describe_cluster().nodes} == {(n, False) for n in BROKERS}
        for topic in INTERNAL:
            create_topic(mix.bootstrap, topic, 3, {"cleanup.policy": "compact"})
        code, seen, error = printed(java, mix.bootstrap, *JAVA)
        assert code == 0, seen + error
        assert [SCENARIOS[each] for each in JAVA if SCENARIOS[each] not in seen.splitlines()] == []
        for load in loads:
            load.prepare(mix.bootstrap)
        crew = Crew(loads)
        try:
            crew.work()
            time.sleep(1)
            (refused,) = admin.update_features({METADATA_VERSION: FeatureUpdate(LATEST_VERSION)}).values()
            assert refused is None, refused
            places = replicas_of(admin, topics)
            for turns in (1, 2, 0):  # each broker leads each partition once, also those of coordinators
                move(admin, rotated(places, turns))
                time.sleep(1)
            crew.raise_errors()
            for broker in BROKERS:  # each replica leaves each broker once and comes back
                move(admin, {key: tuple(n for n in each if n != broker) for key, each in places.items()})
                move(admin, places)
            crew.raise_errors()
            for node_id in nodes:
                mix.kill(node_id)
                time.sleep(2)
                mix.start(node_id)
                wait_until(lambda: all_in_sync(admin, topics), f"all in sync after the kill of {node_id}", 120)
            crew.raise_errors()
            for node_id in nodes:
                mix.stop(node_id)
                mix.start(node_id)
                wait_until(lambda: all_in_sync(admin, topics), f"all in sync after the stop of {node_id}", 120)
            settle(crew)
        finally:
            crew.close()
            for load in loads:
                load.close()
        mix.assert_replicas_equal({f"{topic}-{index}": ids for (topic, index), ids in places.items()})
        mix.stop()
        image = mix.assert_metadata_equal()
        assert image.features[METADATA_VERSION] == LATEST_VERSION
        registered = {tuple(sorted(each.features.items())) for each in image.brokers.values()}
        assert len(registered) == 1, "brokers of both kinds register the same levels of features"
        assert mix.complaints() == []
