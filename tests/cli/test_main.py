"""The command as a whole: help, version, commands that are found when they are needed, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import barnabas
from barnabas.cli.main import COMMANDS, main
from tests.command_line import invoke, spawn


def run_python(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})


def test_the_version_is_that_of_the_package() -> None:
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"barnabas {barnabas.__version__}\n")


def test_python_m_barnabas_is_the_same_command() -> None:
    result = spawn("--version")
    assert (result.exit_code, result.stdout) == (0, f"barnabas {barnabas.__version__}\n")


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_command_and_examples(option: str) -> None:
    result = invoke(option)
    assert result.exit_code == 0
    assert "barnabas decode ApiVersionsRequest 3" in result.stdout
    for name, entry in COMMANDS.items():
        assert name in result.stdout
        assert entry.help in result.stdout


def test_help_imports_no_command_and_nothing_heavy() -> None:
    script = (
        "import sys; from barnabas.cli.main import main; main(['--help'], standalone_mode=False);"
        "print('|'.join(sys.modules))"
    )
    result = run_python("-c", script)
    loaded = result.stdout.splitlines()[-1].split("|")
    heavy = ("barnabas.cli.commands", "barnabas.broker", "barnabas.wire", "barnabas.batches", "asyncio", "uvloop")
    assert "click" in loaded
    assert [name for name in loaded if name.startswith(heavy)] == []


def test_decode_imports_no_broker_and_no_event_loop() -> None:
    script = (
        "import sys; from barnabas.cli.main import main;"
        "main(['decode', 'HeartbeatRequest', '0', '0000000000000000'], standalone_mode=False);"
        "print('|'.join(sys.modules))"
    )
    result = run_python("-c", script)
    loaded = result.stdout.splitlines()[-1].split("|")
    heavy = ("barnabas.broker", "barnabas.batches", "asyncio", "uvloop", "cramjam", "barnabas.cli.commands.serve")
    assert "barnabas.cli.commands.decode" in loaded
    assert [name for name in loaded if name.startswith(heavy)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_has_help(name: str) -> None:
    if find_spec(COMMANDS[name].target.partition(":")[0]) is None:
        pytest.fail(f"{COMMANDS[name].target} does not exist")
    result = invoke(name, "--help")
    assert result.exit_code == 0, result.output
    assert f"Usage: main {name}" in result.stdout


def test_a_misspelt_command_is_a_usage_error_with_a_suggestion() -> None:
    result = invoke("decod")
    assert result.exit_code == 2
    assert "No such command 'decod'. Did you mean 'decode'?" in result.stderr
    result = invoke("xyzzy")
    assert result.exit_code == 2
    assert "Error: No such command 'xyzzy'.\n" in result.stderr


def test_an_unknown_option_is_a_usage_error() -> None:
    assert invoke("--nothing").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_says_how_to_install_it(shell: str) -> None:
    result = invoke("completion", shell)
    assert result.exit_code == 0
    assert "_BARNABAS_COMPLETE" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last.startswith("#")
    assert f"barnabas completion {shell}" in last


def test_a_completion_script_is_one_that_bash_takes(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(invoke("completion", "bash").stdout)
    assert subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False).returncode == 0


def test_completion_of_another_shell_is_a_usage_error() -> None:
    result = invoke("completion", "csh")
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr


def completions(*words: str) -> list[str]:
    *arguments, incomplete = words
    shell = ShellComplete(main, {}, "barnabas", "_BARNABAS_COMPLETE")
    return [item.value for item in shell.get_completions(arguments, incomplete)]


def test_commands_options_messages_and_versions_are_completed() -> None:
    assert completions("") == list(COMMANDS)
    assert completions("dec") == ["decode"]
    assert "--version" in completions("--v")
    assert "--records" in completions("decode", "--rec")
    assert completions("decode", "apiv") == ["ApiVersionsRequest", "ApiVersionsResponse"]
    assert completions("decode", "--response", "apiv") == ["ApiVersions"]
    assert completions("decode", "--record", "gro") == ["group", "GroupMetadataKey", "GroupMetadataValue"]
    assert completions("decode", "--request", "apiv") == []
    assert completions("decode", "ApiVersionsRequest", "") == ["0", "1", "2", "3", "4"]
    assert completions("decode", "--response", "Metadata", "1") == ["1", "10", "11", "12", "13"]
    assert completions("decode", "Nothing", "") == []


def test_a_shell_gets_its_completions_from_the_command() -> None:
    env = {"_BARNABAS_COMPLETE": "bash_complete", "COMP_WORDS": "barnabas com", "COMP_CWORD": "1"}
    result = spawn(env=env)
    assert result.stdout == "plain,completion\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
@pytest.mark.parametrize("arguments", [("--help",), ("decode", "ApiVersionsRequest", "3", "036d65023100")])
def test_output_without_room_is_an_error_in_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "barnabas", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: the output cannot be written: No space left on device\n")
