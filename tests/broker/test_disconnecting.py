"""A client that sends requests and disconnects without waiting: what was received whole is done."""

from __future__ import annotations

import socket
import ssl

import pytest
from bench.connection import frame

from barnabas.batches import Record, build_batch
from barnabas.testing import Broker, Security
from barnabas.wire.messages.produce import ProduceRequest

PARTITIONS = 40


def produce(partition: int) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=partition, records=build_batch([Record(0, 0, None, b"v")]))
    topic = ProduceRequest.TopicProduceData(name="quick", partition_data=[data])
    return frame(ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic]), 9)


@pytest.mark.parametrize("rounds", [1, 5])
def test_records_without_acknowledgement_are_written_although_the_producer_has_disconnected(rounds: int) -> None:
    """Their logs are not open yet, so the first request waits for a thread and the others behind it."""
    with Broker(topics={"quick": PARTITIONS}) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"".join(produce(partition) for partition in range(PARTITIONS)) * rounds)
        found = broker.records("quick", PARTITIONS * rounds)
        assert {record.partition for record in found} == set(range(PARTITIONS))


@pytest.mark.parametrize("says_so", [True, False], ids=["with an alert", "without"])
def test_so_are_those_over_tls(says_so: bool) -> None:
    requests = 100
    with Broker(topics={"quick": PARTITIONS}, security=Security("SSL")) as broker:
        context = broker.ssl_context("alice")
        assert context is not None
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # tickets of TLS 1.3, left unread, would reset the connection
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as sock:
            client = context.wrap_socket(sock, server_hostname="localhost")
            client.sendall(b"".join(produce(number % PARTITIONS) for number in range(requests)))
            if says_so:
                client.unwrap()
            client.close()
        assert len(broker.records("quick", requests)) == requests
