"""Settings, users and quotas: our commands against Apache Kafka, new and old, and kafka-configs beside Kafka's own."""

from __future__ import annotations

import asyncio
import difflib
import json
import shlex
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tools.apache_kafka import ApacheKafka

from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.admin.configs import (
    AlterConfigOp,
    AlterConfigOpType,
    Config,
    ConfigResource,
    Configs,
    ConfigSource,
)
from barnabas.client.admin.part import checked
from barnabas.client.admin.quotas import DEFAULT, QuotaFilter, Quotas, quota_entity
from barnabas.client.admin.users import ScramDeletion, ScramMechanism, ScramUpsertion, Users
from barnabas.config.resource_type import ConfigResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.command_line import Command, Done, invoke
from tests.interop.tool_process import ToolProcess

pytestmark = pytest.mark.interop

T = TypeVar("T")
SET, DELETE, APPEND, SUBTRACT = AlterConfigOpType


@pytest.fixture(scope="module", params=["kafka", "old_kafka"])
def any_kafka(request: pytest.FixtureRequest) -> ApacheKafka:
    node: ApacheKafka = request.getfixturevalue(request.param)
    return node


@pytest.fixture(scope="module")
def tools() -> Iterator[ToolProcess]:
    with ToolProcess() as running:
        yield running


def ask(node: ApacheKafka, question: Callable[[Cluster], Awaitable[T]], **settings: str) -> T:
    async def whole() -> T:
        given = settings or {"bootstrap.servers": node.bootstrap}
        async with Cluster(given) as cluster:
            return await question(cluster)

    return asyncio.run(whole())


def create(node: ApacheKafka, name: str) -> ConfigResource:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    response = ask(node, lambda cluster: cluster.call(CreateTopicsRequest(topics=[topic], timeout_ms=30000)))
    assert response.topics[0].error_code == 0
    return ConfigResource.topic(name)


def barnabas(node: ApacheKafka, line: str, code: int | None = 0, stdin: str = "") -> Done:
    return Command().split(None if "--bootstrap-controller" in line else node, line, code=code, stdin=stdin)


def rows(node: ApacheKafka, line: str, code: int = 0) -> Any:
    return barnabas(node, f"{line} -o json", code).json


