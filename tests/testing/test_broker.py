"""`with Broker() as broker`: what it gives, what it keeps, and what it leaves behind, which is nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.admin import KafkaAdminClient

from barnabas.testing import AsyncBroker, Broker, BrokerError
from barnabas.wire import ErrorCode, KafkaError

TIMEOUT_S = 20


def partitions(broker: Broker) -> dict[str, int]:
    """What a client sees."""
    found = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=TIMEOUT_S)
    return {name: len(topic.partitions) for name, topic in found.topics.items()}


def is_reachable(broker: Broker | AsyncBroker) -> bool:
    try:
        socket.create_connection((broker.host, broker.port), timeout=TIMEOUT_S).close()
    except ConnectionRefusedError:
        return False
    return True


def run_script(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """A program of its own, whose temporary directory is the given one."""
    script = directory.parent / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(directory), "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_clients_see_the_topics_that_it_was_started_with() -> None:
    with Broker(topics={"orders": 3, "payments": 1}) as broker:
        assert partitions(broker) == {"orders": 3, "payments": 1}
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        assert admin.describe_cluster()["cluster_id"] == broker.cluster_id
        assert sorted(admin.list_topics()) == ["orders", "payments"]
        admin.close()
        assert broker.bootstrap_servers == f"{broker.host}:{broker.port}"
        assert broker.listeners["PLAINTEXT"] == broker.bootstrap_servers


def test_topics_may_be_names_alone() -> None:
    with Broker(["orders", "payments"], config={"num.partitions": 2}) as broker:
        assert partitions(broker) == {"orders": 2, "payments": 2}


def test_a_single_name_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match=r"\['orders'\]"):
        Broker("orders")


def test_it_leaves_nothing_behind(temporary: Path) -> None:
    threads = set(threading.enumerate())
    with Broker(topics=["orders"]) as broker:
        assert broker.data_dir.parent == temporary
        assert broker.is_running
    assert not broker.is_running
    assert list(temporary.iterdir()) == []
    assert set(threading.enumerate()) == threads


def test_a_directory_that_was_named_is_kept_and_found_again(tmp_path: Path, temporary: Path) -> None:
    directory = tmp_path / "with" / "parents" / "kept"
    with Broker(topics={"orders": 3}, data_dir=directory) as broker:
        cluster_id = broker.cluster_id
        assert broker.data_dir == directory
    with Broker(topics={"orders": 5, "new": 2}, data_dir=str(directory)) as broker:
        assert broker.cluster_id == cluster_id
        assert partitions(broker) == {"orders": 3, "new": 2}
    assert list(temporary.iterdir()) == []


def test_several_at_once_are_strangers_to_each_other() -> None:
    with Broker(["a"]) as first, Broker(["b"]) as second, Broker(["c"]) as third:
        brokers = (first, second, third)
        assert len({broker.bootstrap_servers for broker in brokers}) == 3
        assert len({broker.cluster_id for broker in brokers}) == 3
        assert [partitions(broker) for broker in brokers] == [{"a": 1}, {"b": 1}, {"c": 1}]


def test_a_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerError, match="file"), Broker(data_dir=tmp_path / "file" / "kept"):
        pass


def test_one_directory_cannot_have_two(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path), pytest.raises(BrokerError, match="in use"), Broker(data_dir=tmp_path):
        pass


def test_every_setting_of_a_server_can_be_given() -> None:
    config: dict[str, str | int | bool] = {
        "auto.create.topics.enable": False,
        "num.partitions": "3",
        "log.retention.ms": 1000,
        "node.id": 7,
    }
    with Broker(config=config) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        resource = ConfigResource(ResourceType.BROKER, "7")
        shown = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        assert {name: shown[name].value for name in config} == {
            "auto.create.topics.enable": "false",
            "num.partitions": "3",
            "log.retention.ms": "1000",
            "node.id": "7",
        }


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"num.partitions": "many"}, "num.partitions"),
        ({"num.partitions": None}, "num.partitions"),
        ({"listeners": "PLAINTEXT://127.0.0.1"}, "listeners"),
        ({"process.roles": "controller"}, "process.roles"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error_that_names_it(config: dict[str, str], named: str) -> None:
    with pytest.raises(BrokerError, match=named):
        Broker(config=config)


def test_a_setting_that_nobody_knows_is_a_warning_at_the_line_that_gave_it() -> None:
    with pytest.warns(UserWarning, match=r"num\.partition is not") as told:
        Broker(config={"num.partition": "3"})
    assert told[0].filename == __file__


def test_one_thing_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="data_dir"):
        Broker(data_dir=tmp_path, config={"log.dirs": str(tmp_path)})
    with pytest.raises(BrokerError, match="port"):
        Broker(port=9092, config={"listeners": "PLAINTEXT://:9092"})


@pytest.mark.parametrize("key", ["log.dirs", "log.dir"])
def test_log_dirs_of_the_caller_are_used_and_kept(tmp_path: Path, temporary: Path, key: str) -> None:
    directory = tmp_path / "a"
    with Broker(config={key: str(directory)}) as broker:
        assert broker.data_dir == directory
    assert (directory / "meta.properties").exists()
    assert list(temporary.iterdir()) == []


def test_several_listeners_each_have_a_port_and_tell_it() -> None:
    config = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://0.0.0.0:0",
        "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://localhost:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
    with Broker(config=config) as broker:
        assert set(broker.listeners) == {"INSIDE", "OUTSIDE", "CONTROLLER"}
        assert broker.bootstrap_servers == broker.listeners["INSIDE"]
        for name, host in (("INSIDE", "127.0.0.1"), ("OUTSIDE", "localhost")):
            place = broker.listeners[name]
            assert place.startswith("127.0.0.1:")
            (told,) = AdminClient({"bootstrap.servers": place}).list_topics(timeout=TIMEOUT_S).brokers.values()
            assert f"{told.host}:{told.port}" == f"{host}:{place.rpartition(':')[2]}"


def test_a_port_can_be_chosen_and_one_that_is_taken_is_named(temporary: Path) -> None:
    with Broker() as first:
        port = first.port
        with pytest.raises(BrokerError, match=str(port)), Broker(port=port):
            pass
        assert len(list(temporary.iterdir())) == 1
    with Broker(port=port) as second:
        assert second.port == port


@pytest.mark.parametrize("topics", [{"orders": 0}, ["no spaces"]])
def test_a_topic_that_cannot_be_is_named_and_nothing_is_left(temporary: Path, topics: dict[str, int]) -> None:
    threads = set(threading.enumerate())
    (name,) = topics
    with pytest.raises(BrokerError, match=name), Broker(topics):
        pass
    assert list(temporary.iterdir()) == []
    assert set(threading.enumerate()) == threads


def test_topics_come_and_go_while_it_runs() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 2, config={"cleanup.policy": "compact", "min.compaction.lag.ms": 5})
        assert partitions(broker) == {"orders": 2}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        resource = ConfigResource(ResourceType.TOPIC, "orders")
        shown = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        assert (shown["cleanup.policy"].value, shown["min.compaction.lag.ms"].value) == ("compact", "5")
        with pytest.raises(KafkaError) as refused:
            broker.create_topic("orders")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        broker.delete_topic("orders")
        assert partitions(broker) == {}
        with pytest.raises(KafkaError) as refused:
            broker.delete_topic("orders")
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_restart_keeps_ports_and_data_and_clients_carry_on() -> None:
    with Broker({"orders": 3}) as broker:
        before = broker.listeners, broker.cluster_id, broker.data_dir
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        assert "orders" in admin.list_topics(timeout=TIMEOUT_S).topics
        broker.restart()
        assert (broker.listeners, broker.cluster_id, broker.data_dir) == before
        assert "orders" in admin.list_topics(timeout=TIMEOUT_S).topics


def test_it_can_be_away_for_a_while() -> None:
    with Broker(["orders"]) as broker:
        broker.stop()
        broker.stop()
        assert not broker.is_running
        assert not is_reachable(broker)
        assert broker.data_dir.exists()
        with pytest.raises(BrokerError, match="start"):
            broker.create_topic("more")
        broker.start()
        assert partitions(broker) == {"orders": 1}


def test_it_is_started_and_closed_without_a_with_as_well(temporary: Path) -> None:
    broker = Broker(["orders"])
    with pytest.raises(BrokerError, match="start"):
        _ = broker.bootstrap_servers
    assert broker.start() is broker
    with pytest.raises(BrokerError, match="already"):
        broker.start()
    assert partitions(broker) == {"orders": 1}
    assert repr(broker) == f"<Broker at {broker.bootstrap_servers}>"
    broker.close()
    broker.close()
    assert list(temporary.iterdir()) == []
    with broker:  # a new one
        assert partitions(broker) == {"orders": 1}


def test_a_second_with_is_an_error_and_the_broker_goes_on() -> None:
    with Broker(["orders"]) as broker:
        with pytest.raises(BrokerError, match="already running"), broker:
            pass
        assert partitions(broker) == {"orders": 1}
        broker.stop()
        with pytest.raises(BrokerError, match="already in a `with` block"), broker:
            pass
        broker.start()
        assert partitions(broker) == {"orders": 1}
    assert not broker.is_running
    with broker:
        assert partitions(broker) == {"orders": 1}


def test_a_with_on_a_broker_that_was_started_is_an_error_and_the_broker_goes_on() -> None:
    broker = Broker(["orders"]).start()

    async def enter() -> None:
        async with broker:
            pass

    try:
        with pytest.raises(BrokerError, match="already running"), broker:
            pass
        with pytest.raises(BrokerError, match="already running"):
            asyncio.run(enter())
        assert partitions(broker) == {"orders": 1}
    finally:
        broker.close()


def test_a_start_that_fails_in_a_with_can_be_repeated(temporary: Path) -> None:
    with Broker() as first:
        second = Broker(port=first.port)
        with pytest.raises(BrokerError, match=str(first.port)), second:
            pass
    with second:
        assert second.is_running
    assert list(temporary.iterdir()) == []


def test_of_two_threads_that_start_it_one_is_refused() -> None:
    before = set(threading.enumerate())  # other brokers of this process may be running
    broker = Broker()
    refused: list[BrokerError] = []

    def start() -> None:
        try:
            broker.start()
        except BrokerError as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert len(refused) == 1
    assert is_reachable(broker)
    broker.close()
    left = set(threading.enumerate()) - before
    assert [thread.name for thread in left if thread.name == "barnabas-broker"] == []


def test_an_exception_in_the_with_stops_it_and_is_passed_on(temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), Broker() as broker:
        raise ZeroDivisionError
    assert not broker.is_running
    assert list(temporary.iterdir()) == []


def test_after_close_it_says_so() -> None:
    with Broker(["orders"]) as broker:
        pass
    for call in (lambda: broker.bootstrap_servers, lambda: broker.records("orders"), broker.restart):
        with pytest.raises(BrokerError, match=r"closed|not running"):
            call()


def test_a_node_that_cannot_go_on_says_so() -> None:
    with Broker() as broker:
        node = broker._broker._node
        assert node is not None and broker._thread is not None

        async def fail() -> None:
            node._fail(OSError("the disk is gone"))

        broker._thread.call(fail(), TIMEOUT_S)
        with pytest.raises(BrokerError, match="the disk is gone"):
            broker.create_topic("orders")


class StillLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers do not fire while `is_still`, or until `TIMEOUT_S` is over, so that a failure ends."""

    is_still = True
    since_s: float | None = None

    def time(self) -> float:
        now_s = super().time()
        if self.since_s is None:
            self.since_s = now_s
        return self.since_s if self.is_still and now_s < self.since_s + TIMEOUT_S else now_s


