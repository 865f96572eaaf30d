"""A running broker takes what it can go over to, and tiered topics what fits together; the rest with Kafka's words."""

from __future__ import annotations

import pytest

from barnabas.config import server, topic
from barnabas.config.definitions import ConfigError
from barnabas.config.hash_order import hash_order, text_hash, tree_order
from barnabas.config.reconfiguration import check
from barnabas.wire.errors import ErrorCode

TIERED = {"remote.storage.enable": "true"}


def refusal(before: dict[str, str], after: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as refused:
        check(server.load(None, before), server.load(None, after))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    prefix, suffix = (
        "Invalid value org.apache.kafka.common.config.ConfigException: ",
        " for configuration Invalid dynamic",
    )
    message, _, _ = refused.value.message.removeprefix(prefix).rpartition(suffix)
    return message


@pytest.mark.parametrize("name", ["num.io.threads", "num.network.threads", "log.cleaner.threads"])
def test_threads_at_most_double_or_halve(name: str) -> None:
    for count in ("2", "4", "8"):
        check(server.load(None, {name: "4"}), server.load(None, {name: count}))
    assert refusal({name: "4"}, {name: "1"})
    assert refusal({name: "4"}, {name: "9"}).endswith("double the current value 4")


def test_listeners_in_use_keep_their_protocol_and_do_not_go() -> None:
    before = {
        "listeners": "PLAINTEXT://:1,OTHER://:2,CONTROLLER://:3",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    protocols = before["listener.security.protocol.map"].replace("OTHER:PLAINTEXT", "OTHER:SASL_PLAINTEXT")
    assert refusal(before, {**before, "listener.security.protocol.map": protocols}) == (
        "Security protocol cannot be updated for existing listener ListenerName(OTHER)"
    )
    assert refusal(before, {**before, "listeners": "PLAINTEXT://:1,CONTROLLER://:3"}) == (
        "Advertised listeners 'Set(ListenerName(PLAINTEXT), ListenerName(OTHER))' must be a subset of listeners "
        "'Set(ListenerName(PLAINTEXT), ListenerName(CONTROLLER))'"
    )


def test_a_listener_is_not_closed_by_allowing_no_connections() -> None:
    name = "listener.name.plaintext.max.connections"
    assert refusal({}, {name: "0"}) == "Invalid max.connections 0"


def test_nothing_is_looked_at_when_nothing_changes() -> None:
    config = server.load(None, {"log.local.retention.ms": "-1"})
    check(config, config)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        (
            {"cleanup.policy": "compact"},
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list.",
        ),
        (
            {"retention.bytes": "5", "local.retention.bytes": "-1"},
            "Invalid value -1 for configuration local.retention.bytes: "
            "Value must not be -1 as retention.bytes value is set as 5.",
        ),
        (
            {"retention.ms": "5", "local.retention.ms": "6"},
            "Invalid value 6 for configuration local.retention.ms: "
            "Value must not be more than retention.ms property value: 5",
        ),
        (
            {"remote.log.copy.disable": "true", "retention.ms": "5", "local.retention.ms": "4"},
            "When `remote.log.copy.disable` is set to true, the `local.retention.ms` and `retention.ms` must be set to "
            "the identical value because there will be no more logs copied to the remote storage.",
        ),
    ],
)
def test_a_tiered_topic_keeps_less_on_disk_than_it_keeps_at_all(configs: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        topic.validate({**TIERED, **configs}, remote_storage_system_enabled=True)
    assert refused.value.message == message


def test_a_topic_stops_being_tiered_only_with_what_was_tiered() -> None:
    with pytest.raises(ConfigError, match="without deleting remote data"):
        topic.validate({}, existing=TIERED)
    topic.validate({"remote.log.delete.on.disable": "true"}, existing=TIERED)
    topic.validate({}, existing={"remote.storage.enable": "false"})


def test_names_have_the_hashes_that_java_gives_them() -> None:
    assert text_hash("hello") == 99162322
    assert text_hash("polygenelubricants") == 0x80000000
    assert text_hash("\U0001f600") == 31 * 0xD83D + 0xDE00
    for size in (63, 64, 65, 32767):
        assert text_hash("x" * size) == sum(ord("x") * 31**power for power in range(size)) % 2**32


def test_orders_follow_from_hashes() -> None:
    assert tree_order(["polygenelubricants", "", "hello"]) == ["polygenelubricants", "", "hello"]
    # Of 16 buckets a and q share one, where the first to come is the first; of 32 they do not.
    assert hash_order(["c", "q", "b", "a"]) == ["q", "a", "b", "c"]
    assert hash_order(["q", *"abcdefghijklm"]) == [*"abcdefghijklm", "q"]