async def eventually(look: Callable[[], Awaitable[T]], is_so: Callable[[T], bool]) -> T:
    """A broker shows a moment later what the controller has done."""
    for _ in range(100):
        found = await look()
        if is_so(found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


def rows_eventually(node: ApacheKafka, line: str, is_so: Callable[[Any], object]) -> Any:
    for _ in range(100):
        result = barnabas(node, f"{line} -o json", None)
        found = json.loads(result.stdout)
        if is_so(found):
            return found
        time.sleep(0.1)
    raise AssertionError(result.output)


# --- the client


def test_settings_of_every_kind_are_described_and_changed(any_kafka: ApacheKafka) -> None:
    topic = create(any_kafka, "client-configs")
    one, every = ConfigResource.broker(1), ConfigResource.all_brokers()

    async def scenario(cluster: Cluster) -> None:
        configs = Configs(cluster)
        ops = {
            topic: [AlterConfigOp("cleanup.policy", APPEND, "compact"), AlterConfigOp("retention.ms", SET, "7")],
            one: [AlterConfigOp("log.cleaner.threads", SET, "2")],
            every: [AlterConfigOp("message.max.bytes", SET, "2000000")],
            ConfigResource.topic("missing"): [AlterConfigOp("retention.ms", SET, "7")],
        }
        results = await configs.incremental_alter_configs(ops)
        refused = results.pop(ConfigResource.topic("missing"))
        assert refused is not None
        assert refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        checked(results)

        async def described() -> dict[ConfigResource, Config]:
            return checked(
                await configs.describe_configs([topic, one, every], include_synonyms=True, include_documentation=True)
            )

        def is_changed(now: dict[ConfigResource, Config]) -> bool:
            return (
                now[topic]["retention.ms"].value == "7"
                and now[one]["log.cleaner.threads"].value == "2"
                and len(now[one]["message.max.bytes"].synonyms) > 1
            )

        found = await eventually(described, is_changed)
        assert set(str(found[topic]["cleanup.policy"].value).split(",")) == {"delete", "compact"}
        assert found[topic]["retention.ms"].documentation
        assert found[one]["log.cleaner.threads"].source is ConfigSource.DYNAMIC_BROKER_CONFIG
        sources = [each.source.name for each in found[one]["message.max.bytes"].synonyms]
        assert sources == ["DYNAMIC_DEFAULT_BROKER_CONFIG", "DEFAULT_CONFIG"]
        unset = {
            topic: [AlterConfigOp("cleanup.policy", SUBTRACT, "compact"), AlterConfigOp("retention.ms", DELETE)],
            one: [AlterConfigOp("log.cleaner.threads", DELETE)],
            every: [AlterConfigOp("message.max.bytes", DELETE)],
        }
        checked(await configs.incremental_alter_configs(unset))
        checked(await configs.alter_configs({topic: {"segment.ms": "5000"}}))

        def is_replaced(now: dict[ConfigResource, Config]) -> bool:
            own = {name: entry.value for name, entry in now[topic].items() if entry.source is topic.own_source}
            return (
                own == {"segment.ms": "5000"}
                and now[one]["log.cleaner.threads"].value == "1"
                and len(now[one]["message.max.bytes"].synonyms) == 1
            )

        await eventually(described, is_replaced)
        logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1")
        checked(
            await configs.incremental_alter_configs({logger: [AlterConfigOp("kafka.server.KafkaApis", SET, "ERROR")]})
        )
        assert checked(await configs.describe_configs([logger]))[logger]["kafka.server.KafkaApis"].value == "ERROR"
        checked(await configs.incremental_alter_configs({logger: [AlterConfigOp("kafka.server.KafkaApis", DELETE)]}))

    ask(any_kafka, scenario)


def test_resources_are_listed_as_far_as_the_release_can(any_kafka: ApacheKafka) -> None:
    topic = create(any_kafka, "client-listed")
    metrics = ConfigResource(ConfigResourceType.CLIENT_METRICS, "client-listed")

    async def scenario(cluster: Cluster) -> None:
        configs = Configs(cluster)
        checked(await configs.incremental_alter_configs({metrics: [AlterConfigOp("interval.ms", SET, "5000")]}))
        known = [ConfigResourceType.TOPIC, ConfigResourceType.BROKER, ConfigResourceType.CLIENT_METRICS]
        wanted = {topic, metrics, ConfigResource.broker(1)}
        await eventually(lambda: configs.list_config_resources(known), lambda found: wanted <= set(found))
        if any_kafka.version.startswith("3."):
            with pytest.raises(UnsupportedByNodeError, match=r"Kafka 4\.1"):
                await configs.list_config_resources()
        else:
            assert topic in await configs.list_config_resources()
        checked(await configs.incremental_alter_configs({metrics: [AlterConfigOp("interval.ms", DELETE)]}))

    ask(any_kafka, scenario)


def test_controllers_are_asked_for_settings_too(any_kafka: ApacheKafka) -> None:
    topic, every = create(any_kafka, "client-controllers"), ConfigResource.all_brokers()
    controllers = {"bootstrap.controllers": any_kafka.controller}

    async def scenario(cluster: Cluster) -> None:
        configs = Configs(cluster)
        ops = {
            topic: [AlterConfigOp("retention.ms", SET, "9")],
            every: [AlterConfigOp("log.cleaner.threads", SET, "3")],
        }
        checked(await configs.incremental_alter_configs(ops))

        async def described() -> dict[ConfigResource, Config]:
            return checked(await configs.describe_configs([topic, every]))

        def is_changed(now: dict[ConfigResource, Config]) -> bool:
            threads = now[every].get("log.cleaner.threads")
            return now[topic]["retention.ms"].value == "9" and threads is not None and threads.value == "3"

        await eventually(described, is_changed)
        checked(await configs.incremental_alter_configs({every: [AlterConfigOp("log.cleaner.threads", DELETE)]}))

    ask(any_kafka, scenario, **controllers)


def test_quotas_are_set_found_and_removed(any_kafka: ApacheKafka) -> None:
    both, default = quota_entity(user="q", client_id="c"), quota_entity(user="q", client_id=DEFAULT)

    async def scenario(cluster: Cluster) -> None:
        quotas = Quotas(cluster)
        values = {both: {"producer_byte_rate": 5.0, "request_percentage": 1.5}, default: {"consumer_byte_rate": 6.0}}
        bad = {quota_entity(user="bad"): {"no_such_rate": 1.0}}
        assert set(checked(await quotas.alter_client_quotas(values, validate_only=True))) == set(values)
        results = await quotas.alter_client_quotas({**values, **bad})
        assert [entity for entity, error in results.items() if isinstance(error, KafkaError)] == list(bad)
        of_user = [QuotaFilter.exact("user", "q")]
        await eventually(lambda: quotas.describe_client_quotas(of_user), lambda found: found == values)
        exactly = [*of_user, QuotaFilter.default("client-id")]
        assert set(await quotas.describe_client_quotas(exactly, strict=True)) == {default}
        checked(await quotas.alter_client_quotas({entity: dict.fromkeys(old) for entity, old in values.items()}))
        await eventually(lambda: quotas.describe_client_quotas(of_user), lambda found: found == {})

    ask(any_kafka, scenario)


def test_users_get_change_and_lose_credentials(any_kafka: ApacheKafka) -> None:
    first, second = ScramMechanism

    async def scenario(cluster: Cluster) -> None:
        users = Users(cluster)
        checked(
            await users.alter_user_scram_credentials(
                [ScramUpsertion("u", first, "x"), ScramUpsertion("u", second, "y")]
            )
        )
        both = {(first, 4096), (second, 4096)}
        await eventually(users.describe_user_scram_credentials, lambda found: set(checked(found).get("u", ())) == both)
        checked(await users.alter_user_scram_credentials([ScramDeletion("u", first), ScramDeletion("u", second)]))
        found = await eventually(
            lambda: users.describe_user_scram_credentials(["u"]), lambda found: isinstance(found["u"], KafkaError)
        )
        assert isinstance(found["u"], KafkaError)
        assert found["u"].code is ErrorCode.RESOURCE_NOT_FOUND
        (refused,) = (await users.alter_user_scram_credentials([ScramDeletion("u", first)])).values()
        assert refused is not None
        assert refused.code is ErrorCode.RESOURCE_NOT_FOUND

    ask(any_kafka, scenario)


# --- the commands


def own(found: list[dict[str, Any]]) -> dict[str, str]:
    """Without what Kafka sets for topics by itself since 4.1."""
    return {row["name"]: row["value"] for row in found if row["name"] != "min.insync.replicas"}


def test_configs_shows_changes_and_compares(any_kafka: ApacheKafka) -> None:
    create(any_kafka, "cmd-a")
    create(any_kafka, "cmd-b")
    barnabas(any_kafka, "configs set cmd-a retention.ms=5 cleanup.policy=compact")
    barnabas(any_kafka, "configs append cmd-a cleanup.policy=delete --dry-run")
    barnabas(any_kafka, "configs append cmd-a cleanup.policy=delete")
    expected = {"retention.ms": "5", "cleanup.policy": "compact,delete"}
    rows_eventually(any_kafka, "configs describe cmd-a", lambda found: own(found) == expected)
    assert {row["name"] for row in rows(any_kafka, "configs diff cmd-a cmd-b")} == set(expected)
    assert {row["name"] for row in rows(any_kafka, "configs diff cmd-a")} >= set(expected)
    (row,) = rows(any_kafka, "configs set cmd-a retention.ms=soon", code=1)
    assert row["error"] == "INVALID_CONFIG"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in barnabas(any_kafka, "configs describe nothing", code=1).stderr


def test_configs_reads_the_log_of_kafka_and_sets_back_what_was_set(any_kafka: ApacheKafka) -> None:
    create(any_kafka, "cmd-past")
    log_dir = f"--log-dir {any_kafka.directory / 'data'}"
    barnabas(any_kafka, "configs set cmd-past retention.ms=5")
    first = rows(any_kafka, f"configs history cmd-past {log_dir} --name retention.ms")[-1]
    barnabas(any_kafka, "configs set cmd-past retention.ms=6 segment.ms=7000")
    rows_eventually(any_kafka, "configs describe cmd-past", lambda found: own(found).get("segment.ms") == "7000")
    found = rows(any_kafka, f"configs history cmd-past {log_dir} --name '[rs]e*'")
    assert [(row["name"], row["before"], row["after"]) for row in found] == [
        ("retention.ms", None, "5"),
        ("retention.ms", "5", "6"),
        ("segment.ms", None, "7000"),
    ]
    live = rows(any_kafka, f"configs history cmd-past --bootstrap-controller {any_kafka.controller} --name '[rs]e*'")
    assert live == found
    barnabas(any_kafka, f"configs rollback cmd-past {log_dir} --to {first['offset']}")
    rows_eventually(any_kafka, "configs describe cmd-past", lambda found: own(found) == {"retention.ms": "5"})


def test_users_and_quotas_are_managed(any_kafka: ApacheKafka) -> None:
    def of_eve(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in found if "eve" in (row.get("user"), *row.get("entity", "").replace(",", "").split())]

    barnabas(any_kafka, "users set eve --password-stdin", stdin="secret\n")
    found = rows_eventually(any_kafka, "users list", of_eve)
    assert of_eve(found) == [{"user": "eve", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    barnabas(any_kafka, "users delete eve --yes")
    rows_eventually(any_kafka, "users list", lambda found: of_eve(found) == [])
    barnabas(any_kafka, "quotas set --user eve --client-id-default producer_byte_rate=1000")
    (row,) = of_eve(rows_eventually(any_kafka, "quotas list", of_eve))
    assert (row["entity"], row["value"]) == ("user eve, client-id (default)", 1000.0)
    barnabas(any_kafka, "quotas unset --user eve --client-id-default --all")
    rows_eventually(any_kafka, "quotas list", lambda found: of_eve(found) == [])


# --- kafka-configs beside Kafka's own


def ours(args: list[str]) -> tuple[int, str, str]:
    return invoke("kafka-configs", *args)[:3]


def with_addresses(node: ApacheKafka, line: str) -> list[str]:
    server, controller = f"--bootstrap-server {node.bootstrap}", f"--bootstrap-controller {node.controller}"
    return shlex.split(line.replace("{s}", server).replace("{c}", controller))


def first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""


LOOKS = """
{s} --describe --topic tool
{s} --describe --topic tool --all
{s} --describe --entity-type topics --entity-name tool
{s} --describe --entity-type topics
{c} --describe --entity-type topics
{s} --describe --topic missing
{s} --describe --topic missing --all
{s} --describe --topic bad!name
{s} --describe --topic ..
{s} --describe --entity-type brokers
{s} --describe --entity-type brokers --all
{s} --describe --broker 1
{s} --describe --broker 1 --all
{s} --describe --broker 99
{s} --describe --broker-defaults
{s} --describe --entity-type brokers --entity-default
{c} --describe --broker 1
{c} --describe --broker-defaults
{s} --describe --broker-logger 1
{s} --describe --broker-logger 99
{s} --describe --client-metrics tool
{s} --describe --client-metrics tool --all
{s} --describe --client-metrics missing
{s} --describe --entity-type client-metrics
{s} --describe --group tool
{s} --describe --group tool --all
{s} --describe --group missing
{s} --describe --entity-type groups
{s} --describe --entity-type users
{s} --describe --user ann
{s} --describe --user nobody
{s} --describe --user-defaults
{s} --describe --entity-type users --entity-default
{s} --describe --user ann --client app
{s} --describe --entity-type users --entity-name ann --entity-type clients
{s} --describe --entity-type users --entity-type clients
{s} --describe --entity-type users --entity-default --entity-type clients --entity-name app
{s} --describe --entity-type clients
{s} --describe --client app
{s} --describe --client-defaults
{s} --describe --entity-type ips
{s} --describe --ip 127.0.0.9
{s} --describe --ip-defaults
"""

REFUSED = """
{s} --describe --alter --topic tool
{s} --topic tool
--describe --topic tool
{s} {c} --describe --topic tool
{s} --describe
{s} --describe --entity-type nonsense
{s} --describe --entity-type topics --entity-type topics
{s} --describe --entity-type topics --entity-type users
{s} --describe --topic tool --group g
{s} --describe --topic tool --entity-type topics
{s} --describe --broker one
{s} --describe --ip not.a.host.invalid
{s} --describe --entity-type topics --entity-default
{s} --describe --entity-type broker-loggers
{s} --describe --topic tool --add-config a=b
{s} --describe --topic tool --delete-config a
{s} --describe --topic tool --topic other
{s} --describe --nonsense
{s} --describe --topic
{s} --alter --topic tool
{s} --alter --entity-type topics --add-config a=b
{s} --alter --entity-type users --add-config a=b
{s} --alter --entity-type users --entity-name u --entity-type clients --add-config producer_byte_rate=1
{s} --alter --topic tool --add-config a=b --add-config-file nowhere
{s} --alter --topic tool --add-config-file nowhere
{s} --alter --topic tool --add-config a=1,b
{s} --alter --topic tool --add-config a=b=c
{s} --alter --topic tool --add-config a?b=1
{s} --alter --topic tool --add-config a=1 --add-config b=2
{s} --alter --topic tool --add-config no.such.setting=1
{s} --alter --topic tool --add-config retention.ms=soon
{s} --alter --topic missing --add-config retention.ms=1
{s} --alter --broker 1 --add-config node.id=7
{s} --alter --broker-logger 1 --add-config no.such.logger=DEBUG
{s} --alter --broker-logger 1 --add-config kafka.server.KafkaApis=LOUD
{s} --alter --user ann --add-config no_such_rate=1
{s} --alter --user ann --add-config no_such_rate=1,other=2
{s} --alter --user ann --delete-config no_such_rate
{s} --alter --user ann --delete-config controller_mutation_rate
{s} --alter --user ann --add-config producer_byte_rate=fast
{s} --alter --user ann --add-config producer_byte_rate=-1
{s} --alter --client app --delete-config SCRAM-SHA-256
{s} --alter --ip 127.0.0.9 --add-config producer_byte_rate=1
{s} --alter --user nobody --delete-config SCRAM-SHA-256
{s} --alter --client-metrics tool --add-config interval.ms=1
{s} --alter --group tool --add-config consumer.session.timeout.ms=1
"""

CHANGES = """
{s} --alter --topic tool --add-config cleanup.policy=[compact,delete],max.message.bytes=4242
{s} --alter --topic tool --add-config retention.ms=1000,segment.ms=
{s} --alter --topic tool --delete-config max.message.bytes
{s} --alter --entity-type topics --entity-name tool --add-config-file {file} --delete-config cleanup.policy
{s} --alter --broker 1 --add-config log.cleaner.threads=2
{s} --alter --broker-defaults --add-config message.max.bytes=2000000
{c} --alter --broker-defaults --add-config log.segment.bytes=2000000
{s} --alter --broker-logger 1 --add-config kafka.server.KafkaApis=DEBUG
{s} --alter --broker-logger 1 --delete-config kafka.server.KafkaApis
{s} --alter --client-metrics tool --add-config interval.ms=1000,metrics=[org.apache,other]
{s} --alter --group tool --add-config consumer.session.timeout.ms=50000
{s} --alter --user ann --add-config producer_byte_rate=1024,consumer_byte_rate=2048.0,request_percentage=0.0001
{s} --alter --user ann --client app --add-config controller_mutation_rate=1e8
{s} --alter --entity-type users --entity-default --entity-type clients --entity-name app --add-config request_percentage=50
{s} --alter --user-defaults --add-config producer_byte_rate=7
{s} --alter --client-defaults --add-config producer_byte_rate=8
{s} --alter --client app --add-config producer_byte_rate=9
{s} --alter --ip 127.0.0.9 --add-config connection_creation_rate=10
{s} --alter --ip-defaults --add-config connection_creation_rate=100000
{s} --alter --user ann --add-config SCRAM-SHA-256=[iterations=8192,password=secret]
{s} --alter --user bob --add-config SCRAM-SHA-512=[password=secret]
{s} --alter --user bob --add-config SCRAM-SHA-512=[iterations=-1,password=secret]
"""


def cases(text: str) -> list[str]:
    return text.strip().splitlines()


def compare(node: ApacheKafka, tools: ToolProcess, lines: list[str]) -> None:
    differing = []
    for line in lines:
        args = with_addresses(node, line)
        theirs, our = tools.run("kafka-configs", *args), ours(args)
        if (theirs.code, theirs.out, first_line(theirs.err)) != (our[0], our[1], first_line(our[2])):
            out = list(
                difflib.unified_diff(theirs.out.splitlines(), our[1].splitlines(), "Kafka", "ours", n=0, lineterm="")
            )
            differing.append((line, (theirs.code, our[0]), out, first_line(theirs.err), our[2]))
    assert differing == []


UNDONE = """
{s} --alter --broker 1 --delete-config log.cleaner.threads
{s} --alter --broker-defaults --delete-config message.max.bytes,log.segment.bytes
{s} --alter --client-metrics tool --delete-config interval.ms,metrics
{s} --alter --group tool --delete-config consumer.session.timeout.ms
{s} --alter --user ann --delete-config producer_byte_rate,consumer_byte_rate,request_percentage
{s} --alter --user ann --client app --delete-config controller_mutation_rate
{s} --alter --entity-type users --entity-default --entity-type clients --entity-name app --delete-config request_percentage
{s} --alter --user-defaults --delete-config producer_byte_rate
{s} --alter --client-defaults --delete-config producer_byte_rate
{s} --alter --client app --delete-config producer_byte_rate
{s} --alter --ip 127.0.0.9 --delete-config connection_creation_rate
{s} --alter --ip-defaults --delete-config connection_creation_rate
{s} --alter --user ann --delete-config SCRAM-SHA-256
{s} --alter --user bob --delete-config SCRAM-SHA-512
"""


@pytest.fixture(scope="module")
def with_topic(kafka: ApacheKafka) -> ApacheKafka:
    create(kafka, "tool")
    return kafka


def test_kafka_configs_changes_and_describes_as_kafkas_own(
    with_topic: ApacheKafka, tools: ToolProcess, tmp_path: Path
) -> None:
    file = tmp_path / "more.properties"
    file.write_text("retention.bytes = 77\n! a comment\nsegment.bytes: 1048576\n")
    compare(with_topic, tools, cases(CHANGES.replace("{file}", str(file))))
    rows_eventually(with_topic, "users list", lambda found: "bob" in {row["user"] for row in found})
    compare(with_topic, tools, cases(LOOKS))
    for line in cases(UNDONE):  # others use the node after this
        code, out, err = ours(with_addresses(with_topic, line))
        assert (line, code, err) == (line, 0, "")
        assert out.startswith("Completed updating ")


def test_kafka_configs_is_refused_as_kafkas_own(with_topic: ApacheKafka, tools: ToolProcess) -> None:
    compare(with_topic, tools, cases(REFUSED))


def test_kafka_configs_shows_no_password_where_kafkas_own_does(kafka: ApacheKafka, tools: ToolProcess) -> None:
    line = "{s} --alter --user carl --add-config SCRAM-SHA-256=[iterations=99999,password=hunter2]"
    args = with_addresses(kafka, line)
    theirs, (code, out, err) = tools.run("kafka-configs", *args), ours(args)
    assert (theirs.code, theirs.out) == (code, out) == (1, "")
    assert first_line(err) == first_line(theirs.err).replace("hunter2", "[hidden]")
    assert "hunter2" not in err
