"""The values of a real node: what clients did is what the metrics say."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.connection import frame
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.broker.metrics import render
from barnabas.broker.metrics.render import METRICS, Renderer
from barnabas.broker.node import Node
from barnabas.client import Admin as AsyncAdmin
from barnabas.client import AuthenticationError, NewTopic, quota_entity
from barnabas.client.sync import Admin
from barnabas.config import server
from barnabas.controller import topics as decisions
from barnabas.slices import Slices
from barnabas.testing import AsyncBroker, Broker, Security
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.metrics.scraping import Scrape, ask, scrape

ROOT = Path(__file__).parents[3]
TOPICS = "kafka_server_brokertopicmetrics_{}_total"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        yield running


def look(broker: Broker) -> Scrape:
    return scrape(broker.metrics_url)


def produce(broker: Broker, topic: str, partition: int, count: int, **more: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, **more})
    for _ in range(count):
        producer.produce(topic, b"0123456789", partition=partition)
    assert producer.flush(30) == 0


def consumer(broker: Broker, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def commit(broker: Broker, group: str, topic: str, offsets: dict[int, int]) -> None:
    client = consumer(broker, group)
    client.commit(offsets=[TopicPartition(topic, *each) for each in offsets.items()], asynchronous=False)
    client.close()


def test_records_and_bytes_of_a_topic_are_those_that_were_written_and_read(broker: Broker) -> None:
    broker.create_topic("counted", 2)
    before = look(broker)
    produce(broker, "counted", 0, 70)
    produce(broker, "counted", 1, 30)
    client = consumer(broker, "reader-of-counted")
    client.assign([TopicPartition("counted", 0, 0), TopicPartition("counted", 1, 0)])
    read = 0
    while read < 100:
        read += len(client.consume(100, timeout=10))
    client.close()
    after = look(broker)
    assert after(TOPICS.format("messagesin"), topic="counted") == 100
    sizes = [after("kafka_log_log_size", topic="counted", partition=each) for each in (0, 1)]
    assert after(TOPICS.format("bytesin"), topic="counted") == sum(sizes)
    assert after(TOPICS.format("bytesout"), topic="counted") == sum(sizes)
    assert [after("kafka_log_log_logendoffset", topic="counted", partition=each) for each in (0, 1)] == [70, 30]
    assert after("kafka_log_log_logstartoffset", topic="counted", partition=0) == 0
    assert after("barnabas_partition_high_watermark", topic="counted", partition=0) == 70
    assert after("kafka_log_log_numlogsegments", topic="counted", partition=0) == 1
    all_topics = TOPICS.format("messagesin")
    assert after(all_topics) - before(all_topics) >= 100


def test_the_sum_over_all_topics_keeps_what_a_deleted_topic_had(broker: Broker) -> None:
    broker.create_topic("short-lived")
    produce(broker, "short-lived", 0, 10)
    before = look(broker)
    assert before(TOPICS.format("messagesin"), topic="short-lived") == 10
    broker.delete_topic("short-lived")
    after = look(broker)
    assert after.get(TOPICS.format("messagesin"), topic="short-lived") is None
    assert after(TOPICS.format("messagesin")) >= before(TOPICS.format("messagesin"))


def test_requests_and_their_latencies_are_counted_by_api(broker: Broker) -> None:
    before = look(broker)
    broker.create_topic("requested")
    produce(broker, "requested", 0, 1)
    after = look(broker)

    def requests(seen: Scrape) -> float:
        name = "kafka_network_requestmetrics_requests_total"
        return sum(seen(name, **labels) for labels in seen.labels(name) if labels["request"] == "Produce")

    def latencies(seen: Scrape) -> float:
        return seen.get("kafka_network_requestmetrics_totaltimems_count", request="Produce") or 0

    assert requests(after) - requests(before) == latencies(after) - latencies(before) == 1
    assert after("kafka_network_requestmetrics_totaltimems_sum", request="Produce") > 0
    assert after("barnabas_request_bytes_total", request="Produce") > 10


def test_an_error_is_counted_with_its_code_and_a_refused_batch_with_its_bytes(broker: Broker) -> None:
    broker.create_topic("small", config={"max.message.bytes": 100})
    with pytest.raises(KafkaException):
        failed: list[KafkaException] = []
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("small", b"x" * 1000, on_delivery=lambda error, _: failed.append(KafkaException(error)))
        producer.flush(30)
        raise failed[0]
    seen = look(broker)
    errors = "kafka_network_requestmetrics_errors_total"
    assert seen(errors, request="Produce", error="MESSAGE_TOO_LARGE") == 1
    assert seen(TOPICS.format("failedproducerequests"), topic="small") == 1
    assert seen(TOPICS.format("totalproducerequests"), topic="small") == 1
    assert seen(TOPICS.format("bytesrejected"), topic="small") > 1000
    assert seen(TOPICS.format("messagesin"), topic="small") == 0


def test_the_lag_of_a_group_is_what_it_has_not_committed(broker: Broker) -> None:
    broker.create_topic("lagging", 2)
    produce(broker, "lagging", 0, 50)
    produce(broker, "lagging", 1, 20)
    odd = 'a "group"\nwith \\ everything'
    commit(broker, "behind", "lagging", {0: 40, 1: 20})
    commit(broker, odd, "lagging", {0: 0})
    seen = look(broker)
    lag = "kafka_consumergroup_lag"
    assert seen(lag, consumergroup="behind", topic="lagging", partition=0) == 10
    assert seen(lag, consumergroup="behind", topic="lagging", partition=1) == 0
    assert seen(lag, consumergroup=odd, topic="lagging", partition=0) == 50
    assert seen("kafka_consumergroup_current_offset", consumergroup="behind", topic="lagging", partition=0) == 40


def test_groups_are_counted_by_protocol_and_state(broker: Broker) -> None:
    broker.create_topic("joined")
    commit(broker, "only-offsets", "joined", {0: 0})
    member = consumer(broker, "joined-group")
    member.subscribe(["joined"])
    while not member.assignment():
        member.poll(0.1)
    seen = look(broker)
    assert seen("kafka_server_group_coordinator_metrics_classic_group_count", state="Stable") == 1
    assert seen("kafka_server_group_coordinator_metrics_classic_group_count", state="Empty") >= 1
    assert seen("kafka_server_group_coordinator_metrics_group_count", protocol="classic") >= 2
    assert seen("barnabas_coordinator_partitions", coordinator="group", state="loaded") == 1
    member.close()


def test_transactions_and_producers_are_counted(broker: Broker) -> None:
    broker.create_topic("transacted")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "counted"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("transacted", b"x")
    producer.flush(30)
    seen = look(broker)
    assert seen("barnabas_transactions", state="Ongoing") == 1
    assert seen("kafka_server_replicamanager_produceridcount") >= 1
    producer.commit_transaction(30)
    assert look(broker)("barnabas_transactions", state="Ongoing") == 0


def test_connections_and_their_ends_are_counted_by_listener(broker: Broker) -> None:
    connections = "kafka_server_socket_server_metrics_connection_{}"
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        admin.list_topics()
        during = look(broker)
        opened = during(connections.format("creation_total"), listener="PLAINTEXT")
        assert during(connections.format("count"), listener="PLAINTEXT") >= 1
    closed = during(connections.format("close_total"), listener="PLAINTEXT", reason="client")
    for _ in range(1000):
        after = look(broker)
        if after(connections.format("close_total"), listener="PLAINTEXT", reason="client") > closed:
            break
    else:
        pytest.fail("the end of a connection was not counted")
    assert opened >= 1
    assert after("kafka_server_socket_server_metrics_incoming_byte_total", listener="PLAINTEXT") > 0
    assert after("kafka_server_socket_server_metrics_outgoing_byte_total", listener="PLAINTEXT") > 0


def test_logins_are_counted_by_listener_and_outcome() -> None:
    async def run() -> dict[str, float]:
        both = Security("SASL_SSL", ("PLAIN",), {"alice": "wonderland"})
        settings = {"connection.failed.authentication.delay.ms": 0, "connections.max.reauth.ms": 60_000}
        async with AsyncBroker(security=both, config=settings, metrics=True) as broker:
            async with AsyncAdmin(broker.client_config()) as admin:
                await admin.describe_cluster()
            with pytest.raises(AuthenticationError):
                async with AsyncAdmin(broker.client_config() | {"sasl.password": "wrong"}):
                    pass
            reader, writer = await asyncio.open_connection(broker.host, broker.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.read()
            writer.close()
            tls = broker.ssl_context("alice")
            for token in (b"\0alice\0wonderland", b"\0alice\0wrong"):
                reader, writer = await asyncio.open_connection(broker.host, broker.port, ssl=tls)
                for each in (b"\0alice\0wonderland", token):
                    for message in (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest(auth_bytes=each)):
                        writer.write(frame(message, 1))
                        await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                writer.close()
            found = await asyncio.to_thread(scrape, broker.metrics_url)
            return {
                kind: found(f"kafka_server_socket_server_metrics_{kind}_total", listener="SASL_SSL")
                for kind in (
                    *("successful_authentication", "failed_authentication", "successful_reauthentication"),
                    *("failed_reauthentication", "expired_connections_killed"),
                )
            }

    assert asyncio.run(run()) == {
        "successful_authentication": 3,
        "failed_authentication": 2,
        "successful_reauthentication": 1,
        "failed_reauthentication": 1,
        "expired_connections_killed": 0,
    }


def test_a_throttled_connection_is_counted_with_its_time(broker: Broker) -> None:
    mutes = "barnabas_connection_mutes_total"
    with Admin({"bootstrap.servers": broker.bootstrap_servers, "client.id": "throttled"}) as admin:
        entity = quota_entity(client_id="throttled")
        assert admin.alter_client_quotas({entity: {"controller_mutation_rate": 1.0}}) == {entity: None}
        before = look(broker)(mutes, listener="PLAINTEXT")
        admin.create_topics([NewTopic("much", 12)])  # more than the quota has saved up, so the next one has to wait
        admin.create_topics([NewTopic("more", 1)])
    after = look(broker)
    assert after(mutes, listener="PLAINTEXT") > before
    assert after("barnabas_connection_muted_milliseconds_total", listener="PLAINTEXT") > 0


def test_the_cluster_and_the_quorum_are_described(broker: Broker) -> None:
    broker.create_topic("described", 3)
    seen = look(broker)
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        topics = admin.list_topics(include_internal=True)
    partitions = sum(topic.num_partitions for topic in topics)
    cluster = "kafka_controller_kafkacontroller_{}"
    assert seen(cluster.format("globaltopiccount")) == len(topics)
    assert seen(cluster.format("globalpartitioncount")) == partitions
    assert seen("kafka_server_replicamanager_partitioncount") == partitions
    assert seen("kafka_server_replicamanager_leadercount") == partitions
    assert seen("kafka_server_replicamanager_atminisrpartitioncount") == partitions
    zeros = ("underreplicatedpartitions", "underminisrpartitioncount", "offlinereplicacount", "reassigningpartitions")
    assert [seen(f"kafka_server_replicamanager_{name}") for name in zeros] == [0, 0, 0, 0]
    assert [seen(cluster.format(name)) for name in ("activecontrollercount", "activebrokercount")] == [1, 1]
    assert [seen(cluster.format(name)) for name in ("offlinepartitionscount", "fencedbrokercount")] == [0, 0]
    raft = "kafka_server_raft_metrics_{}"
    assert seen(raft.format("current_leader")) == seen(raft.format("number_of_voters")) == 1
    assert seen(raft.format("current_state"), state="leader") == 1
    assert seen(raft.format("high_watermark")) == seen(raft.format("log_end_offset")) > 10
    assert seen("barnabas_quorum_voter_lag", voter=1) == 0


def test_process_loop_and_node_are_described(broker: Broker) -> None:
    seen = look(broker)
    assert seen("kafka_server_kafkaserver_brokerstate") == 3
    assert seen("barnabas_ready") == 1
    assert seen("barnabas_uptime_seconds") > 0
    assert seen("process_resident_memory_bytes") > 1 << 20
    assert seen("barnabas_request_memory_bytes") <= seen("barnabas_request_memory_max_bytes")
    assert seen("barnabas_request_memory_limit_bytes") > 0
    assert seen("barnabas_response_memory_bytes") == 0
    assert 0 < seen("process_open_fds") < seen("process_max_fds")
    assert seen("barnabas_loop_lag_milliseconds_count") > 0
    assert [each["logdirectory"] for each in seen.labels("barnabas_log_directory_usable_bytes")] == [
        str(broker.data_dir)
    ]
    assert seen("kafka_log_logmanager_offlinelogdirectorycount") == 0


def test_nothing_fails_and_nothing_is_left_out(broker: Broker) -> None:
    seen = look(broker)
    for name in ("barnabas_metrics_failures_total", "barnabas_metrics_left_out"):
        rows = list(seen.labels(name))
        assert rows
        assert [labels for labels in rows if seen(name, **labels)] == []


def test_a_scrape_pauses_at_every_topic_partition_and_group(tmp_path: Path) -> None:
    async def main() -> tuple[int, bytes]:
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "log.dirs": str(tmp_path)}
        node = Node(server.load(None, settings))
        try:
            await node.start()
            topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=300, replication_factor=1)
            await node.controller.write(decisions.create, [topic])
            work, pauses = Renderer().render(node.observed()), 0
            while True:
                try:
                    waited = next(work)
                except StopIteration as end:
                    return pauses, end.value
                pauses += 1
                if waited is not None:
                    await waited
        finally:
            await node.stop()
            node.failed.cancel()

    pauses, text = asyncio.run(main())
    assert Scrape(text.decode())("kafka_server_replicamanager_partitioncount") == 300
    assert pauses > 300


# --- limits


def test_topics_partitions_groups_and_offsets_above_the_limits_are_counted_but_have_no_rows() -> None:
    limits = {f"barnabas.metrics.max.{what}": 2 for what in ("topics", "partitions", "groups")}
    with Broker(dict.fromkeys(("a", "b", "c"), 3), metrics=True, config=limits) as broker:
        for name in ("a", "b", "c"):
            for partition in range(3):
                produce(broker, name, partition, 1)
        for group in ("g1", "g2", "g3", "g" * 300):
            commit(broker, group, "a", {0: 1, 1: 1})
        seen = look(broker)
    left_out = {
        labels["kind"]: seen("barnabas_metrics_left_out", **labels)
        for labels in seen.labels("barnabas_metrics_left_out")
    }
    assert left_out == {"topics": 2, "partitions": 8, "groups": 2, "offsets": 2, "rows": 0}
    assert len(list(seen.labels(TOPICS.format("messagesin")))) == 2 + 1
    assert seen(TOPICS.format("messagesin")) >= 9
    assert len(list(seen.labels("kafka_log_log_size"))) == 2
    assert len(list(seen.labels("kafka_consumergroup_lag"))) == 2


def test_without_limits_on_anything_the_sums_remain() -> None:
    limits = {f"barnabas.metrics.max.{what}": 0 for what in ("topics", "partitions", "groups")}
    with Broker(["a"], metrics=True, config=limits) as broker:
        produce(broker, "a", 0, 5)
        seen = look(broker)
    assert list(seen.labels(TOPICS.format("messagesin"))) == [{}]
    assert seen(TOPICS.format("messagesin")) == 5


# --- lives of a node


def test_two_nodes_in_one_process_do_not_share_counters() -> None:
    with Broker(["t"], metrics=True) as one, Broker(["t"], metrics=True) as other:
        produce(one, "t", 0, 7)
        assert look(one)(TOPICS.format("messagesin"), topic="t") == 7
        seen = look(other)
        assert seen(TOPICS.format("messagesin"), topic="t") == 0
        names = {each["request"] for each in seen.labels("kafka_network_requestmetrics_requests_total")}
        assert "Produce" not in names


def test_a_restarted_broker_has_the_same_address_and_new_counters() -> None:
    with Broker(["t"], metrics=True) as broker:
        produce(broker, "t", 0, 7)
        url = broker.metrics_url
        broker.restart()
        assert broker.metrics_url == url
        seen = look(broker)
        assert seen(TOPICS.format("messagesin")) == 0
        assert seen.get("kafka_log_log_logendoffset", topic="t", partition=0) in (None, 7)


def test_scrapes_while_a_node_stops_are_answered_or_closed_and_never_fail_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker({"t": 20}, metrics=True) as broker:
        for partition in range(20):
            produce(broker, "t", partition, 1)
        url = broker.metrics_url

        async def scrape_until_closed() -> None:
            while True:
                try:
                    answer = await asyncio.to_thread(ask, url)
                except OSError:
                    return
                assert "barnabas_metrics_failures_total" in answer.text
                assert not re.search(r"^barnabas_metrics_failures_total\{.*\} [1-9]", answer.text, re.MULTILINE)

        async def stop() -> None:
            scraping = asyncio.create_task(scrape_until_closed())
            await asyncio.to_thread(broker.stop)
            await scraping

        asyncio.run(stop())
    assert "could not be collected" not in caplog.text


def test_a_part_that_fails_is_left_out_counted_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def collect(node: object, out: object, left_out: object) -> Slices[None]:
        yield
        raise ValueError("planned")

    broken = tuple(each._replace(collect=collect) if each.name == "topics" else each for each in render.COLLECTORS)
    monkeypatch.setattr(render, "COLLECTORS", broken)
    with Broker(["t"], metrics=True) as broker:
        look(broker)
        seen = look(broker)
    assert seen("barnabas_metrics_failures_total", part="topics") == 2
    assert not list(seen.labels(TOPICS.format("messagesin")))
    assert seen("kafka_server_replicamanager_partitioncount") == 1
    assert caplog.text.count("the metrics of topics could not be collected") == 1


# --- documents


def documented() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Type, labels and meaning of every metric of docs/metrics.md."""
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.+?) \| (.+?) \| .+ \|$", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE
    )
    found = {name: (kind, tuple(re.findall(r"`(\w+)`", labels)), meaning) for name, kind, labels, meaning in rows}
    assert len(found) == len(rows)
    return found


