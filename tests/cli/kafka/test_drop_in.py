"""What all commands with the names of Kafka's scripts have in common."""

from __future__ import annotations

from barnabas.cli.kafka.drop_in import written_out
from barnabas.testing import Broker
from tests.command_line import invoke

KNOWN = ("--topic", "--topics-with-overrides", "--describe", "--bootstrap-server")


def test_the_beginning_of_an_option_will_do_if_no_other_begins_so() -> None:
    assert written_out("--desc", KNOWN) == "--describe"
    assert written_out("--bootstrap=a:1", KNOWN) == "--bootstrap-server=a:1"
    assert written_out("--topic", KNOWN) == "--topic"
    assert written_out("--top", KNOWN) == "--top"
    assert written_out("--", KNOWN) == "--"
    assert written_out("-desc", KNOWN) == "-desc"
    assert written_out("describe", KNOWN) == "describe"


def test_a_script_with_short_options_is_understood() -> None:
    with Broker({"orders": 1}) as broker:
        result = invoke("kafka-topics", "--boot", broker.bootstrap_servers, "--li")
    assert (result.exit_code, result.stdout) == (0, "orders\n")


def test_help_says_nothing_of_kafkas_version_and_version_does() -> None:
    result = invoke("kafka-topics", "--vers")
    assert (result.exit_code, result.stdout) == (0, "4.3.1\n")
