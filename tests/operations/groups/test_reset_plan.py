"""Where offsets go in a reset, durations, and what Java's maps and exceptions look like: pure functions, by examples."""

from __future__ import annotations

import doctest

import pytest

from barnabas.cli.kafka import java_text, kafka_transactions
from barnabas.cli.kafka.java_text import csv_line, exception_name, hash_order, partition_hash, string_hash
from barnabas.cli.kafka.kafka_consumer_groups import lines as consumer_groups_tool
from barnabas.client.records import TopicPartition
from barnabas.operations import partitions
from barnabas.operations import quantities as durations
from barnabas.operations.groups import reset_plan as offset_resets
from barnabas.operations.groups.reset_plan import (
    Log,
    NoOffsetError,
    Planned,
    Reset,
    Rule,
    parse_file,
    plan,
)
from barnabas.operations.quantities import parse_duration_ms, parse_iso_duration_ms
from barnabas.wire import ErrorCode

HERE = TopicPartition("orders", 0)
LOG = Log(start=10, end=100, at_time=42)


@pytest.mark.parametrize(
    "module", [consumer_groups_tool, durations, java_text, kafka_transactions, offset_resets, partitions]
)
def test_examples_are_true(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize(
    ("reset", "committed", "planned"),
    [
        (Reset(Rule.EARLIEST), 50, Planned(10)),
        (Reset(Rule.LATEST), 50, Planned(100)),
        (Reset(Rule.CURRENT), 50, Planned(50)),
        (Reset(Rule.CURRENT), None, Planned(100)),
        (Reset(Rule.OFFSET, 20), None, Planned(20)),
        (Reset(Rule.OFFSET, 5), None, Planned(10, 5)),
        (Reset(Rule.OFFSET, 500), 50, Planned(100, 500)),
        (Reset(Rule.SHIFT, -20), 50, Planned(30)),
        (Reset(Rule.SHIFT, 60), 50, Planned(100, 110)),
        (Reset(Rule.TIME, 7), 50, Planned(42)),
        (Reset(Rule.FILE), 50, Planned(33)),
    ],
)
def test_each_rule_gives_an_offset_that_the_log_has(reset: Reset, committed: int | None, planned: Planned) -> None:
    now = {} if committed is None else {HERE: committed}
    assert plan(reset, {HERE: LOG}, now, {HERE: 33}) == {HERE: planned}


def test_a_time_after_the_last_record_is_the_end() -> None:
    assert plan(Reset(Rule.TIME, 7), {HERE: Log(10, 100)}, {}) == {HERE: Planned(100)}


def test_what_has_no_offset_cannot_be_shifted() -> None:
    with pytest.raises(NoOffsetError, match="orders-0"):
        plan(Reset(Rule.SHIFT, 1), {HERE: LOG}, {})


def test_a_file_may_be_of_one_group_or_of_several() -> None:
    text = 'orders,0,7\n\nmine,orders,1,8\r\n"theirs",orders,2,9\n'
    assert parse_file(text, "mine") == {("orders", 0): 7, ("orders", 1): 8}
    assert parse_file(text, "theirs") == {("orders", 0): 7, ("orders", 2): 9}
    for wrong in ("orders,0\n", "a,b,orders,0,1\n", "orders,0,many\n"):
        with pytest.raises(ValueError, match=r"^line 1: "):
            parse_file(wrong, "mine")


def test_topics_have_numbers_after_a_colon() -> None:
    assert partitions.parse_selection("orders:3") == ("orders", (3,))
    with pytest.raises(ValueError, match="'orders:': partitions are numbers"):
        partitions.parse_selection("orders:")


def test_durations_are_short_or_as_in_iso_8601() -> None:
    assert [parse_duration_ms(text) for text in ("250ms", "1.5h", "2w")] == [250, 5_400_000, 1_209_600_000]
    assert [parse_duration_ms(text) for text in ("P2D", "pt1h", "PT-1M", "-PT1M")] == [
        172_800_000,
        3_600_000,
        -60_000,
        -60_000,
    ]
    for wrong in ("", "P", "PT", "P1DT", "1 day", "P1Y", "10"):
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration_ms(wrong)
    with pytest.raises(ValueError, match="is not a duration"):
        parse_iso_duration_ms("90m")


def test_keys_have_the_order_of_a_hash_map_of_java() -> None:
    # As java.util.HashMap gives them back: by bucket, and more buckets from the thirteenth key on.
    names = ["classic-group", "another-group-with-a-long-name", "empty-group", "consumer-group"]
    assert hash_order(reversed(names), string_hash) == [*names[:2], "consumer-group", "empty-group"]
    assert hash_order(names, string_hash) == names
    partitions = [TopicPartition("reset", number) for number in range(14)]
    assert sorted(hash_order(partitions, partition_hash)) == partitions
    assert string_hash("\U0001f600") == 1772899


def test_every_code_has_the_exception_of_kafkas_client() -> None:
    irregular = {
        ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
        ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
        ErrorCode.INVALID_REPLICATION_FACTOR: "InvalidReplicationFactorException",
    }
    assert {code: exception_name(code) for code in irregular} == irregular


def test_long_texts_of_csv_are_in_quotes() -> None:
    assert csv_line(["of-a-name-longer-than-others", 0, 1]) == '"of-a-name-longer-than-others",0,1'
    assert csv_line(['say "hi"', -1]) == '"say ""hi""",-1'
