"""How the process of a node ends when something is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.broker.node import NodeError
from barnabas.cli.node.running import run_node
from barnabas.config.server import load
from barnabas.testing.settings import TEST_DEFAULTS

SETTINGS = {
    **TEST_DEFAULTS,
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "C",
    "controller.quorum.voters": "1@h:1",
    "listeners": "P://h:0,C://h:1",
    "log.dirs": "d",
    "listener.security.protocol.map": "P:PLAINTEXT,C:PLAINTEXT",
    "inter.broker.listener.name": "P",
}
WHY_NOT_STARTED, WHY_NOT_CLOSED = "the disk is gone", "the metadata log was not closed"


class Broken:
    """A node that starts or not, fails at once, and does not stop cleanly."""

    cluster_id = "cluster"

    def __init__(self, *, starts: bool) -> None:
        self.config = load(SETTINGS)
        self.addresses: dict[str, tuple[str, int]] = {}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._starts = starts

    async def start(self) -> None:
        if not self._starts:
            raise NodeError(WHY_NOT_STARTED)
        self.failed.set_exception(OSError(WHY_NOT_STARTED))

    async def stop(self) -> None:
        raise NodeError(WHY_NOT_CLOSED)

    def describe(self) -> Iterator[str]:
        return iter(())


@pytest.mark.parametrize("starts", [False, True])
def test_a_node_that_does_not_stop_cleanly_says_so_and_the_exit_code_is_1(
    starts: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("raise_open_file_limit", "spare_long_lived_objects"):
        monkeypatch.setattr(f"barnabas.broker.process_limits.{name}", lambda: None)
    assert run_node(lambda: Broken(starts=starts)) == 1
    said = capsys.readouterr().err
    assert WHY_NOT_STARTED in said
    assert WHY_NOT_CLOSED in said
