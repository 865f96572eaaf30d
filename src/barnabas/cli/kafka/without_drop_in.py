"""Scripts of Kafka 4.3.1 that have no drop-in here, each with the reason and the command to use instead. Data only."""

from __future__ import annotations

from typing import NamedTuple

_CONNECT = "Kafka Connect is not part of barnabas"
_SYSTEM_TESTS = "it is for Kafka's own system tests"
_APACHE = "the script of Apache Kafka"


class Unavailable(NamedTuple):
    """The reason why a script has no drop-in, and what to use instead."""

    reason: str
    instead: str


WITHOUT_DROP_IN = {
    "kafka-jmx": Unavailable("there is no JMX without a JVM", "barnabas lake report"),
    "kafka-metadata-shell": Unavailable("an interactive shell", "barnabas metadata ls, cat, find"),
    "kafka-replica-verification": Unavailable("deprecated in Kafka", "barnabas topics describe --under-replicated"),
    "kafka-run-class": Unavailable("it runs classes of Java", _APACHE),
    "kafka-server-stop": Unavailable("it ends every process with a matching name", "kill with the id of the process"),
    "kafka-share-consumer-perf-test": Unavailable("not made yet", "barnabas kafka-consumer-perf-test"),
    "kafka-streams-application-reset": Unavailable("it is for applications of Kafka Streams", "barnabas groups reset"),
    "kafka-verifiable-consumer": Unavailable(_SYSTEM_TESTS, "barnabas records consume -o jsonl"),
    "kafka-verifiable-producer": Unavailable(_SYSTEM_TESTS, "barnabas records produce"),
    "kafka-verifiable-share-consumer": Unavailable(_SYSTEM_TESTS, "barnabas records consume --share-group"),
    "connect-distributed": Unavailable(_CONNECT, _APACHE),
    "connect-mirror-maker": Unavailable(_CONNECT, _APACHE),
    "connect-plugin-path": Unavailable(_CONNECT, _APACHE),
    "connect-standalone": Unavailable(_CONNECT, _APACHE),
    "trogdor": Unavailable(_SYSTEM_TESTS, _APACHE),
}
