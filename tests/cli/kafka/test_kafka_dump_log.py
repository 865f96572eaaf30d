"""`barnabas kafka-dump-log`: the lines, the mismatches and the exit codes of Kafka's script, as it printed them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.cli.dump_log_cases import CASES, essence, expected, prepare
from tests.command_line import invoke


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dump-log")
    prepare(found)
    return found


run = partial(invoke, "kafka-dump-log")


@pytest.mark.parametrize("case", CASES)
def test_what_kafka_prints_is_printed(case: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    result = run(*CASES[case])
    wanted = expected()[case]
    assert result.stdout == wanted["out"]
    assert result.exit_code == wanted["code"]
    assert essence(result.stderr) == essence(wanted["err"].replace("{directory}", str(directory)))
    assert "Traceback" not in result.output


def test_without_arguments_it_shows_its_help_and_fails() -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--cluster-metadata-decoder" in result.stderr


def test_an_unknown_option_ends_with_1_as_in_kafka() -> None:
    result = run("--nonsense")
    assert result.exit_code == 1
    assert "No such option" in result.stderr


def test_the_version_is_that_of_kafka() -> None:
    assert run("--version").stdout == "4.3.1\n"


def test_a_class_of_java_cannot_be_used(tmp_path: Path) -> None:
    result = run("--value-decoder-class", "com.example.MyDecoder", "--files", str(tmp_path / f"{'0' * 20}.log"))
    assert result.exit_code != 0
    assert "com.example.MyDecoder: Java classes cannot be used here" in result.stderr


def test_numbers_as_values(directory: Path) -> None:
    path = directory / "node1" / "d0" / "d-none-0" / f"{'0' * 20}.log"
    result = run("--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder", "--files", str(path))
    assert result.exit_code == 1
    assert "Error: a number of 8 bytes was expected, and there are 13" in result.stderr