def test_it_is_ready_without_waiting_for_time() -> None:
    loop = StillLoop()

    async def start() -> None:
        async with Broker({"orders": 3}) as broker:
            assert is_reachable(broker)
            assert loop.time() == loop.since_s, "it waited for a timer"
            loop.is_still = False

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(start())


def test_it_is_quiet_unless_someone_listens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Broker(["orders"]):
        pass
    assert [record.getMessage() for record in caplog.records if record.name.startswith("barnabas")] == []
    caplog.set_level(logging.INFO, logger="barnabas")
    with Broker(["orders"]):
        pass
    assert any("registered as broker" in record.getMessage() for record in caplog.records)


def test_a_process_that_forgets_to_stop_it_ends_quietly_and_leaves_nothing(temporary: Path) -> None:
    done = run_script("from barnabas.testing import Broker\nprint(Broker(['orders']).start().data_dir)", temporary)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).parent == temporary
    assert list(temporary.iterdir()) == []


FORKING = """
import os, sys, warnings
from barnabas.testing import Broker, BrokerError
warnings.simplefilter("ignore")  # of fork itself, when there are threads
unused = Broker()
with Broker(["orders"]) as broker:
    child = os.fork()
    if not child:
        try:
            broker.create_topic("more")
        except BrokerError as error:
            print("refused:", error, flush=True)
        print(broker.is_running, broker.bootstrap_servers, flush=True)
        with unused:  # was not started before the fork
            assert unused.is_running and unused.port != broker.port
        sys.exit(0)  # through the end of the with, and of the process
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert broker.data_dir.exists()
    broker.create_topic("more")
    print(broker.is_running, broker.bootstrap_servers)
"""


def test_a_forked_process_neither_stops_it_nor_touches_its_directory(temporary: Path) -> None:
    done = run_script(FORKING, temporary)
    assert (done.returncode, done.stderr) == (0, "")
    refused, of_child, of_parent = done.stdout.splitlines()
    assert refused.startswith("refused: this broker belongs to process")
    assert (of_child.split()[0], of_parent.split()[0]) == ("False", "True")
    assert of_child.split()[1] == of_parent.split()[1]
    assert list(temporary.iterdir()) == []


def test_a_listener_that_would_be_open_is_refused() -> None:
    with pytest.raises(BrokerError, match=r"^config: .*Listener SASL_SSL enables the SASL mechanism GSSAPI"):
        Broker(
            config={
                "listeners": "SASL_SSL://127.0.0.1:0",
                "security.inter.broker.protocol": "SASL_SSL",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
            }
        )