def test_the_page_describes_exactly_the_metrics_that_a_node_has(broker: Broker) -> None:
    seen = look(broker)
    page = documented()
    assert page == {each.name: (each.type, each.labels, each.help) for each in METRICS}
    assert {name: (family.type, family.documentation) for name, family in seen.families.items()} == {
        name: (kind, meaning) for name, (kind, _, meaning) in page.items()
    }


def test_the_metrics_of_limits_are_there() -> None:
    """docs/reliability.md has a table of what clients can make a node hold, with where it can be read."""
    named = set(re.findall(r"`((?:barnabas|kafka|process)_\w+)`", (ROOT / "docs/reliability.md").read_text()))
    assert len(named) > 20
    assert named <= documented().keys()


def test_rows_have_the_labels_that_the_page_names(broker: Broker) -> None:
    produce(broker, "labelled", 0, 1)
    commit(broker, "labelled", "labelled", {0: 1})
    page = documented()
    wrong = []
    for name, family in look(broker).families.items():
        for sample in family.samples:
            given = tuple(each for each in sample.labels if each != "le")
            if given != page[name][1] and not (name.startswith("kafka_server_brokertopicmetrics_") and not given):
                wrong.append(f"{sample.name}{sample.labels}")
    assert wrong == []


def test_every_metric_of_the_dashboard_exists_and_no_panel_is_empty(broker: Broker) -> None:
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries += [each["definition"] for each in dashboard["templating"]["list"] if "definition" in each]
    known = set(look(broker).families)
    known |= {
        f"{each.name}_{part}" for each in METRICS if each.type == "histogram" for part in ("bucket", "sum", "count")
    }
    used = {name for query in queries for name in re.findall(r"\b(?:kafka|barnabas|process)_\w+", query)}
    assert used - known == set()
    assert len(used) > 30
    assert all(panel["targets"] for panel in panels)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_labels_in_queries_of_the_dashboard_are_labels_of_their_metrics() -> None:
    dashboard = json.loads((ROOT / "docs/grafana-dashboard.json").read_text())
    of_prometheus = {"job", "instance", "le"}
    by_name = {each.name: set(each.labels) for each in METRICS}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            names = re.findall(r"\b((?:kafka|barnabas|process)_\w+)\{", target["expr"])
            known = set().union(*(by_name[re.sub("_bucket$", "", name)] for name in names)) | of_prometheus
            used = {each for by in re.findall(r"by \(([^)]*)\)", target["expr"]) for each in by.split(", ")}
            used |= set(re.findall(r"(\w+)(?:=~|!=|=)\"", target["expr"]))
            used |= set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert used <= known, target["expr"]
