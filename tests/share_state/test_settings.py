"""Settings of share groups."""

from __future__ import annotations

from barnabas.config import server
from barnabas.share_state.settings import ShareSettings, share_settings

CONFIG = server.load(
    "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
    "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
    "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlog.dirs=/nowhere\n"
)


def test_a_group_without_settings_has_those_of_the_broker() -> None:
    assert share_settings(CONFIG, {}) == ShareSettings()


def test_settings_of_a_group_are_limited_to_the_bounds_of_the_broker() -> None:
    of_group = {"share.record.lock.duration.ms": "1000", "share.auto.offset.reset": "earliest"}
    found = share_settings(CONFIG, of_group)
    assert (found.record_lock_duration_ms, found.auto_offset_reset) == (15_000, "earliest")
