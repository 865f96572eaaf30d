"""The package from outside: its example runs, and importing it stays light."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

from barnabas import wire


def test_the_example_of_the_package_runs() -> None:
    result = doctest.testmod(wire)
    assert (result.failed, result.attempted > 3) == (0, True)


@pytest.mark.parametrize("module", ["barnabas", "barnabas.wire"])
def test_an_import_brings_no_messages_no_event_loop_and_no_command_line(module: str) -> None:
    script = f"import {module}, sys; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("barnabas.wire.messages", "barnabas.wire.records", "asyncio", "uvloop", "click", "cramjam", "json_form")
    assert module in loaded
    assert [name for name in loaded if name.startswith(heavy) or name.endswith("json_form")] == []


def test_a_message_is_imported_alone() -> None:
    script = (
        "from barnabas import wire; import sys; wire.message_class('FetchRequest');"
        "print('\\n'.join(m for m in sys.modules if m.startswith('barnabas.wire.messages.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert loaded == ["barnabas.wire.messages.fetch"]
